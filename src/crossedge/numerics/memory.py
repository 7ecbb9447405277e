"""Memory for large matrices."""

from __future__ import annotations

import numpy as np
import torch


def empty(*shape: int) -> torch.Tensor:
    """A tensor of doubles on the CPU.

    From numpy, which asks for large pages: fresh memory and products of matrices are both faster.
    """
    return torch.from_numpy(np.empty(shape))
