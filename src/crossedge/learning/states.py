"""States of training in files without code: arrays in an archive of numpy, and the rest as JSON.

A state is made of dictionaries, lists, numbers, texts and tensors. No pickle is written or read.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

STRUCTURE = "structure"  # the array that holds the JSON text
TENSOR, PAIRS = "tensor", "pairs"  # marks of what JSON does not have
# types that numpy lacks -> those of the same size that hold their bits
BITS = {torch.bfloat16: torch.int16}


def write_state(path: str | Path, state: Any) -> None:
    """Write a state to a file, which is replaced atomically."""
    arrays: list[Any] = []
    structure = json.dumps(_packed(state, arrays))
    members: dict[str, Any] = {f"tensor{place}": array for place, array in enumerate(arrays)}
    members[STRUCTURE] = np.array(structure)
    path = Path(path)
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        np.savez(file, **members)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_state(path: str | Path) -> Any:
    """Return the state that `write_state` wrote, with tensors on the CPU.

    Raises ValueError if the file is damaged or something else.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            structure = json.loads(str(archive[STRUCTURE]))
            return _unpacked(structure, archive)
    except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile):
        raise ValueError(f"{path} is damaged, or holds no state of a training run") from None


def _packed(value: Any, arrays: list[Any]) -> Any:
    """Return a value as JSON has it; tensors go to the list, and leave their place in it."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu()
        kind = str(plain.dtype).removeprefix("torch.")
        arrays.append(
            plain.view(BITS[plain.dtype]).numpy() if plain.dtype in BITS else plain.numpy()
        )
        return {TENSOR: len(arrays) - 1, "type": kind}
    if isinstance(value, dict):  # as pairs, because keys may be numbers
        return {PAIRS: [[_packed(key, arrays), _packed(one, arrays)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return [_packed(one, arrays) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a state holds {type(value).__name__}: give tensors, numbers and texts only")


def _unpacked(value: Any, archive: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(one, archive) for one in value]
    if not isinstance(value, dict):
        return value
    if PAIRS in value:
        return {key: _unpacked(one, archive) for key, one in value[PAIRS]}
    tensor = torch.from_numpy(archive[f"tensor{value[TENSOR]}"])
    kind = getattr(torch, value["type"])
    return tensor.view(kind) if kind in BITS else tensor
