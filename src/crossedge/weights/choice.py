"""The weights that a caller chooses: one family, several, or none."""

from __future__ import annotations

from collections.abc import Sequence

from crossedge.weights.family import WEIGHTS_HINT, Weights, check_weights
from crossedge.weights.graph import Graph


def check_choice(weights: object) -> Weights | list[Weights] | None:
    """Return one family, a list of several or None, or raise unless it is one of these."""
    if weights is None:
        return None
    if not isinstance(weights, Sequence) or isinstance(weights, str):
        return check_weights(weights, f"{WEIGHTS_HINT}, or a list of these")
    several = [check_weights(each) for each in weights]
    if not several:
        raise ValueError("weights is an empty list: give one at least, or None")
    for place, each in enumerate(several):
        if each in several[:place]:
            raise ValueError(f"weights has {each!r} twice: once is enough")
    return several


def weights_of_points(weights: object) -> list[Weights] | None:
    """Return a list of the weights, or None; raise if they know points that are elsewhere only."""
    found = check_choice(weights)
    several = [found] if isinstance(found, Weights) else found
    if several and any(isinstance(each, Graph) for each in several):
        raise ValueError("weights is a Graph of points that are elsewhere: give points and weights")
    return several
