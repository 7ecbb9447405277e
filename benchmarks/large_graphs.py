"""Classical graphs of many points: ours, and those of other libraries that are installed.

    python benchmarks/large_graphs.py            # the table of the docs: minutes to an hour
    python benchmarks/large_graphs.py 20000x3 20000x10 --limit 60

Every engine runs in a process of its own, so that its peak memory is its own, and is ended after
`--limit` seconds. Times are without imports and compilation.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

K, THREADS, WARM = 5, 2, 2_000
NEIGHBOURS, TREE = f"{K}-NN", "tree"
DEFAULT = ["200000x3", "200000x10", "1000000x3", "1000000x10"]


def crossedge_neighbours(points):
    import crossedge as ce
    from crossedge.data.distances import point_distances

    return ce.NearestNeighbours(K).pairs(point_distances(points, 2.0))


def crossedge_tree(points):
    import crossedge as ce
    from crossedge.data.distances import point_distances

    return ce.SpanningTree().pairs(point_distances(points, 2.0))


def scipy_neighbours(points):
    from scipy.spatial import KDTree

    return KDTree(points).query(points, K + 1, workers=THREADS)


def sklearn_neighbours(points):
    from sklearn.neighbors import NearestNeighbors

    return (
        NearestNeighbors(n_neighbors=K, algorithm="kd_tree", n_jobs=THREADS)
        .fit(points)
        .kneighbors()
    )


def faiss_neighbours(points):
    """All distances in float32."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    single = points.astype(np.float32)
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(single)
    return index.search(single, K + 1)


def pynndescent_neighbours(points):
    """Approximate, in float32."""
    from pynndescent import NNDescent

    return NNDescent(points, n_neighbors=K + 1, n_jobs=THREADS).neighbor_graph


def fast_hdbscan_tree(points):
    """In float32."""
    import numba
    from fast_hdbscan.boruvka import parallel_boruvka
    from fast_hdbscan.numba_kdtree import build_kdtree

    numba.set_num_threads(THREADS)
    tree = build_kdtree(points.astype(np.float32))
    return parallel_boruvka(tree, THREADS, 1, np.zeros(1, np.float32), False)


Engine = tuple[
    str, Callable[[np.ndarray], object]
]  # the module that must be installed, and its use
ENGINES: dict[str, dict[str, Engine]] = {
    NEIGHBOURS: {
        "crossedge": ("crossedge", crossedge_neighbours),
        "scipy KDTree": ("scipy", scipy_neighbours),
        "scikit-learn": ("sklearn", sklearn_neighbours),
        "faiss, flat": ("faiss", faiss_neighbours),
        "pynndescent": ("pynndescent", pynndescent_neighbours),
    },
    TREE: {
        "crossedge": ("crossedge", crossedge_tree),
        "fast_hdbscan": ("fast_hdbscan", fast_hdbscan_tree),
    },
}


def run(kind: str, name: str, n: int, d: int) -> None:
    """Print wall-clock seconds, seconds of the processor and GiB of one engine."""
    work = ENGINES[kind][name][1]
    points = np.random.default_rng(0).normal(size=(n, d))
    work(points[:WARM])
    start, before = time.perf_counter(), time.process_time()
    work(points)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(time.perf_counter() - start, time.process_time() - before, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=DEFAULT, help="points x dimensions: 20000x3")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each engine")
    parser.add_argument("--graphs", nargs="*", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--engines", nargs="*", help="only these")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, name, n, d = given.one
        run(kind, name, int(n), int(d))
        return
    print(f"{'':32} {'wall':>9} {'processor':>11} {'peak':>10}")
    for kind in given.graphs:
        for size in given.sizes:
            n, d = size.split("x")
            for name, (module, _) in ENGINES[kind].items():
                if find_spec(module) is None or (given.engines and name not in given.engines):
                    continue
                command = [sys.executable, __file__, "--one", kind, name, n, d]
                what = f"{kind} {int(n):>9,} x {d:<3} {name:<13}"
                try:
                    done = subprocess.run(
                        command,
                        capture_output=True,
                        text=True,
                        timeout=given.limit,
                        env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
                        check=True,
                    )
                except subprocess.TimeoutExpired:
                    print(f"{what} not within {given.limit:.0f} s", flush=True)
                except subprocess.CalledProcessError as error:
                    print(f"{what} failed: {error.stderr.strip().splitlines()[-1]}", flush=True)
                else:
                    wall, processor, peak = map(float, done.stdout.split()[-3:])
                    print(f"{what} {wall:7.1f} s {processor:9.1f} s {peak:6.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
