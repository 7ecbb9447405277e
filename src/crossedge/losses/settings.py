"""What a loss is made of, and its value as a function of a few sums of W."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from crossedge.moments import LabelMoments
from crossedge.null import Normal, Pearson3, check_law
from crossedge.runtime.types import Array
from crossedge.statistics import Statistic, WithinSums, statistic_named
from crossedge.weights import GraphWeights, Weights
from crossedge.weights.family import check_weights
from crossedge.weights.kernels import BandwidthKernel
from crossedge.weights.scales import learns, scale_values

Standardize = bool | Literal["normal", "pearson3"]
TAILS = {law.name: law.log_tail for law in (Normal, Pearson3)}  # tails of z-scores, by law
SMOOTH_WEIGHTS_HINT = "give one, as ce.SpanningTree(temperature=1.0) or ce.GaussianKernel()"


@dataclass(frozen=True)
class Settings:
    """The weights, the statistic and the standardisation of a loss.

    A temperature or bandwidth that learns is not part of it: the weights hold its first value.
    """

    weights: Weights
    statistic: Statistic
    standardize: Standardize
    scale_name: str = ""  # "temperature", "bandwidth", or "" for weights without either
    scales: tuple[float, ...] = ()  # the temperatures or bandwidths; () for the median distance

    def of_sums(self, within: WithinSums, moments: LabelMoments) -> Array:
        """Return the loss, from within-sums and moments of W."""
        statistic, sign = self.statistic, self.statistic.sign
        if isinstance(self.standardize, str):
            assert statistic.law is not None
            tail = TAILS[self.standardize]
            return -statistic.law.log_pvalue(statistic, within.x, within.y, moments, tail)
        if self.standardize and statistic.form is not None:
            return sign * moments.zscore(within.x, within.y, statistic.form(moments))
        return sign * statistic.of(within, moments)

    @property
    def scales_with_weights(self) -> bool:
        """Whether a multiple of W has the same multiple as its loss; otherwise it has the same."""
        return not self.standardize and self.statistic.form is not None


def scale_name(weights: Weights) -> str:
    """Return the name of the temperature or bandwidth of the weights; "" if they have none."""
    if isinstance(weights, GraphWeights):
        return "temperature"
    return "bandwidth" if isinstance(weights, BandwidthKernel) else ""


def check_settings(weights: object, statistic: str | None, standardize: object) -> Settings:
    """Return the settings, or raise TypeError or ValueError if they do not go together."""
    checked = check_weights(weights, SMOOTH_WEIGHTS_HINT)
    name = scale_name(checked)
    scales = scale_values(getattr(checked, name)) if name else ()
    if not checked.is_smooth or 0 in scales:
        raise ValueError(
            "weights has temperature 0, where a test has no gradient: give one above 0"
        )
    chosen = statistic_named(checked.default_statistic if statistic is None else statistic)
    chosen.check_weights(checked)
    if not isinstance(standardize, bool):
        if standardize not in TAILS:
            raise ValueError(
                f"standardize={standardize!r} is unknown: "
                "choose from True, False, 'normal', 'pearson3'"
            )
        check_law(chosen, str(standardize), "standardize")
    if getattr(checked, "accuracy", None) is not None and checked.neighbours is None:  # type: ignore[attr-defined]
        raise ValueError(
            "weights has accuracy without neighbours, where a tree has no gradient: give both"
        )
    if getattr(checked, "neighbours", None) is not None and (
        standardize == "pearson3" or chosen.name == "fisher"
    ):
        given = "statistic='fisher'" if chosen.name == "fisher" else "standardize='pearson3'"
        raise ValueError(
            f"{given} needs the skewness, whose gradient needs all pairs: "
            "choose another, or leave out neighbours"
        )
    if name and learns(getattr(checked, name)):
        first = scales[0] if len(scales) == 1 else scales
        checked = replace(checked, **{name: first})  # type: ignore[type-var]
    return Settings(checked, chosen, standardize, name, scales)  # type: ignore[arg-type]
