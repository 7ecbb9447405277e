"""The core stands without torch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
OUT_OF_REACH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
"""
USE = """
import numpy as np
import crossedge as ce

rng = np.random.default_rng(0)
x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 0.5
assert 0 < ce.two_sample(x, y, rng=0, n_resamples=199).pvalue < 0.5
for weights in (ce.SpanningTree(), ce.NearestNeighbours(3), ce.NearestNeighbours(1, 0.5),
                ce.GaussianKernel(), ce.EnergyKernel()):
    for null in ("permutation", "normal", "pearson3"):
        assert 0 < ce.two_sample(x, y, weights, null=null, rng=0, n_resamples=199).pvalue <= 1
ce.divergence(x, y, ce.SpanningTree())
distances = np.linalg.norm(x[:, None] - x, axis=2)
assert isinstance(ce.GaussianKernel()(distances), np.ndarray)
try:
    ce.TwoSampleLoss
except ImportError as error:
    print(error)
"""
SMOOTHED = """
assert ce.two_sample(x, y, ce.SpanningTree(0.5), null="tail").law == "tilted labellings"
assert ce.two_sample(x, y, ce.NearestNeighbours(3, 0.5), rng=0).pvalue < 0.5
assert ce.two_sample(x, y, ce.SpanningTree(), null="tail").exact
"""
HELP = """
import inspect
assert dict(inspect.getmembers(ce))["two_sample"] is ce.two_sample  # as `help` does
from crossedge import *
assert two_sample is ce.two_sample
"""
INSTALL = "TwoSampleLoss needs torch: pip install 'crossedge[torch]'"


def run(python, code, **options):
    command = [str(python), "-W", "error", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_tests_answer_and_losses_say_what_to_install():
    assert run(sys.executable, OUT_OF_REACH + USE + HELP) == INSTALL


def test_torch_is_not_imported_until_a_tensor_comes():
    check = "import sys; assert 'torch' not in sys.modules, 'torch was imported'"
    code = USE.partition("try:")[0] + check
    assert run(sys.executable, code) == ""


def test_statistics_of_the_command_are_known_without_torch():
    code = OUT_OF_REACH + "from crossedge.cli.main import main; main(['learn', '--help'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "mmd_ratio" in found.stdout


@pytest.mark.parametrize("arguments", [["learn", "moons"], ["reproduce", "moons"]])
def test_the_command_says_what_to_install(arguments, tmp_path):
    code = OUT_OF_REACH + f"from crossedge.cli.main import main; sys.exit(main({arguments}))"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    expected = "crossedge: this command needs torch: pip install 'crossedge[learn]'\n"
    assert (found.returncode, found.stderr) == (2, expected)


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment(tmp_path):
    """Build it, install it with what it asks for, and use it by its command and its names."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pins = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pins, wheel], check=True)
    assert run(python, USE + SMOOTHED + HELP, cwd=tmp_path) == INSTALL
    np.save(tmp_path / "a.npy", [[1, 2], [2, 3], [4, 1]])
    np.save(tmp_path / "b.npy", [[3, 2], [2, 9], [4, 7]])
    command = [python.with_name("crossedge"), "test", "a.npy", "b.npy"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "all 20 labellings" in found.stdout
    (tmp_path / "a.csv").write_text("u,v\n1,2\n2,3\n4,1\n")
    command[2:] = ["a.csv", "a.csv"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.stderr == "crossedge: a.csv needs pandas: pip install 'crossedge[tables]'\n"
