"""How long a newcomer waits for the first answer: whole processes, beside `import torch`."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TURNS = 5
ANSWER = """
import time
start = time.perf_counter()
import crossedge as ce
imported = time.perf_counter()
import numpy as np
x, y = np.random.default_rng(0).normal(size=(2, {n}, 3))
began = time.perf_counter()
ce.two_sample(x, y, {weights})
print(imported - start, time.perf_counter() - began)
"""


def run(command, cache):
    """Seconds that a process takes, and what it prints."""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    start = time.perf_counter()
    found = subprocess.run(command, env=known, capture_output=True, text=True)
    return time.perf_counter() - start, found.stdout


def best(command, turns=TURNS):
    """Of several processes, each with an empty cache."""
    seconds = []
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as cache:
            seconds.append(run(command, cache)[0])
    return min(seconds)


def first_answer(n, weights):
    """Seconds for the import, for the first answer, and for it in the next process."""
    code = [sys.executable, "-c", ANSWER.format(n=n, weights=weights)]
    with tempfile.TemporaryDirectory() as cache:
        cold = [float(part) for part in run(code, cache)[1].split()]
        warm = [float(part) for part in run(code, cache)[1].split()]
    return *cold, warm[1]


def show(name, seconds, unit):
    print(f"  {name:<46} {seconds:6.2f} s  {seconds / unit:5.2f}x import torch")


def main():
    python, command = sys.executable, str(Path(sys.executable).with_name("crossedge"))
    nothing = best([python, "-c", "pass"])
    unit = best([python, "-c", "import torch"]) - nothing
    print(f"first answers, from nothing compiled; import torch takes {unit:.2f} s")
    show("import crossedge", best([python, "-c", "import crossedge"]) - nothing, unit)
    for name, arguments in (("--help", ["--help"]), ("--version", ["--version"])):
        show(f"crossedge {name}", best([command, *arguments]), unit)
    show("crossedge test, a file that is not there", best([command, "test", "no", "no"]), unit)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("a.csv", "b.csv")]
        for file, points in zip(
            files, np.random.default_rng(0).normal(size=(2, 50, 3)), strict=True
        ):
            np.savetxt(file, points, delimiter=",")
        show("crossedge test, 50 + 50 points", best([command, "test", *files]), unit)
    for n, weights in (
        (50, "None"),
        (500, "None"),
        (1400, "None"),
        (50, "ce.SpanningTree()"),
        (50, "ce.SpanningTree(1.0)"),
        (1000, "ce.NearestNeighbours(5)"),
    ):
        _, cold, warm = first_answer(n, weights)
        name = "default" if weights == "None" else weights.removeprefix("ce.")
        show(f"two_sample, {n} + {n}, {name}", cold, unit)
        show("    in the next process", warm, unit)


if __name__ == "__main__":
    main()
