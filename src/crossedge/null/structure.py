"""What the shape of the weights tells of their null, beyond moments."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from crossedge.null.forests import Forest, forest_of, log_count_tail
from crossedge.null.frozen import Frozen, frozen_of
from crossedge.null.mixtures import log_mixture_tail
from crossedge.null.strata import Stratifications, strata_of
from crossedge.statistics.label_moments import Form, LabelMoments
from crossedge.weights import PairWeights


@dataclass(frozen=True)
class Structure:
    """Edges without cycles, edges that are whole but for a few, and points that fall into kinds."""

    forest: Forest | None = None
    strata: Stratifications | None = None
    frozen: Frozen | None = None
    of_whole: Structure | None = None  # that of the whole edges

    def log_tail(
        self, z: torch.Tensor, moments: LabelMoments, form: Form, sign: int
    ) -> torch.Tensor | None:
        """The logarithm of P(sign Z >= z), for a form Z of mean 0 and variance 1.

        None where moments tell more. It has no gradient.
        """
        exact = log_count_tail(z, self.forest, moments, form, sign)
        return log_mixture_tail(z, self.strata, moments, form, sign) if exact is None else exact


def structure_of(weights: PairWeights, n_x: int) -> Structure:
    frozen = frozen_of(weights, n_x)
    return Structure(
        forest_of(weights),
        strata_of(weights, n_x),
        frozen,
        None if frozen is None else structure_of(frozen.whole, n_x),
    )
