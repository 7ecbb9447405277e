"""Machine code: what loops may return, and when it is compiled anew."""

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import crossedge
import crossedge.numerics

SOURCES = Path(crossedge.__file__).parent


def compiled_functions():
    for module in pkgutil.walk_packages(crossedge.numerics.__path__, "crossedge.numerics."):
        home = importlib.import_module(module.name)
        for name, value in vars(home).items():
            if getattr(getattr(value, "py_func", None), "__module__", "") == home.__name__:
                yield f"{module.name}.{name}", value.py_func


def test_no_loop_returns_a_named_tuple():
    """A signal that arrives while one is handed back would end the process."""
    loops = dict(compiled_functions())
    assert len(loops) > 50
    for name, loop in loops.items():
        returned = typing.get_type_hints(loop).get("return")
        assert not hasattr(returned, "_fields"), name


USE = """
import numpy as np
from crossedge.numerics.closed_walks import closed_walks
start, neighbour = np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1])
print(closed_walks(start, neighbour, np.ones(6), np.ones(3, np.int64)))
"""


def use(sources, cache):
    """Run a compiled loop of a checkout in a process of its own."""
    known = {**os.environ, "PYTHONPATH": str(sources.parent), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", USE]
    found = subprocess.run(command, env=known, capture_output=True, text=True, timeout=300)
    assert found.stdout.strip() == "6.0", found.stderr
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb[ci]")}


def test_machine_code_is_kept_by_content(tmp_path):
    """Another checkout of the same code uses it; any change of a file with loops does not."""
    here, there, cache = tmp_path / "a" / "crossedge", tmp_path / "b" / "crossedge", tmp_path / "c"
    for checkout in (here, there):
        shutil.copytree(SOURCES, checkout, ignore=shutil.ignore_patterns("__pycache__"))
    first = use(here, cache)
    assert len(first) == 2  # an index and the code
    assert use(there, cache) == first
    with (there / "numerics" / "extent.py").open("a") as file:
        file.write("# changed\n")
    assert len(use(there, cache)) == 4


def test_code_of_old_versions_is_dropped(tmp_path, monkeypatch):
    from crossedge.runtime import compiled

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for age in range(20):
        folder = tmp_path / "crossedge" / f"old{age}"
        folder.mkdir(parents=True)
        os.utime(folder, (1e9 - age, 1e9 - age))
    compiled._folder.cache_clear()
    own = compiled._folder()
    compiled._folder.cache_clear()
    left = {path.name for path in (tmp_path / "crossedge").iterdir()}
    assert own.name in left
    assert len(left) == compiled.MOST_VERSIONS
    assert {"old0", "old1"} < left


def test_nowhere_to_write(tmp_path, monkeypatch):
    from crossedge.runtime import compiled

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    compiled._folder.cache_clear()
    assert compiled._folder() is None
    loop = compiled.compiled(lambda x: x + 1)
    compiled._folder.cache_clear()
    assert loop(2) == 3


def test_nobody_is_at_home(tmp_path, monkeypatch):
    """As in a container whose user has no entry: with a folder of its own, and without any."""
    from crossedge.runtime import compiled

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for given, expected in ((str(tmp_path), True), ("", False)):
        monkeypatch.setenv("NUMBA_CACHE_DIR", given)
        compiled._folder.cache_clear()
        assert (compiled._folder() is not None) == expected
    compiled._folder.cache_clear()


@pytest.mark.parametrize("family", ["None", "ce.SpanningTree()", "ce.NearestNeighbours(3)"])
def test_small_samples_need_no_compiler(family):
    code = f"""
import sys
import numpy as np
import crossedge as ce
assert "torch" not in sys.modules
x = np.random.default_rng(0).normal(size=(40, 3))
ce.two_sample(x, x + 0.1, {family}, rng=0)
ce.two_sample(np.round(x), np.round(x + 0.1), {family}, rng=0)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)
