"""One notation for numpy arrays and torch tensors: the array API standard.

Statistics, moments and laws are written once for both. Arrays give arrays, and tensors give
tensors, with their gradient and on their device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import scipy.special

from crossedge.runtime.types import Array

Function = TypeVar("Function", bound=Callable[..., Any])


def namespace(*values: Array) -> Any:
    """Return the namespace of the library of the values: torch for tensors, otherwise numpy."""
    for value in values:
        if is_tensor(value):
            import array_api_compat.torch as in_torch

            return in_torch
    return np  # its main namespace follows the standard


def special(value: Array) -> Any:
    """Return the module of special functions, whose names scipy and torch share."""
    return sys.modules["torch"].special if is_tensor(value) else scipy.special


def is_tensor(value: Array) -> bool:
    """Return whether the value is a tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def fixed(value: Array) -> Array:
    """Return the value without its gradient."""
    return value.detach() if is_tensor(value) else value


def constants(values: Any, like: Array) -> Array:
    """Return values in the library of another array; for a tensor, of its type on its device."""
    if is_tensor(like):
        return sys.modules["torch"].as_tensor(values, dtype=like.dtype, device=like.device)
    return np.asarray(values, dtype=np.float64)


def to_tensor(array: Array) -> Array:
    """Return a tensor that shares the memory of an array."""
    import torch

    return torch.from_numpy(array)


def without_warnings(function: Function) -> Function:
    """Silence numpy's warnings in a function, which may then compute both branches of a choice."""

    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return quiet  # type: ignore[return-value]


def clear_diagonal(matrix: Array) -> Array:
    """Set the diagonal of a square matrix to 0, in place, and return the matrix."""
    if is_tensor(matrix):
        return matrix.fill_diagonal_(0.0)
    np.fill_diagonal(matrix, 0.0)
    return matrix
