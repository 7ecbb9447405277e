"""Folders of power studies: they survive interruption, grow, and refuse other studies."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import crossedge as ce
import study_cases
from crossedge.studies.folder import fingerprint
from crossedge.studies.grid import CELL_REPETITIONS
from study_cases import ONE_THREAD, StopsAt, equal, shifted, tiny, wait_for

SCRIPT = """
import sys, time
import crossedge as ce

DRAWN = [0]
PAUSE = []

def sampler(rng, shift):
    DRAWN[0] += 1
    for pause in PAUSE:
        pause()
    return rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + shift

def study(folder, pause):
    PAUSE[:] = [pause]
    tests = {"tree": ce.SpanningTree()}
    return ce.power_study(
        sampler, tests, grid={"shift": [0, 1, 2]}, repetitions=100, n_resamples=19, folder=folder
    )

if __name__ == "__main__":
    study(sys.argv[1], lambda: time.sleep(0.01))
"""


class TestFolder:
    def test_an_interrupted_study_goes_on(self, tmp_path, monkeypatch):
        expected = tiny()
        monkeypatch.setattr(study_cases, "CALLS", StopsAt(2 * CELL_REPETITIONS + 10))
        with pytest.raises(
            KeyboardInterrupt, match=r"2 of 4 cells are done, and kept in .*goes on"
        ):
            tiny(folder=tmp_path / "study")
        study_cases.CALLS.clear()
        assert equal(tiny(folder=tmp_path / "study"), expected)
        assert study_cases.CALLS == [0.0] * 15 + [2.0] * 15
        study_cases.CALLS.clear()
        assert equal(tiny(folder=tmp_path / "study"), expected)
        assert study_cases.CALLS == []

    def test_interrupted_without_a_folder(self, monkeypatch):
        monkeypatch.setattr(study_cases, "CALLS", StopsAt(30))
        with pytest.raises(KeyboardInterrupt, match="1 of 4 cells are done, and lost: give a fold"):
            tiny()

    def test_a_study_can_grow(self, tmp_path):
        tiny(folder=tmp_path, repetitions=CELL_REPETITIONS)
        study_cases.CALLS.clear()
        grid = {"shift": [0.0, 1.0, 2.0]}
        found = tiny(folder=tmp_path, grid=grid, repetitions=2 * CELL_REPETITIONS, level=0.1)
        assert len(study_cases.CALLS) == 4 * CELL_REPETITIONS
        assert equal(found, tiny(grid=grid, repetitions=2 * CELL_REPETITIONS))
        study_cases.CALLS.clear()
        assert equal(tiny(folder=tmp_path, repetitions=10), tiny(repetitions=10))
        assert len(study_cases.CALLS) == 20  # of the one without a folder

    def test_what_is_not_whole_is_done_again(self, tmp_path):
        expected = tiny(folder=tmp_path)
        files = sorted((tmp_path / "cells").iterdir())
        files[0].write_text(files[0].read_text()[:60])
        files[1].write_text("[]")
        sizes = [len(json.loads(file.read_text())["pvalues"]["tree"]) for file in files[2:]]
        (tmp_path / "cells" / (files[2].name + ".1.new")).write_text("half")
        study_cases.CALLS.clear()
        assert equal(tiny(folder=tmp_path), expected)
        assert len(study_cases.CALLS) == 80 - sum(sizes)

    @pytest.mark.parametrize(
        ("other", "part"),
        [
            ({"rng": 1}, "rng"),
            ({"n_resamples": 39}, "tests"),
            ({"tests": {"tree": ce.SpanningTree(0.1)}}, "tests"),
            ({"samplers": lambda rng, shift: shifted(rng, -shift)}, "samplers"),
        ],
    )
    def test_the_folder_of_another_study_is_refused(self, other, part, tmp_path):
        tiny(folder=tmp_path)
        with pytest.raises(ValueError, match=rf"holds another study \(other {part}\): give anothe"):
            tiny(**other, folder=tmp_path)

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(FileExistsError, match="is a file: give a folder"):
            tiny(folder=tmp_path / "file")

    def test_killed_at_any_time(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(SCRIPT)
        spec = importlib.util.spec_from_file_location("script", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        folder = tmp_path / "study"
        process = subprocess.Popen([sys.executable, script, folder], env=ONE_THREAD)
        wait_for(lambda: len(list(folder.glob("cells/*.json"))) >= 2, process)
        process.kill()
        process.wait()
        kept = len(list(folder.glob("cells/*.json")))
        assert kept < 12
        found = module.study(folder, lambda: None)
        assert module.DRAWN[0] == 300 - CELL_REPETITIONS * kept
        assert equal(found, module.study(None, lambda: None))


class TestFingerprint:
    def test_equal_code_is_equal(self):
        def make(shift):
            return lambda rng, d: rng.normal(size=d) + shift

        assert fingerprint(make(1)) == fingerprint(make(1))
        assert fingerprint(make(1)) != fingerprint(make(2))
        assert fingerprint(lambda d: d + 1) != fingerprint(lambda d: d + 2)
        assert fingerprint(lambda d: np.sin(d)) != fingerprint(lambda d: np.cos(d))

    def test_objects_and_arrays(self):
        assert fingerprint(np.zeros(3)) != fingerprint(np.ones(3))
        assert fingerprint([ce.SpanningTree(1.0)]) == fingerprint([ce.SpanningTree(1.0)])
        assert fingerprint(ce.SpanningTree(1.0)) != fingerprint(ce.SpanningTree(2.0))
        assert fingerprint(Shift(1)) == fingerprint(Shift(1)) != fingerprint(Shift(2))
        assert fingerprint(Shift(1).draw) != fingerprint(Shift(2).draw)


class Shift:
    def __init__(self, shift):
        self.shift = shift

    def draw(self, rng):
        return rng.normal(size=3) + self.shift
