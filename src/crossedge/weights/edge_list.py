"""Sparse pair weights: what a graph on the pooled sample is to the rest of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeList:
    """A symmetric matrix W of pair weights with few distinct rows and few non-zero entries.

    Equal points have equal neighbours, so a graph lives on atoms, the distinct points. Every pair
    of points u, v with atoms a < b has W[u, v] = weight of the edge a, b. An edge a, a is for the
    pairs of points inside the atom.
    """

    atom: Ints  # (n,): the atom of each point
    i: Ints  # (edges,), i <= j, each pair once
    j: Ints
    weight: Floats  # (edges,)

    @classmethod
    def from_pairs(cls, atom: Ints, i: Ints, j: Ints, weight: Floats) -> EdgeList:
        """Edges in any direction and order; weights of the same pair add up."""
        low, high = np.minimum(i, j), np.maximum(i, j)
        pair = low * (atom.max() + 1) + high
        order = np.argsort(pair, kind="stable")
        first = np.flatnonzero(np.diff(pair[order], prepend=-1))
        total = np.add.reduceat(weight[order], first) if len(order) else weight
        return cls(atom, low[order][first], high[order][first], total)

    @property
    def n(self) -> int:
        return len(self.atom)

    @property
    def unit(self) -> float:
        """The weights are as they are: sums of them do not leave the range."""
        return 1.0

    @cached_property
    def sizes(self) -> Ints:
        """(atoms,): how many points each atom holds."""
        return np.bincount(self.atom)

    @cached_property
    def degree(self) -> Floats:
        """(atoms,): the sum of W over the row of a point of each atom."""
        return self.row_sums(self.weight)

    def row_sums(self, weight: Floats, factor: Floats | None = None) -> Floats:
        """(atoms,): sum over v != u of w[u, v] factor[v], for a point u of each atom."""
        atoms = len(self.sizes)
        factor = np.ones(atoms) if factor is None else factor
        mass = self.sizes * factor
        inside = self.i == self.j
        i, j, between = self.i[~inside], self.j[~inside], weight[~inside]
        sums = np.zeros(atoms)
        sums += np.bincount(i, between * mass[j], atoms)
        sums += np.bincount(j, between * mass[i], atoms)
        own = self.i[inside]
        sums[own] += weight[inside] * (mass[own] - factor[own])
        return sums

    @cached_property
    def total(self) -> float:
        """m, the sum of W over all pairs."""
        return float(self.sizes @ self.degree) / 2

    @cached_property
    def is_count(self) -> bool:
        """Whether every atom is a point and every weight a whole number."""
        whole = (self.weight == np.rint(self.weight)) & (np.abs(self.weight) < 2**53)
        return len(self.sizes) == self.n and bool(whole.all())

    @cached_property
    def step(self) -> float:
        """Counts of edges are multiples of this; 0 if they have no common step."""
        if not self.is_count or not len(self.weight):
            return 0.0
        return float(np.gcd.reduce(self.weight.astype(np.int64)))

    @cached_property
    def degree_step(self) -> float:
        """Degrees differ by multiples of this."""
        if not self.is_count:
            return 0.0
        return float(np.gcd.reduce(np.diff(self.degree.astype(np.int64)), initial=0))

    def dense(self) -> torch.Tensor:
        """W as an (n, n) tensor."""
        atoms = np.zeros((len(self.sizes), len(self.sizes)))
        atoms[self.i, self.j] = atoms[self.j, self.i] = self.weight
        points = atoms[np.ix_(self.atom, self.atom)]
        np.fill_diagonal(points, 0.0)
        return torch.from_numpy(points)
