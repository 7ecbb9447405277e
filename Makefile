# make demo   learns two moons by fooling a test, in about a minute
# make test   lint, types, architecture, tests
# make slow   tests that take long, in a few minutes
# make oldest, make newest  the tests with the oldest and the newest dependencies that are allowed
# make bench  speed, as ratios to plain ways of doing the same
# make bench-large  time and memory up to a million points, an hour
# make calibration  p-values by laws against millions of permutations, two hours
# make power  the power of all tests on many alternatives, an hour on two cores
# make scoreboard  the default beside tests of others, four hours on two cores; it resumes
# make format, make clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test slow oldest newest bench bench-large calibration power scoreboard format clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist worksteal

slow: $(READY)
	$(BIN)/pytest -m slow

oldest newest:
	rm -rf .venv-$@
	$(PYTHON) -m venv .venv-$@
	grep -oE '"[a-z-]+>=[0-9.]+' pyproject.toml | sed 's/"//; s/>=/==/' > .venv-$@/bounds.txt
	.venv-$@/bin/python -m pip install --quiet ".[dev]" $(if $(filter oldest,$@),--constraint .venv-$@/bounds.txt)
	.venv-$@/bin/pytest -W ignore::DeprecationWarning --numprocesses auto --maxprocesses 4 --dist worksteal

bench: $(READY)
	$(BIN)/python benchmarks/first_answer.py
	$(BIN)/python benchmarks/classical.py
	$(BIN)/python benchmarks/smoothed.py
	$(BIN)/python benchmarks/null.py
	$(BIN)/python benchmarks/adaptive.py
	$(BIN)/python benchmarks/loss.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/maps.py

bench-large: $(READY)
	$(BIN)/python benchmarks/large.py --plot docs/large.png
	$(BIN)/python benchmarks/laplacian.py
	$(BIN)/python benchmarks/growing.py
	$(BIN)/python benchmarks/large_graphs.py

calibration: $(READY)
	$(BIN)/python benchmarks/tilted.py
	$(BIN)/python benchmarks/calibration.py 100
	$(BIN)/python benchmarks/calibration.py 300
	$(BIN)/python benchmarks/calibration_elsewhere.py

power: $(READY)
	$(BIN)/python benchmarks/power.py

scoreboard: $(READY)
	$(BIN)/python benchmarks/scoreboard.py --trials 500 --keep benchmarks/scores.json

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis demo.png demo.html digits.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || ($(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV))

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools wheel
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	touch $@
