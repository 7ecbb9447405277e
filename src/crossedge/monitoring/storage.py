"""A monitor in a file: arrays and JSON in an .npz archive, never a pickle."""

from __future__ import annotations

import json
import math
import os
import tempfile
import zipfile
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossedge import weights as families
from crossedge.data.columns import Column
from crossedge.data.raw import Raw
from crossedge.monitoring.changes import ColumnChange
from crossedge.monitoring.evidence import SHARPNESS, Rule
from crossedge.monitoring.rows import Reader, Rows
from crossedge.monitoring.state import MonitorState
from crossedge.weights import Weights

if TYPE_CHECKING:
    from crossedge.monitoring.monitor import Monitor

FORMAT = "crossedge monitor 1"
PLAIN = ("kind", "whole", "is_category", "unit", "decimal")  # of a column


def save(monitor: Monitor, path: Path) -> None:
    """Write a monitor to a file, which is replaced at once."""
    if callable(monitor.distance):
        raise TypeError("a distance that is a function cannot be saved: give a number p for l_p")
    rows = monitor._rows
    arrays: dict[str, Any] = {"batch_of": monitor._batch_of, "log_sums": monitor._log_sums}
    table = []
    if rows.points is not None:
        arrays["points"] = rows.points
    for place, (name, raw) in enumerate(rows.table.items()):
        arrays[f"values_{place}"], arrays[f"missing_{place}"] = raw.values, raw.missing
        plain = {key: getattr(raw, key) for key in PLAIN}
        table.append({"name": name, "texts": raw.texts, **plain})
    about = {
        "format": FORMAT,
        "rule": asdict(monitor.rule),
        "weights": _to_plain(monitor.weights),
        "distance": str(float(monitor.distance)),
        "scale": monitor.scale,
        "max_points": monitor.max_points,
        "memory": monitor.memory,
        "key": monitor._key,
        "first": monitor._first,
        "fingerprint": monitor._fingerprint,
        "reader": asdict(monitor._reader),
        "columns": [asdict(column) for column in monitor.columns],
        "table": table,
        "history": [asdict(state) for state in monitor.history],
    }
    text = json.dumps(about, allow_nan=False).encode()
    arrays["about"] = np.frombuffer(text, np.uint8)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(cls: type[Monitor], path: Path) -> Monitor:
    """Read a monitor from a file, or raise ValueError."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(arrays["about"].tobytes())
        if about["format"] != FORMAT:
            raise ValueError("another format")
        return _restored(cls, about, arrays)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, IndexError) as e:
        # numpy's own words advise to read the file in a way that may run code
        why = f": {e}" if "pickle" not in str(e) else ""
        raise ValueError(f"{path} is damaged, or no monitor that was saved{why}") from None
    except zipfile.BadZipFile:
        raise ValueError(f"{path} is damaged, or no monitor that was saved") from None


def check_origin(monitor: Monitor, other: Monitor, where: str) -> None:
    """Raise ValueError unless two monitors begin with the same reference."""
    if monitor._fingerprint and monitor._fingerprint != other._fingerprint:
        raise ValueError(
            f"{where} was made from another reference, or with other --columns or --drop: give "
            "those, or a new --state"
        )


def check_seed(monitor: Monitor, other: Monitor, where: str) -> None:
    """Raise ValueError unless two monitors have the same source of randomness."""
    if monitor._key != other._key:
        raise ValueError(
            f"{where} was made with another --seed: leave it out, or give a new --state"
        )


def _restored(cls: type[Monitor], about: dict[str, Any], arrays: dict[str, Any]) -> Monitor:
    monitor = cls.__new__(cls)
    monitor.rule = Rule(**about["rule"])
    monitor.weights = _from_plain(about["weights"])
    monitor.distance = float(about["distance"])
    monitor.scale, monitor.memory = about["scale"], int(about["memory"])
    monitor.max_points = int(about["max_points"])
    monitor._key, monitor._first = int(about["key"]), int(about["first"])
    monitor._fingerprint = about.get("fingerprint", "")  # older files have none
    reader = about["reader"]
    names = reader["names"]
    left_out = tuple(_column(each) for each in reader["left_out"])
    monitor._reader = Reader(None if names is None else tuple(names), reader["width"], left_out)
    monitor.columns = tuple(_column(each) for each in about["columns"])
    table = {
        each["name"]: Raw(
            values=arrays[f"values_{place}"],
            missing=arrays[f"missing_{place}"],
            texts=tuple(each["texts"]),
            **{key: each[key] for key in PLAIN if key in each},  # older files lack some
        )
        for place, each in enumerate(about["table"])
    }
    monitor._rows = Rows(arrays.get("points"), table)
    monitor._batch_of, monitor._log_sums = arrays["batch_of"], arrays["log_sums"]
    if len(monitor._batch_of) != len(monitor._rows) or len(monitor._log_sums) != len(SHARPNESS):
        raise ValueError("its parts do not fit each other")
    monitor.history = tuple(
        MonitorState(**each | {"columns": tuple(ColumnChange(**c) for c in each["columns"])})
        for each in about["history"]
    )
    monitor._said = set()
    return monitor


def _column(facts: dict[str, Any]) -> Column:
    return Column(**facts | {"outputs": tuple(facts["outputs"])})


def _to_plain(weights: Any) -> Any:
    """Return weights as the name of their family and its fields."""
    if weights is None:
        return None
    if isinstance(weights, tuple):
        return [_to_plain(each) for each in weights]
    known = getattr(families, type(weights).__name__, None)
    values = {each.name: getattr(weights, each.name) for each in fields(weights)}
    if known is not type(weights) or not all(map(_is_plain, values.values())):
        raise TypeError(f"{weights!r} cannot be saved: give weights of crossedge, with numbers")
    return {"family": type(weights).__name__, "fields": values}


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return (
        value is None
        or isinstance(value, str | int)
        or (isinstance(value, float) and math.isfinite(value))
    )


def _from_plain(facts: Any) -> Any:
    if facts is None:
        return None
    if isinstance(facts, list):
        return tuple(_from_plain(each) for each in facts)
    family = getattr(families, facts["family"])
    if not (isinstance(family, type) and issubclass(family, Weights) and is_dataclass(family)):
        raise ValueError(f"no family of weights {facts['family']!r}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in facts["fields"].items()}
    return family(**values)
