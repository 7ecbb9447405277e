"""The power at level 0.05 of two-sample tests on all families of power.py, as a table in markdown.

`python benchmarks/scoreboard.py --trials 500 --jobs 2 --keep scores.json` prints every family as
soon as it is ready, and can be stopped and started again, with more trials too. After a change of
the default test, `--renew crossedge` measures that column anew and takes all others from the file.
"""

from __future__ import annotations

import argparse
import os
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from zlib import crc32

import numpy as np

from peers import LEVEL, PEERS
from power import FAMILIES as ALTERNATIVES
from power import Sampler, gaussian, poisson
from scores import Job, Kept, header, missing, read, row, summary, write

LABELLINGS = 999  # of the default test, which has 9,999 if nothing is said
FAMILIES: dict[str, Sampler] = {
    "equal, 100 + 100, d = 2": gaussian(2, n_x=100, n_y=100),
    "equal, 100 + 100, d = 500": gaussian(500, n_x=100, n_y=100),
    "equal, 100 + 100, counts, d = 3": poisson(3, 2.0, 2.0, 100),
    **ALTERNATIVES,
}


def default(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
    import crossedge as ce

    return ce.two_sample(x, y, n_resamples=LABELLINGS, rng=rng).pvalue <= LEVEL


TESTS = {"crossedge": default, **PEERS}


def outcomes(job: Job) -> dict[str, bool]:
    """Run some tests on one pair of samples, which depends on the family and the trial alone."""
    family, trial, tests = job
    seed = [crc32(family.encode()), trial]
    x, y = FAMILIES[family](np.random.default_rng(seed))
    return {
        test: bool(TESTS[test](x, y, np.random.default_rng([*seed, crc32(test.encode())])))
        for test in tests
    }


def measure(kept: Kept, jobs: list[Job], pool: Pool, path: Path | None) -> None:
    """Run the trials of a family in order, and keep what is found every ten trials."""
    for place, (job, found) in enumerate(zip(jobs, pool.imap(outcomes, jobs), strict=True)):
        columns = kept.setdefault(job[0], {})
        for test, rejected in found.items():
            columns.setdefault(test, []).append(rejected)
        if place % 10 == 9 or place == len(jobs) - 1:
            write(path, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--families", nargs="*", help="those whose names have one of these words")
    parser.add_argument("--tests", nargs="*", choices=list(TESTS), default=list(TESTS))
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--keep", type=Path, metavar="FILE.json", help="results, to resume from")
    parser.add_argument("--table", action="store_true", help="print what is kept, run nothing")
    parser.add_argument(
        "--renew", nargs="*", default=[], choices=list(TESTS), help="forget these columns first"
    )
    options = parser.parse_args()
    words = options.families
    families = [name for name in FAMILIES if not words or any(word in name for word in words)]
    kept = read(options.keep)
    for columns in kept.values():
        for test in options.renew:
            columns.pop(test, None)
    if options.table:
        families = [family for family in families if family in kept]
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = "1"  # of the processes to come
    print(header(options.tests), flush=True)
    with get_context("spawn").Pool(options.jobs) as pool:
        for family in families:
            if not options.table:
                jobs = missing(kept, family, options.tests, options.trials)
                measure(kept, jobs, pool, options.keep)
            print(row(family, kept[family], options.tests, options.trials), flush=True)
    print("\n".join(summary(kept, families, options.tests, options.trials)))


if __name__ == "__main__":
    main()
