"""The folder of a power study, which an interruption at any moment leaves intact.

study.json    fingerprints of the samplers and tests, and the random key
cells/        one file for each cell: the p-values of 25 repetitions at one point
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossedge.studies.grid import Cell, Point, as_text

Answer = dict[str, list[float]]  # name of a test -> its p-values in the repetitions of a cell


def fingerprint(value: Any) -> str:
    """Return a hash of samplers or tests that is the same in every process.

    Functions are hashed by their code, their defaults and their closures. The functions that they
    call are not hashed: after a change there, use another folder.
    """
    import joblib  # imported late: an optional dependency

    return str(joblib.hash(_plain(value)))


def _plain(value: Any) -> Any:
    """Return a value with its functions replaced by lists that joblib hashes reproducibly."""
    if isinstance(value, types.FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [value.__code__, value.__defaults__, value.__kwdefaults__, held]
        return ["function", *map(_plain, parts)]
    if isinstance(value, types.CodeType):
        return [value.co_code, _plain(value.co_consts), value.co_names]
    if isinstance(value, types.MethodType):
        return ["method", _plain(value.__func__), value.__self__]
    if isinstance(value, functools.partial):
        return ["partial", *map(_plain, (value.func, value.args, value.keywords))]
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return [[key, _plain(held)] for key, held in value.items()]
    return value


class StudyFolder:
    """Reader and writer of the finished cells of a study.

    Files are replaced atomically: each is written under another name and then renamed.

    Parameters
    ----------
    path : path
        The folder, which is made if it is missing.
    made_of : dict
        What identifies the study. A folder of another study is refused with ValueError.
    """

    def __init__(self, path: str | os.PathLike[str], made_of: dict[str, Any]) -> None:
        self.path, self.made_of = Path(path), made_of
        self.cells = self.path / "cells"
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"{self.path} is a file: give a folder")
        study = self.path / "study.json"
        if study.exists():
            self._check(study)
        self.cells.mkdir(parents=True, exist_ok=True)
        if not study.exists():
            self._write(study, json.dumps(made_of, indent=2) + "\n")

    def _check(self, study: Path) -> None:
        """Raise ValueError if the folder holds another study."""
        try:
            found = dict(json.loads(study.read_text()))
        except (TypeError, ValueError):
            found = {}
        other = [name for name in self.made_of if found.get(name) != self.made_of[name]]
        if other:
            raise ValueError(
                f"{self.path} holds another study (other {', '.join(other)}): "
                "give another folder, or remove this one"
            )

    def load(self, cell: Cell, point: Point) -> Answer | None:
        """Return the p-values of a cell, or None unless all its repetitions are saved."""
        try:
            kept = json.loads(self._place(cell, point).read_text())["pvalues"]
            count = cell.last - cell.first
            answer = {str(name): [float(p) for p in some][:count] for name, some in kept.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # missing or damaged
        enough = all(len(some) == count for some in answer.values())
        return answer if enough and sorted(answer) == sorted(self.made_of["tests"]) else None

    def keep(self, cell: Cell, point: Point, answer: Answer) -> None:
        """Save the p-values of a finished cell."""
        content = {"point": point, "first": cell.first, "pvalues": answer}
        self._write(self._place(cell, point), json.dumps(content))

    def _place(self, cell: Cell, point: Point) -> Path:
        """Return the path of a cell: a hash of the study, the point and the first repetition."""
        text = json.dumps([self.made_of, as_text(point), cell.first], sort_keys=True)
        return self.cells / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"

    @staticmethod
    def _write(place: Path, text: str) -> None:
        temporary = place.with_name(f"{place.name}.{os.getpid()}.new")
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
