"""Sources of randomness: an explicit `rng`, never a global state."""

from __future__ import annotations

import sys
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeGuard, Union

import numpy as np

if TYPE_CHECKING:
    import torch

Rng = Union[SupportsIndex, np.random.Generator, "torch.Generator", None]


def check_rng(rng: Rng) -> None:
    """Raise TypeError or ValueError unless `rng` is a valid source of randomness."""
    if rng is None or isinstance(rng, np.random.Generator) or _of_torch(rng):
        return
    if isinstance(rng, bool) or not isinstance(rng, Integral):
        raise TypeError(
            f"rng is of type {type(rng).__name__}: give an integer, a numpy or a torch Generator"
        )
    if rng < 0:
        raise ValueError(f"rng={rng} is negative: give an integer of at least 0")


def random_key(rng: Rng) -> np.uint64:
    """Return 64 random bits from a source of randomness; an integer is a seed."""
    check_rng(rng)
    if _of_torch(rng):
        import torch

        halves = torch.randint(2**32, (2,), generator=rng, device=rng.device, dtype=torch.int64)
        high, low = halves.tolist()
        return np.uint64(high << 32 | low)
    seed: Any = rng if rng is None or isinstance(rng, np.random.Generator) else index(rng)  # type: ignore[arg-type]
    return np.random.default_rng(seed).integers(2**64, dtype=np.uint64)


def _of_torch(rng: Any) -> TypeGuard[torch.Generator]:
    """Return whether `rng` is a torch Generator, without importing torch."""
    loaded = sys.modules.get("torch")
    return loaded is not None and isinstance(rng, loaded.Generator)
