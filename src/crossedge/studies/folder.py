"""What a study has finished, kept so that no moment of interruption can spoil it.

study.json    what the study is made of
cells/        p-values of 25 repetitions at one point, a file for each
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from crossedge.studies.grid import Cell, Point, as_text

Answer = dict[str, list[float]]  # name of a test -> p-values of the repetitions


class StudyFolder:
    """Every file is written beside its place and then moved there, in one step."""

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
        """What is kept of it, if that is enough."""
        try:
            kept = json.loads(self._place(cell, point).read_text())["pvalues"]
            count = cell.last - cell.first
            answer = {str(name): [float(p) for p in some][:count] for name, some in kept.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # not there, or not whole
        enough = all(len(some) == count for some in answer.values())
        return answer if enough and sorted(answer) == sorted(self.made_of["tests"]) else None

    def keep(self, cell: Cell, point: Point, answer: Answer) -> None:
        content = {"point": point, "first": cell.first, "pvalues": answer}
        self._write(self._place(cell, point), json.dumps(content))

    def _place(self, cell: Cell, point: Point) -> Path:
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
