"""The folder of a training run, which an interruption at any moment leaves intact.

config.json      the full configuration
metrics.jsonl    one line for each epoch
checkpoint.npz   the state after the last epoch: arrays and numbers, no code and no pickles
layout.json      what the coordinates of points mean: columns, labels, the size of images
samples/         pictures of generated samples over time
loss.png         the loss and the p-value by epoch
quality.json     measures of the final samples on held-out data
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from crossedge.learning.configuration import Configuration

CHECKPOINT, LAYOUT = "checkpoint.npz", "layout.json"


class RunFolder:
    """Reader and writer of the files of a run.

    Every file except metrics.jsonl is replaced atomically: it is written under another name and
    then renamed. Lines are appended to metrics.jsonl.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def holds_a_run(self) -> bool:
        """Return whether the folder holds a run that has finished an epoch."""
        return (self.path / CHECKPOINT).exists()

    def check_vacant(self) -> None:
        """Raise FileExistsError if the folder holds a run that has finished an epoch."""
        if self.holds_a_run():
            raise FileExistsError(
                f"{self.path} holds a run: resume it (--resume), or give another folder"
            )

    def check_finished(self) -> None:
        """Raise FileNotFoundError unless the folder holds a run that has finished an epoch."""
        if not (self.path / "config.json").is_file():
            raise FileNotFoundError(f"{self.path} holds no run: it has no config.json")
        if not self.holds_a_run():
            raise FileNotFoundError(f"{self.path} has no finished epoch: train it first")

    def create(self, configuration: Configuration) -> None:
        """Make the folder and write the configuration, unless it holds a run."""
        self.check_vacant()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "metrics.jsonl").unlink(missing_ok=True)  # left by a killed first epoch
        text = json.dumps(configuration.to_dict(), indent=2) + "\n"
        self._write("config.json", text.encode())

    def configuration(self) -> Configuration:
        """Return the configuration of the run, or raise FileNotFoundError."""
        path = self.path / "config.json"
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} holds no run to resume: it has no config.json")
        return Configuration.from_dict(json.loads(path.read_text()))

    def save(self, state: dict[str, Any], metrics: dict[str, Any]) -> None:
        """Save the state and the metrics of an epoch.

        The line of metrics is written first. It counts only once the checkpoint is in place: `load`
        drops lines of later epochs than the checkpoint's.
        """
        # imported late: a missing run is reported without waiting for torch
        from crossedge.learning.states import write_state

        with (self.path / "metrics.jsonl").open("ab") as file:
            file.write(json.dumps(metrics).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        write_state(self.path / CHECKPOINT, state)

    def load(self) -> dict[str, Any] | None:
        """Return the last checkpoint, or None."""
        from crossedge.learning.states import read_state

        path = self.path / CHECKPOINT
        return read_state(path) if path.is_file() else None

    def tidy(self, epochs: int) -> None:
        """Drop metrics of later epochs, which a killed run left."""
        lines = self.metrics()
        if len(lines) > epochs or self._is_cut(len(lines)):
            text = "".join(json.dumps(line) + "\n" for line in lines[:epochs])
            self._write("metrics.jsonl", text.encode())

    def _is_cut(self, lines: int) -> bool:
        """Return whether metrics.jsonl has more than so many lines."""
        path = self.path / "metrics.jsonl"
        return path.is_file() and len(path.read_bytes().splitlines()) > lines

    def metrics(self) -> list[dict[str, Any]]:
        """Return the metrics of all epochs, up to a line that was cut off."""
        path = self.path / "metrics.jsonl"
        found = []
        for line in path.read_text().splitlines() if path.is_file() else []:
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return found

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return the content of a JSON file in the folder, or None if there is none."""
        path = self.path / name
        found: dict[str, Any] | None = json.loads(path.read_text()) if path.is_file() else None
        return found

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Replace a JSON file in the folder atomically."""
        self._write(name, (json.dumps(values, indent=2) + "\n").encode())

    def _write(self, name: str, content: bytes) -> None:
        temporary = self.path / (name + ".new")
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path / name)
