"""Somebody else's graph: edges from any engine, as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crossedge.data.distances import Distances
from crossedge.runtime.arrays import is_tensor, to_tensor
from crossedge.runtime.types import Array, Floats, Ints
from crossedge.weights.dense import LEAST_IN_RANGE, MOST_IN_RANGE
from crossedge.weights.edge_list import EdgeList
from crossedge.weights.family import Weights

SYMMETRIC = 1e-12  # of the largest entry: a matrix and its transpose that differ by less are equal


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Weights):
    """A graph on the pooled sample that was built elsewhere, by faiss, cuVS or a database.

    The p-value is valid however approximate the graph is, provided that it was built blind to the
    labels: without knowing which points are from x and which from y, and without preferring either
    by their order.

    Parameters
    ----------
    edges : array, scipy sparse matrix, path or list of paths
        (m, 2) integers, the indices of pooled points, x first and then y. Edges may have any
        direction, and the weights of equal pairs add up: a pair of which each point is a neighbour
        of the other has weight 2, as in `NearestNeighbours`. A sparse (n, n) matrix is taken as W
        if it is symmetric; otherwise W is the sum of it and its transpose. A path is a parquet
        file, or a folder of them, with columns i, j and perhaps weight.
    weights : array, optional
        (m,) weights of the edges, finite and non-negative; by default all are 1.

    Raises
    ------
    TypeError
        If the edges are not pairs of integers.
    ValueError
        If an edge joins a point to itself, or a weight is negative or not finite.

    See Also
    --------
    two_sample : The test; for a graph without points give x=None, and y a mask of its points.
    NearestNeighbours, SpanningTree : Graphs that are built here.

    Examples
    --------
    >>> import numpy as np
    >>> import crossedge as ce
    >>> path = ce.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> in_y = np.array([False, False, False, True, True, True])
    >>> ce.two_sample(None, in_y, path).pvalue  # the runs test: two of 20 labellings have two runs
    0.1
    """

    edges: Any
    weights: Any = None
    i: Ints = field(init=False)
    j: Ints = field(init=False)
    weight: Floats = field(init=False)
    points: int = field(init=False)  # the least number of points that the edges need

    def __post_init__(self) -> None:
        i, j, weight, points = _read(self.edges, self.weights)
        # what was given is not kept: a graph may fill half of the memory
        for name, value in zip(
            ("edges", "weights", "i", "j", "weight", "points"),
            (None, None, i, j, weight, points),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Graph({len(self.i):,} edges)"

    @property
    def name(self) -> str:
        return f"given graph of {len(self.i):,} edges"

    @property
    def default_statistic(self) -> str:
        return "cross"

    @property
    def is_smooth(self) -> bool:
        return False

    @property
    def peak_matrices(self) -> float:
        return 0.0

    def check_size(self, n: int) -> None:
        if self.points > n:
            raise ValueError(
                f"the graph has an edge at point {self.points - 1} of {n} pooled points: "
                f"indices run from 0 to {n - 1}, x first"
            )

    def pairs(self, distances: Distances) -> EdgeList:
        self.check_size(distances.n)
        largest, unit = float(self.weight.max()), 1.0
        if largest > 0 and not LEAST_IN_RANGE < largest < MOST_IN_RANGE:
            unit = math.ldexp(1.0, min(max(math.frexp(largest)[1], -1021), 1023))
        edges = EdgeList.from_pairs(np.arange(distances.n), self.i, self.j, self.weight / unit)
        return replace(edges, unit=unit)

    def of_matrices(self, distances: Array) -> Array:
        n = distances.shape[-1]
        W = EdgeList.from_pairs(np.arange(n), self.i, self.j, self.weight).dense()
        together = np.broadcast_to(W, distances.shape).copy()
        return to_tensor(together).to(distances) if is_tensor(distances) else together


def _read(edges: Any, weights: Any) -> tuple[Ints, Ints, Floats, int]:
    """Return the ends and weights of all edges, and the least number of points."""
    paths = _paths(edges)
    if paths or hasattr(edges, "tocoo"):
        if weights is not None:
            raise ValueError("weights does not go with a matrix or files, which have their own")
        i, j, weight, points = _read_files(paths) if paths else _of_matrix(edges)
    else:
        pairs = edges.detach().cpu().numpy() if is_tensor(edges) else np.asarray(edges)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise TypeError(f"edges has shape {pairs.shape}: give (m, 2) indices of points")
        if pairs.dtype.kind not in "iu":
            raise TypeError(f"edges is {pairs.dtype}: give integers, the indices of points")
        i, j = (np.ascontiguousarray(one, dtype=np.int64) for one in pairs.T)
        given = weights.detach().cpu().numpy() if is_tensor(weights) else weights
        weight = np.ones(len(i)) if given is None else np.asarray(given, np.float64)
        points = 0
    if weight.shape != i.shape:
        raise ValueError(f"weights has shape {weight.shape}: give one for each of {len(i)} edges")
    if not len(i):
        raise ValueError("edges is empty: give one edge at least")
    if min(i.min(), j.min()) < 0:
        raise ValueError(f"edges has a negative index {min(i.min(), j.min())}: they begin at 0")
    if (i == j).any():
        raise ValueError(
            f"edges joins point {i[i == j][0]} to itself: drop such edges "
            "(a search for neighbours often finds each point itself first)"
        )
    if not np.isfinite(weight).all() or weight.min() < 0:
        raise ValueError("weights must be finite and non-negative")
    return i, j, weight, max(int(max(i.max(), j.max())) + 1, points)


def _of_matrix(matrix: Any) -> tuple[Ints, Ints, Floats, int]:
    n = matrix.shape[0]
    if matrix.shape != (n, n):
        raise ValueError(f"edges is a matrix of shape {matrix.shape}: give a square one")
    whole = matrix.tocoo()
    asymmetry = abs(matrix - matrix.T)
    if asymmetry.max() <= SYMMETRIC * abs(matrix).max():
        upper = whole.row <= whole.col
        i, j, weight = whole.row[upper], whole.col[upper], whole.data[upper]
    else:
        i, j, weight = whole.row, whole.col, whole.data
    used = weight != 0
    return i[used].astype(np.int64), j[used].astype(np.int64), weight[used].astype(np.float64), n


def _paths(edges: Any) -> list[Path]:
    """Return the files that are meant, or [] if none are."""
    given = [edges] if isinstance(edges, str | Path) else edges
    if not isinstance(given, list | tuple) or not given:
        return []
    if not all(isinstance(one, str | Path) for one in given):
        return []
    found: list[Path] = []
    for path in map(Path, given):
        if not path.exists():
            raise FileNotFoundError(
                f"{path} does not exist: give a parquet file or a folder of them"
            )
        found += sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not found:
        raise ValueError(f"{given[0]} has no .parquet files")
    return found


def _read_files(paths: list[Path]) -> tuple[Ints, Ints, Floats, int]:
    try:
        import pyarrow.parquet as parquet
    except ModuleNotFoundError:
        raise ImportError("parquet needs pyarrow: pip install 'crossedge[studies]'") from None
    parts: list[tuple[Any, Any, Any]] = []
    for path in paths:
        table = parquet.read_table(path)
        missing = [name for name in ("i", "j") if name not in table.column_names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}: give i, j and perhaps weight")
        i, j = (table.column(name).to_numpy() for name in ("i", "j"))
        if i.dtype.kind not in "iu" or j.dtype.kind not in "iu":
            raise TypeError(f"{path} has indices of {i.dtype} and {j.dtype}: give integers")
        has_weight = "weight" in table.column_names
        parts.append((i, j, table.column("weight").to_numpy() if has_weight else np.ones(len(i))))
    i, j, weight = (np.concatenate(one) for one in zip(*parts, strict=True))
    return i.astype(np.int64), j.astype(np.int64), weight.astype(np.float64), 0
