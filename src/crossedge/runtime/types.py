"""Type aliases for arrays, used in every signature."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Complexes = npt.NDArray[np.complex128]
Labels = npt.NDArray[np.uint8]  # 1 for each point in x
Words = npt.NDArray[np.uint64]  # 64 labels each

Array = Any  # a numpy array, or a tensor on any device
