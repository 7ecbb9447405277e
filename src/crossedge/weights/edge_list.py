"""Pair weights as a list of edges: the form of classical graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossedge.runtime.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class EdgeList:
    """A symmetric matrix W of pair weights with few distinct rows and few non-zero entries.

    Equal points have equal neighbours, so the edges join atoms, which are the distinct points. A
    pair of points u, v with atoms a < b has W[u, v] = weight of the edge (a, b). An edge (a, a)
    stands for the pairs of points inside the atom a.
    """

    atom: Ints  # (n,): the atom of each point
    i: Ints  # (edges,): the ends of the edges, i <= j, each pair once, in the order of (i, j)
    j: Ints
    weight: Floats  # (edges,)
    left_out: float = 0.0  # a bound on the share of the weight that pairs without an edge have
    unit: float = 1.0  # all weights are in this unit
    error: Floats | None = None  # (edges,): standard errors of weights that are estimates

    @classmethod
    def from_pairs(cls, atom: Ints, i: Ints, j: Ints, weight: Floats) -> EdgeList:
        """Build the list from edges in any direction and order, adding weights of equal pairs."""
        low, high = np.minimum(i, j), np.maximum(i, j)
        atoms = int(atom.max()) + 1
        pair = low * atoms + high
        if len(pair) and (weight == weight[0]).all():  # sorting pairs alone is much faster
            pair.sort()
            first = np.flatnonzero(np.diff(pair, prepend=-1))
            total = weight[0] * np.diff(first, append=len(pair))
            low, high = np.divmod(pair[first], atoms)
            return cls(atom, low, high, total)
        order = np.argsort(pair)
        first = np.flatnonzero(np.diff(pair[order], prepend=-1))
        total = np.add.reduceat(weight[order], first) if len(order) else weight
        return cls(atom, low[order][first], high[order][first], total)

    @property
    def n(self) -> int:
        """The number of pooled points."""
        return len(self.atom)

    @cached_property
    def sizes(self) -> Ints:
        """The number of points of each atom, (atoms,)."""
        return np.bincount(self.atom)

    @cached_property
    def degree(self) -> Floats:
        """The row sum of W for a point of each atom, (atoms,)."""
        return self.row_sums(self.weight)

    def row_sums(self, weight: Floats, factor: Floats | None = None) -> Floats:
        """Return the sum over v != u of weight[u, v] factor[v] for a point u of each atom."""
        atoms, own = len(self.sizes), self.inside
        between = weight
        if len(own):
            between = weight.copy()
            between[own] = 0.0
        if factor is None and atoms == self.n:
            to_i, to_j = between, between
        else:
            mass = self.sizes * 1.0 if factor is None else self.sizes * factor
            to_i, to_j = between * mass[self.j], between * mass[self.i]
        sums = np.zeros(atoms)
        sums += np.bincount(self.i, to_i, atoms)
        sums += np.bincount(self.j, to_j, atoms)
        if len(own):
            a = self.i[own]
            one = 1.0 if factor is None else factor[a]
            sums[a] += weight[own] * (self.sizes[a] - 1) * one
        return sums

    @cached_property
    def inside(self) -> Ints:
        """The places of the edges that stand for pairs of points inside an atom."""
        return np.flatnonzero(self.i == self.j)

    @cached_property
    def total(self) -> float:
        """The sum m of the weights over all pairs."""
        return float(self.sizes @ self.degree) / 2

    @cached_property
    def is_count(self) -> bool:
        """Whether every atom is a single point and every weight an integer."""
        whole = (self.weight == np.rint(self.weight)) & (np.abs(self.weight) < 2**53)
        return len(self.sizes) == self.n and bool(whole.all())

    @cached_property
    def step(self) -> float:
        """The greatest common divisor of all weights; 0 if they are not integers."""
        if not self.is_count or not len(self.weight):
            return 0.0
        return float(np.gcd.reduce(self.weight.astype(np.int64)))

    @cached_property
    def degree_step(self) -> float:
        """The greatest common divisor of all differences of degrees; 0 if there is none."""
        if not self.is_count:
            return 0.0
        return float(np.gcd.reduce(np.diff(self.degree.astype(np.int64)), initial=0))

    def dense(self) -> Floats:
        """Return W as an (n, n) matrix."""
        atoms = np.zeros((len(self.sizes), len(self.sizes)))
        atoms[self.i, self.j] = atoms[self.j, self.i] = self.weight
        points = atoms[np.ix_(self.atom, self.atom)]
        np.fill_diagonal(points, 0.0)
        return points
