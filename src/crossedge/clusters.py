"""Tests on samples that no machine can hold: nearest neighbours by blocks, on a Dask cluster.

The pooled sample is cut into blocks. A task finds the neighbours of every point of two blocks among
the points of both; the nearest of all that were found are its neighbours. A second round of tasks,
again for each two blocks, adds up the edges between them. For null="normal" only counts and degrees
leave the workers. For other nulls the edges, k for each point, are collected on the client.

Distances, ties and sums are those of one machine, and so is the answer. A task that is lost with
its worker is done again by another one.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossedge.data.distances import check_norm, point_distances
from crossedge.data.samples import Samples
from crossedge.moments import LabelMoments
from crossedge.moments.centred import SecondSums
from crossedge.null import Law, Normal
from crossedge.numerics.tolerances import TIE
from crossedge.result import TwoSampleResult
from crossedge.runtime.types import Floats, Ints
from crossedge.single import pairs_test
from crossedge.statistics import Linear, Statistic
from crossedge.weights import EdgeList, NearestNeighbours, Weights
from crossedge.weights.candidates import candidates_of

MERGED_AT_ONCE = 8  # lists of neighbours that one task joins


def is_elsewhere(sample: object) -> bool:
    """Return whether a sample is a Dask array or a folder of parquet files."""
    if isinstance(sample, str):
        return sample.endswith(".parquet") or Path(sample).is_dir()
    return isinstance(sample, Path) or type(sample).__module__.startswith("dask")


class Near(NamedTuple):
    """Candidates for the neighbours of the points of one block."""

    own: Ints  # (pairs,): a point of the block
    other: Ints  # (pairs,): a point of any block
    length: Floats  # (pairs,): their distance


class Edges(NamedTuple):
    """The chosen neighbours of the points of one block."""

    own: Ints
    other: Ints
    weight: Floats


def cluster_test(
    x: Any,
    y: Any,
    weights: Weights | None,
    statistic: Statistic,
    null: Law,
    distance: Any,
) -> TwoSampleResult:
    """Run the test of k nearest neighbours on samples that are elsewhere."""
    if not isinstance(weights, NearestNeighbours) or weights.is_smooth:
        raise ValueError(
            "samples on a cluster need weights=ce.NearestNeighbours(k), at temperature 0: "
            "give these, or arrays in memory"
        )
    if isinstance(distance, str) or callable(distance):
        raise ValueError("samples on a cluster need an l_p distance: give a number of at least 1")
    check_norm(distance, "p >= 1 for l_p")
    dask = _dask()
    files = [str(file) for sample in (x, y) if _is_path(sample) for file in _files(sample)]
    if files:
        _check_columns(files)
    parts_x, parts_y = _blocks_of(x, "x", dask), _blocks_of(y, "y", dask)
    sizes = list(dask.compute(*(dask.delayed(_checked_size)(part) for part in parts_x + parts_y)))
    columns = {width for size, width in sizes if size}
    if len(columns) != 1:
        raise ValueError(f"the blocks of x and y have {sorted(columns)} columns: give equal ones")
    counts = np.array([size for size, _ in sizes])
    n_x, n_y = int(counts[: len(parts_x)].sum()), int(counts[len(parts_x) :].sum())
    if not (n_x and n_y):
        raise ValueError("a sample is empty: give at least one point of each")
    weights.check_size(n_x + n_y)
    blocks = [part for part, size in zip(parts_x + parts_y, counts, strict=True) if size]
    starts = np.concatenate([[0], np.cumsum(counts[counts > 0])])
    edges = _edges(blocks, starts, weights.k, float(distance), dask)
    if isinstance(null, Normal):
        return _by_counts(edges, starts, n_x, weights, statistic, dask)
    own, other, weight = (np.concatenate(each) for each in zip(*dask.compute(*edges), strict=True))
    pairs = EdgeList.from_pairs(np.arange(n_x + n_y), own, other, weight)
    in_x = np.arange(n_x + n_y) < n_x
    return pairs_test(weights, pairs, statistic, null, Samples(np.empty((len(in_x), 0)), in_x))


def _dask() -> Any:
    try:
        import dask
    except ModuleNotFoundError:
        raise ImportError("samples elsewhere need dask: pip install 'crossedge[cluster]'") from None
    return dask


def _is_path(sample: object) -> bool:
    return isinstance(sample, str | Path)


def _files(sample: str | Path) -> list[Path]:
    """Return the parquet files of a folder, or the one file that is meant."""
    path = Path(sample)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise FileNotFoundError(f"{str(sample)!r} has no parquet files")
    return files


def _blocks_of(sample: Any, name: str, dask: Any) -> list[Any]:
    """Return the blocks of a sample, each a promise of (n, d) points."""
    if not is_elsewhere(sample):
        raise TypeError(f"{name} is in memory and the other sample is not: give both alike")
    if _is_path(sample):
        return [dask.delayed(_read_points)(str(file)) for file in _files(sample)]
    if not hasattr(sample, "rechunk") or sample.ndim != 2:
        raise TypeError(f"{name} is no (n, d) Dask array: give one (frames: .to_dask_array())")
    return list(sample.rechunk({1: -1}).to_delayed()[:, 0])


def _read_points(file: str) -> Floats:
    """Return the columns of a parquet file as (n, d) doubles, in the order of their names."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(file)
    return np.column_stack([table.column(name).to_numpy() for name in _column_names(file)]).astype(
        np.float64
    )


def _column_names(file: str) -> list[str]:
    """Return the names of the columns of a parquet file, or raise if one has no numbers."""
    import pyarrow
    import pyarrow.parquet as parquet

    schema = parquet.read_schema(file)
    fields = [field for field in schema if not field.name.startswith("__index_level_")]
    for field in fields:
        kind = field.type
        if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
            raise TypeError(f"{file} has a column {field.name!r} of {kind}: give numbers")
    return sorted(field.name for field in fields)


def _check_columns(files: list[str]) -> None:
    """Raise ValueError unless all parquet files have the same columns."""
    first = _column_names(files[0])
    for file in files[1:]:
        if _column_names(file) != first:
            raise ValueError(
                f"{file} has columns {_column_names(file)} and {files[0]} has {first}: "
                "all files must share their columns"
            )


def _checked_size(points: Any) -> tuple[int, int]:
    """Return the numbers of points and columns of a block, or raise if it is not finite."""
    points = np.asarray(points)
    if points.dtype.kind not in "biuf" or not np.isfinite(points).all():
        raise ValueError("x or y has values that are not finite numbers: drop such rows")
    return points.shape[0], points.shape[1]


def _edges(blocks: list[Any], starts: Ints, k: int, p: float, dask: Any) -> list[Any]:
    """Return, for each block, a promise of the chosen neighbours of its points."""
    found: list[list[Any]] = [[] for _ in blocks]
    search = dask.delayed(_search, nout=2)
    for a, b in combinations_with_replacement(range(len(blocks)), 2):
        of_a, of_b = search(blocks[a], blocks[b] if b > a else None, starts[a], starts[b], k, p)
        found[a].append(of_a)
        if b > a:
            found[b].append(of_b)
    merge, choose = dask.delayed(_merge), dask.delayed(_choose)
    for place, parts in enumerate(found):
        while len(parts) > 1:
            groups = range(0, len(parts), MERGED_AT_ONCE)
            parts = [merge(parts[at : at + MERGED_AT_ONCE], k) for at in groups]
        found[place] = parts
    return [choose(parts[0], k) for parts in found]


def _search(a: Any, b: Any, start_a: int, start_b: int, k: int, p: float) -> tuple[Near, Near]:
    """Return the nearest neighbours of the points of two blocks, or of one, among their points."""
    a = np.asarray(a, np.float64)
    both = a if b is None else np.concatenate([a, np.asarray(b, np.float64)])
    number = np.arange(len(both)) + start_a
    number[len(a) :] += start_b - start_a - len(a)
    nothing = Near(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    if len(both) < 2:
        return nothing, nothing
    distances = point_distances(both, p)
    graph = NearestNeighbours(min(k, len(both) - 1)).classical_edges(distances)
    pairs = candidates_of(graph, distances)
    own, other = np.concatenate([pairs.i, pairs.j]), np.concatenate([pairs.j, pairs.i])
    length, in_a = np.concatenate([pairs.length, pairs.length]), own < len(a)
    of_a, of_b = (
        _nearest(Near(number[own[side]], number[other[side]], length[side]), k)
        for side in (in_a, ~in_a)
    )
    return of_a, of_b


def _merge(parts: list[Near], k: int) -> Near:
    """Return the nearest of several lists, in which some pairs stand more than once."""
    own, other, length = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((other, own))
    own, other, length = own[order], other[order], length[order]
    new = np.ones(len(own), np.bool_)
    new[1:] = (own[1:] != own[:-1]) | (other[1:] != other[:-1])
    return _nearest(Near(own[new], other[new], length[new]), k)


def _nearest(near: Near, k: int) -> Near:
    """Return the k nearest of each point, and all that tie with the last of them."""
    own, other, length, rank, kth = _ranked(near, k)
    kept = (rank < k) | (length <= kth * TIE)
    return Near(own[kept], other[kept], length[kept])


def _choose(near: Near, k: int) -> Edges:
    """Return the chosen neighbours; those that tie with the last share what is left."""
    own, other, length, _, kth = _ranked(near, k)
    kept = length <= kth * TIE
    own, other, length, kth = own[kept], other[kept], length[kept], kth[kept]
    tied = length * TIE >= kth
    first = np.flatnonzero(np.diff(own, prepend=-1))
    group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(own))))
    ties = np.add.reduceat(tied.astype(np.float64), first)
    nearer = np.add.reduceat((~tied).astype(np.float64), first)
    return Edges(own, other, np.where(tied, ((k - nearer) / ties)[group], 1.0))


def _ranked(near: Near, k: int) -> tuple[Ints, Ints, Floats, Ints, Floats]:
    """Return the pairs in order, their rank among those of a point, and the k-th length there."""
    order = np.lexsort((near.other, near.length, near.own))
    own, other, length = near.own[order], near.other[order], near.length[order]
    first = np.flatnonzero(np.diff(own, prepend=-1))
    count = np.diff(np.append(first, len(own)))
    rank = np.arange(len(own)) - np.repeat(first, count)
    kth: Floats = np.repeat(length[first + np.minimum(k, count) - 1], count)
    return own, other, length, rank, kth


def _by_counts(
    edges: list[Any], starts: Ints, n_x: int, weights: Weights, statistic: Statistic, dask: Any
) -> TwoSampleResult:
    """Run the test by a normal law, from counts and degrees that the workers reduce."""
    n = int(starts[-1])
    between, add = dask.delayed(_between, nout=3), dask.delayed(_add)
    sums, degrees = [], [[] for _ in edges]  # type: ignore[var-annotated]
    for a, b in combinations_with_replacement(range(len(edges)), 2):
        found = between(edges[a], edges[b], starts[[a, a + 1, b, b + 1]].tolist(), n_x)
        sums.append(found[0])
        degrees[a].append(found[1])
        if b > a:
            degrees[b].append(found[2])
    squares = [dask.delayed(_degree_squares)(add(parts)) for parts in degrees]
    (in_x, in_y, total, squared), *of_degrees = dask.compute(add(sums), *squares)
    degree, degree2 = np.sum(of_degrees, 0)
    centred = float(degree2 - degree**2 / n)
    mean = total / (n * (n - 1) / 2)
    per_point = 1 / (n - 2) if n > 2 else 0.0
    without_effects = float(squared - mean * total - centred * per_point)
    second = SecondSums(np.float64(total), np.float64(without_effects), np.float64(centred))
    moments = LabelMoments.from_sums(second, n_x, n - n_x)
    law = statistic.law
    assert law is not None
    given = statistic, np.float64(in_x), np.float64(in_y), moments
    log_p = float(law.log_pvalue(*given, Normal.log_tail))
    value = float(statistic.value(*given[1:]))
    expected = (
        law.mean_and_std(statistic, moments)
        if isinstance(law, Linear)
        else law.null_moments(statistic, moments, Normal.log_tail)
    )
    return TwoSampleResult(
        statistic=value,
        pvalue=max(math.exp(log_p), 5e-324),
        log_pvalue=log_p,
        zscore=(value - expected.mean) / expected.std if expected.std else 0.0,
        null_mean=expected.mean,
        null_std=expected.std,
        null_skewness=expected.skewness,
        null_distribution=None,
        n_x=n_x,
        n_y=n - n_x,
        weights=weights,
        statistic_name=statistic.name,
        null=Normal.name,
        law="normal approximation",
        n_resamples=0,
        exact=False,
    )


def _between(a: Edges, b: Edges, borders: list[int], n_x: int) -> tuple[Floats, Floats, Floats]:
    """Return sums over the edges between two blocks, and what these add to the degrees of both.

    The sums are those of W inside x, inside y and in all, and that of W^2. The blocks may be one.
    """
    first_a, last_a, first_b, last_b = borders
    there, back = _to(a, first_b, last_b), _to(b, first_a, last_a)
    parts = (there,) if first_a == first_b else (there, back)
    own, other, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    low, high = np.minimum(own, other), np.maximum(own, other)
    order = np.lexsort((high, low))
    low, high, weight = low[order], high[order], weight[order]
    new = np.ones(len(low), np.bool_)
    new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    first = np.flatnonzero(new)
    low, high = low[first], high[first]
    W = np.add.reduceat(weight, first) if len(first) else weight
    in_x, in_y = (high < n_x), (low >= n_x)
    sums = np.array([W[in_x].sum(), W[in_y].sum(), W.sum(), (W * W).sum()])
    ends, both = np.concatenate([low, high]), np.concatenate([W, W])
    degrees = []
    for start, stop in ((first_a, last_a), (first_b, last_b)):
        here = (ends >= start) & (ends < stop)
        degree = np.bincount(ends[here] - start, both[here], stop - start)
        degrees.append(degree.astype(np.float64))  # counts, if there are no edges
    return sums, degrees[0], degrees[1]


def _to(edges: Edges, first: int, last: int) -> Edges:
    """Return the edges to the points from first to last - 1."""
    here = (edges.other >= first) & (edges.other < last)
    return Edges(edges.own[here], edges.other[here], edges.weight[here])


def _add(parts: list[Floats]) -> Floats:
    total: Floats = np.sum(parts, axis=0)
    return total


def _degree_squares(degree: Floats) -> Floats:
    return np.array([degree.sum(), degree @ degree])
