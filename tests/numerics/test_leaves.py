"""Leaves hold every point once, and no search over them misses a pair."""

import numpy as np
import pytest

from brute_force import lp_distances
from crossedge.data.distances import point_distances
from crossedge.numerics.leaves import (
    CAPACITY,
    GROUP,
    build_leaves,
    filter_of,
    gaps,
    leaves_within,
    reach_in_filter,
    reduced_distance,
)
from crossedge.numerics.near_pairs import near_pairs, scratch_for

NORMS = [1.0, 1.5, 2.0, 3.0, 7.0, 100.0, np.inf]


def in_leaf(leaves, leaf):
    return leaves.ids[leaf][leaves.ids[leaf] >= 0]


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 2 * GROUP * CAPACITY + 1, 70_000])
def test_leaves_are_full_and_boxes_are_tight(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    leaves = build_leaves(points)
    sizes = (leaves.ids >= 0).sum(1)
    assert (sizes[:-1] == CAPACITY).all()
    np.testing.assert_array_equal(np.sort(leaves.ids[leaves.ids >= 0]), np.arange(n))
    for leaf in range(len(sizes)):
        inside = points[in_leaf(leaves, leaf)]
        np.testing.assert_array_equal(leaves.points[leaf, :, : len(inside)], inside.T)
        np.testing.assert_array_equal(leaves.low[:, leaf], inside.min(0))
        np.testing.assert_array_equal(leaves.high[:, leaf], inside.max(0))
    for group in range(leaves.group_low.shape[1]):
        part = slice(group * GROUP, (group + 1) * GROUP)
        np.testing.assert_array_equal(leaves.group_low[:, group], leaves.low[:, part].min(1))
        np.testing.assert_array_equal(leaves.group_high[:, group], leaves.high[:, part].max(1))


def clouds(d):
    """Points whose distances span many orders of magnitude, and some that do not."""
    rng = np.random.default_rng(d)
    normal = rng.normal(size=(300, d))
    return {
        "normal": normal,
        "heavy tails": rng.standard_t(0.7, size=(300, d)),
        "far from the origin": normal + 1e9,
        "two scales": np.vstack([normal[:150], 5 + 1e-12 * normal[150:]]),
        "tiny clusters": np.repeat(normal[:5], 60, axis=0) + 1e-200 * normal * (normal > 2),
    }


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_the_filter_passes_all_pairs_within_reach(p, d):
    """The reach is the distance of one of the pairs, so that the last bit matters."""
    use, scratch = filter_of(p, d), scratch_for(d)
    for cloud in clouds(d).values():
        points = point_distances(cloud, p).points
        leaves = build_leaves(points)
        for leaf, other in np.ndindex(len(leaves.scale), len(leaves.scale)):
            mine, theirs = in_leaf(leaves, leaf), in_leaf(leaves, other)
            exact = np.array(
                [[reduced_distance(points[[i]].T, 0, points[[j]].T, 0, p) for j in theirs[::9]]
                 for i in mine[::9]]
            )  # fmt: skip
            reach = np.full(CAPACITY, -1.0)
            limit = np.sort(exact, axis=1)[:, exact.shape[1] // 2]
            reach[: len(mine) : 9] = [reach_in_filter(far, use) for far in limit]
            count = near_pairs(leaf, other, leaves, reach, use.q, scratch)
            found = set(zip(scratch[5][:count].tolist(), scratch[6][:count].tolist(), strict=True))
            for i, j in np.argwhere(exact <= limit[:, None]):
                assert (9 * i, 9 * j) in found


@pytest.mark.parametrize("d", [1, 3, 10, 40])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_the_filter_stops_most_other_pairs(p, d):
    """A filter that passes everything would be right, and of no use."""
    cloud = np.random.default_rng(0).normal(size=(128, d)) + 1e6
    scaled = point_distances(cloud, p)
    leaves, use, scratch = build_leaves(scaled.points), filter_of(p, d), scratch_for(d)
    mine, theirs = in_leaf(leaves, 0), in_leaf(leaves, 1)
    closest = np.ldexp(lp_distances(cloud, p)[np.ix_(mine, theirs)].min(), scaled.exponent)
    square = closest**2 if p == 2 else closest
    reach = np.full(CAPACITY, reach_in_filter(square, use))
    count = near_pairs(0, 1, leaves, reach, use.q, scratch)
    assert 1 <= count <= (1 if p != 3 else 200)


@pytest.mark.parametrize("p", NORMS)
def test_boxes_bound_distances_from_below(p):
    points = np.random.default_rng(1).normal(size=(1500, 3))
    leaves, use = build_leaves(points), filter_of(p, 3)
    distances = lp_distances(points, p)
    n_leaves = len(leaves.scale)
    bound = np.empty(n_leaves)
    for leaf in range(n_leaves):
        mine = np.array([leaves.low[:, leaf], leaves.high[:, leaf]])
        gaps(leaves.low, leaves.high, 0, n_leaves, mine, use.q, bound)
        least = np.array(
            [
                distances[np.ix_(in_leaf(leaves, leaf), in_leaf(leaves, other))].min()
                for other in range(n_leaves)
            ]
        )
        lower = np.sqrt(bound) if use.q == 2 else bound
        assert (lower <= use.factor * least).all()
        reach = float(np.median(least))
        found, bounds = leaves_within(leaf, leaves, reach * use.factor, use.q)
        expected = {int(other) for other in np.flatnonzero(least <= reach)} - {leaf}
        assert expected <= set(found.tolist())
        assert leaf not in found
        np.testing.assert_array_equal(bounds, bound[found])
