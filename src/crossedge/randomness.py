"""Randomness only through an explicit `rng`."""

from __future__ import annotations

from numbers import Integral
from typing import SupportsIndex

import numpy as np
import torch

Rng = SupportsIndex | np.random.Generator | torch.Generator | None


def check_rng(rng: Rng) -> None:
    if rng is None or isinstance(rng, np.random.Generator | torch.Generator):
        return
    if isinstance(rng, bool) or not isinstance(rng, Integral):
        raise TypeError(
            f"rng is of type {type(rng).__name__}: give an integer, a numpy or a torch Generator"
        )
    if rng < 0:
        raise ValueError(f"rng={rng} is negative: give an integer of at least 0")


def random_key(rng: Rng) -> np.uint64:
    """64 random bits from whatever source of randomness the caller has."""
    check_rng(rng)
    if isinstance(rng, torch.Generator):
        halves = torch.randint(2**32, (2,), generator=rng, device=rng.device, dtype=torch.int64)
        high, low = halves.tolist()
        return np.uint64(high << 32 | low)
    seed = rng if rng is None or isinstance(rng, np.random.Generator) else int(rng)
    return np.random.default_rng(seed).integers(2**64, dtype=np.uint64)
