"""Star-mesh elimination (see star_mesh.py) on sparse graphs: resistances across edges only.

Vertices are taken out in the order of elimination_order.py until a core is left, which is dense. On
the way back, only resistances between vertices that were neighbours on the way out are needed. Like
conductances, they are kept with the star of the vertex that was taken out first; those of the core
are in a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossedge.numerics.trees.elimination_order import Stars, stars_of
from crossedge.numerics.trees.sparse_star_mesh_loops import (
    bring_back,
    bring_back_tangent,
    slots,
    take_out,
    take_out_tangent,
)
from crossedge.numerics.trees.star_mesh import Mesh, padded, solve, tangent_of
from crossedge.runtime.types import Floats, Ints


@dataclass(frozen=True)
class SparseMesh:
    """The result of elimination."""

    stars: Stars
    slot: Ints  # (edges,): where each edge is kept: in the stars, or -1 - its place in the core
    weight: Floats  # (entries,): w of a star's edges when its vertex was taken out
    total: Floats  # (eliminated,): s, the sums of w
    core: tuple[tuple[Ints, Mesh], ...]  # the vertices of each part of the core, and its mesh
    resistance: Floats  # (entries,): R across the edges of stars
    core_resistance: Floats  # (core, core)

    @property
    def edge_resistance(self) -> Floats:
        """Return the resistance across each edge."""
        return _read(self.slot, self.resistance, self.core_resistance)

    def tangent(self, d_conductance: Floats) -> Floats:
        """Return the changes of the edges' resistances for changes of their conductances."""
        d_weight, d_core = _write(self.slot, d_conductance, self.resistance, self.core_resistance)
        lists = self.stars.start, self.stars.member, np.full(len(self.stars.place), -1)
        d_total = np.empty_like(self.total)
        known = self.weight, self.total
        take_out_tangent(*lists, *known, d_weight, d_total, d_core)
        d_core_resistance = np.zeros_like(d_core)
        for part, mesh in self.core:
            d_part = tangent_of(mesh, padded(d_core[np.ix_(part, part)]))
            d_core_resistance[np.ix_(part, part)] = d_part[:, : len(part)]
        d_resistance = np.empty_like(self.resistance)
        found = self.resistance, self.core_resistance, d_resistance, d_core_resistance
        bring_back_tangent(*lists, *known, d_weight, d_total, *found)
        return _read(self.slot, d_resistance, d_core_resistance)


def eliminate(n: int, i: Ints, j: Ints, conductance: Floats) -> SparseMesh:
    """Compute the resistances across the edges of a graph, which may have several parts.

    Parallel edges add up.
    """
    stars = stars_of(n, i, j)
    size = n - stars.eliminated
    ends = np.stack([stars.place[i], stars.place[j]])
    slot = slots(*stars, ends.min(0), ends.max(0))
    empty = np.empty(len(stars.member)), np.empty((size, size))
    weight, core = _write(slot, conductance, *empty)
    lists = stars.start, stars.member, np.full(n, -1)
    total = np.empty(stars.eliminated)
    take_out(*lists, weight, total, core)
    parts, core_resistance = [], np.zeros((size, size))
    for part in _parts(core):
        mesh = solve(padded(core[np.ix_(part, part)]))
        core_resistance[np.ix_(part, part)] = mesh.resistance
        parts.append((part, mesh))
    resistance = np.empty_like(weight)
    bring_back(*lists, weight, total, resistance, core_resistance)
    return SparseMesh(stars, slot, weight, total, tuple(parts), resistance, core_resistance)


def _parts(core: Floats) -> list[Ints]:
    """Return the vertices of each connected part of the core."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not len(core):
        return []
    label = connected_components(csr_array(core > 0), directed=False)[1]
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


def _read(slot: Ints, of_stars: Floats, of_core: Floats) -> Floats:
    return np.append(of_stars, of_core.ravel()[::-1])[slot]


def _write(
    slot: Ints, values: Floats, like_stars: Floats, like_core: Floats
) -> tuple[Floats, Floats]:
    """Add up the values of edges at their slots, in the core on both sides of the diagonal."""
    all_slots = np.zeros(like_stars.size + like_core.size)
    np.add.at(all_slots, slot, values)
    core = all_slots[like_stars.size :][::-1].reshape(like_core.shape)
    return all_slots[: like_stars.size], core + core.T
