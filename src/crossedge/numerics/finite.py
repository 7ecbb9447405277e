"""Whether numbers are finite and not negative."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from crossedge.compiled import compiled, in_threads

PART = 1 << 18
INFINITE = int(np.array(np.inf).view(np.int64))


def finite_and_not_negative(values: torch.Tensor) -> bool:
    """On the CPU by the bits, and in our own threads.

    Those of torch go on spinning for a while after each call, and the loops that follow would have
    to share a core with them.
    """
    if values.device.type == "cpu" and values.dtype == torch.float64 and values.is_contiguous():
        bits = values.reshape(-1).numpy().view(np.int64)
        parts = [bits[first : first + PART] for first in range(0, len(bits), PART)]
        if all(in_threads(_in_order, parts)):
            return True
    least, most = torch.aminmax(values)
    return bool((least >= 0) & (most < torch.inf))  # false where they are NaN


@compiled
def _in_order(bits: npt.NDArray[np.int64]) -> bool:
    """As integers, the bits of numbers from 0 to infinity are in the same order; others, -0.0 too,
    are negative or larger.
    """
    least, most = bits[0], bits[0]
    for bit in bits:
        least, most = min(least, bit), max(most, bit)
    return bool(least >= 0 and most < INFINITE)
