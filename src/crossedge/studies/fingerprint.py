"""What a study is made of, as text that is the same in every process.

Functions count by their code, not by their name or place: their instructions and constants, what
they hold in closures and defaults, and the functions and values of their own module that they use.
Lists do not count: they are where functions write what they have seen.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def fingerprint(value: Any) -> str:
    return hashlib.sha256(_text(value, ()).encode()).hexdigest()[:16]


def _text(value: Any, above: tuple[int, ...]) -> str:
    """`above` are the objects that hold this one: some functions call themselves."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if id(value) in above:
        return "itself"
    above = (*above, id(value))
    if isinstance(value, types.ModuleType | type):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype} {value.shape} {content}"
    if isinstance(value, Mapping):
        parts = [f"{_text(key, above)}: {_text(held, above)}" for key, held in value.items()]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, set | frozenset):
        return "set " + ", ".join(sorted(_text(one, above) for one in value))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_text(one, above) for one in value) + "]"
    if isinstance(value, functools.partial):
        return f"partial {_text([value.func, value.args, value.keywords], above)}"
    if isinstance(value, types.MethodType):
        return f"method {_text([value.__func__, value.__self__], above)}"
    if isinstance(value, types.FunctionType):
        return _function(value, above)
    if isinstance(value, types.CodeType):
        return _code(value, above)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    called = getattr(type(value), "__call__", None)  # noqa: B004
    if isinstance(called, types.FunctionType) and not kind.startswith("crossedge."):
        kind += f" {_text(called, above)}"
    held = getattr(value, "__dict__", None)
    if held:
        return f"{kind} {_text(held, above)}"
    shown = repr(value)
    return kind if " at 0x" in shown else f"{kind} {shown}"


def _code(code: types.CodeType, above: tuple[int, ...]) -> str:
    return f"code {code.co_code.hex()} {_text([code.co_consts, code.co_names], above)}"


def _function(function: types.FunctionType, above: tuple[int, ...]) -> str:
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [function.__code__, function.__defaults__, function.__kwdefaults__, held]
    for name in sorted(_names(function.__code__)):
        used = function.__globals__.get(name)
        ours = getattr(used, "__module__", None) == function.__module__
        if ours or not (_of_others(used) or isinstance(used, list | type(None))):
            parts.append((name, used))
    return f"function {_text(parts, above)}"


def _of_others(used: Any) -> bool:
    """Modules, classes and functions of others, which have versions; weights are no such thing."""
    kinds = types.ModuleType | type | types.FunctionType | types.BuiltinFunctionType
    return isinstance(used, kinds)


def _names(code: types.CodeType) -> set[str]:
    """Also those of functions inside."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found
