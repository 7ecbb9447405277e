"""Which points have an excess of their own, and which only have one that reaches in from elsewhere.

A large neighbourhood may have an excess because it contains a small region that changed, far from
its point. So a point that stands out in a large neighbourhood is local if one of two holds:

- its smaller neighbourhoods are more likely if the share of y is q, that of the large one, than if
  it is p, that of all points: m (a log(q / p) + (1 - a) log((1 - q) / (1 - p))) > 0 for a
  neighbourhood of m points with the share a;
- the neighbourhood still stands out without the points that stand out, to the same side, in smaller
  neighbourhoods of their own. A weak and broad change has few of these.
"""

from __future__ import annotations

import numpy as np

from crossedge.runtime.types import Bools
from crossedge.witnesses.points import Neighbourhoods


def local_points(several: list[Neighbourhoods], in_x: Bools, chosen: Bools) -> Bools:
    """Return which of the chosen points have an excess where they are, (n,)."""
    if not chosen.any() or len(several) < 2:
        return chosen.copy()
    several = sorted(several, key=lambda one: float(one.effective.mean()))
    y = (~in_x).astype(np.float32)
    p = several[0].p
    scores = np.stack([one.zscores(y[:, None])[one.atom, 0] for one in several])
    strongest = np.abs(scores).argmax(0)
    side = np.sign(np.take_along_axis(scores, strongest[None], 0)[0])
    critical = float(np.abs(scores).max(0)[chosen].min())

    shares = np.stack([one.share(y) for one in several])
    sizes = np.stack([one.effective[one.atom] for one in several])
    share, size = (np.take_along_axis(all_of, strongest[None], 0)[0] for all_of in (shares, sizes))
    q = (share * size + p) / (size + 1)  # one more point at chance keeps it from 0 and 1
    likelier = shares * np.log(q / p) + (1 - shares) * np.log((1 - q) / (1 - p)) > 0
    smaller = np.arange(len(several))[:, None] < strongest
    local: Bools = chosen & (likelier | ~smaller).all(0)

    for place in range(1, len(several)):
        alone = local & (np.abs(scores[:place]).max(0) >= critical)
        for sign in (1, -1):
            rest = several[place].zscores_within(~(alone & (side == sign)), y)
            open_ones = chosen & (strongest == place) & (side == sign)
            local |= open_ones & (sign * rest >= critical)
    return local
