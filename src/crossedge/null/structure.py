"""What the shape of the weights tells of their null, beyond moments."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from crossedge.null.forests import Forest, forest_of, log_count_tail
from crossedge.null.frozen import Frozen, frozen_of
from crossedge.null.mixtures import is_listed, log_mixture_tail
from crossedge.null.strata import Stratifications, strata_of
from crossedge.null.tilted import TiltedLabellings
from crossedge.statistics.label_moments import Form, LabelMoments, is_cross_count
from crossedge.weights import PairWeights

MOST_TILTED = 500  # points, up to which tilted labellings are cheap; laws err little above
SAME = 1e-8  # z-scores that differ by less
TAME = 20.0  # excess kurtosis, up to which sums of third and fourth powers can be relied on
FEW = 8  # points of a sample, whose labellings are too few for any law


@dataclass(frozen=True)
class Structure:
    """Edges without cycles, edges that are whole but for a few, and points that fall into kinds."""

    forest: Forest | None = None
    strata: Stratifications | None = None
    frozen: Frozen | None = None
    of_whole: Structure | None = None  # that of the whole edges
    tilted: dict[tuple[Form, int], TiltedLabellings] = field(default_factory=dict)

    def is_exact(self, moments: LabelMoments, form: Form, sign: int) -> bool:
        """Whether `log_tail` goes through all labellings, in one way or the other."""
        if self.forest is not None and is_cross_count(form, sign):
            return True
        return is_listed(self.strata, moments, form)

    @property
    def can_tilt(self) -> bool:
        return self.strata is not None and self.strata.weights.n <= MOST_TILTED

    def is_sure(self, moments: LabelMoments, form: Form) -> bool:
        """Whether laws are good to a few percent at least where p is not small."""
        enough = min(moments.n_x, moments.n_y) >= FEW
        return enough and self.frozen is None and moments.excess(form) is not None

    def log_tail(
        self, z: torch.Tensor, moments: LabelMoments, form: Form, sign: int
    ) -> torch.Tensor | None:
        """The logarithm of P(sign Z >= z), for a form Z of mean 0 and variance 1.

        None where moments tell more. It has no gradient.
        """
        exact = log_count_tail(z, self.forest, moments, form, sign)
        return log_mixture_tail(z, self.strata, moments, form, sign) if exact is None else exact

    def share_of_both(self, value: float, moments: LabelMoments) -> float:
        """How often the weighted count and the size of the difference have such z-scores."""
        assert self.strata is not None
        law = moments.law(moments.difference)
        other = moments.difference.b * self.strata.parts[1] * (moments.unit / float(law.std))
        tilted = self.tilted_labellings(moments, moments.weighted, 1)
        return tilted.share_of_both(value - SAME, other)

    def tilted_labellings(self, moments: LabelMoments, form: Form, sign: int) -> TiltedLabellings:
        """Of sign Z."""
        if (form, sign) not in self.tilted:
            assert self.strata is not None
            V, degree = self.strata.parts
            law, excess = moments.law(form), moments.excess(form)
            known = [1.0, 0.0, 1.0]
            if excess is not None and excess < TAME:
                known += [sign * float(law.skewness), 3 + float(excess)]
            a, b = moments.in_t_and_l(form)
            scale = sign * moments.unit / float(law.std)
            self.tilted[form, sign] = TiltedLabellings(
                scale * a * V, scale * b * degree, moments.n_x, np.array(known)
            )
        return self.tilted[form, sign]


def structure_of(weights: PairWeights, n_x: int) -> Structure:
    frozen = frozen_of(weights, n_x)
    return Structure(
        forest_of(weights),
        strata_of(weights, n_x),
        frozen,
        None if frozen is None else structure_of(frozen.whole, n_x),
    )
