"""The folder of a run: written so that no moment of interruption can corrupt it.

config.json      the full configuration
metrics.jsonl    a line for each epoch
checkpoint.pt    the state after the last epoch: tensors and numbers, no code
samples/         pictures of samples over time
loss.png, quality.json
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from crossedge.learning.configuration import Configuration


class RunFolder:
    """Every file is written beside its place and then moved there, in one step."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def check_vacant(self) -> None:
        """Raise FileExistsError if the folder holds a run that has finished an epoch."""
        if (self.path / "checkpoint.pt").exists():
            raise FileExistsError(
                f"{self.path} holds a run: resume it (--resume), or give another folder"
            )

    def create(self, configuration: Configuration) -> None:
        self.check_vacant()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "metrics.jsonl").unlink(missing_ok=True)  # of an epoch that was cut off
        text = json.dumps(configuration.to_dict(), indent=2) + "\n"
        self._write("config.json", text.encode())

    def configuration(self) -> Configuration:
        path = self.path / "config.json"
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} holds no run to resume: it has no config.json")
        return Configuration.from_dict(json.loads(path.read_text()))

    def save(self, state: dict[str, Any], metrics: dict[str, Any]) -> None:
        """After an epoch: its line first, which counts only once the checkpoint has its epoch."""
        import torch  # here: who asks for a run that is not there need not wait for it

        with (self.path / "metrics.jsonl").open("ab") as file:
            file.write(json.dumps(metrics).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary = self.path / "checkpoint.pt.new"
        with temporary.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path / "checkpoint.pt")

    def load(self, *, tidy: bool = True) -> dict[str, Any] | None:
        """The last checkpoint, if there is one; to be tidy, lines of later epochs are dropped."""
        import torch

        path = self.path / "checkpoint.pt"
        state: dict[str, Any] | None = None
        if path.is_file():
            state = torch.load(path, map_location="cpu", weights_only=True)
        if not tidy:
            return state
        epochs = int(state["epoch"]) if state else 0
        lines = self.metrics()[:epochs]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        self._write("metrics.jsonl", text.encode())
        return state

    def metrics(self) -> list[dict[str, Any]]:
        """Of all epochs; a last line that was cut off is not one."""
        path = self.path / "metrics.jsonl"
        found = []
        for line in path.read_text().splitlines() if path.is_file() else []:
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return found

    def read_json(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        found: dict[str, Any] | None = json.loads(path.read_text()) if path.is_file() else None
        return found

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        self._write(name, (json.dumps(values, indent=2) + "\n").encode())

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.path / (name + ".new")
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path / name)
