"""A bar on the terminal for long work, and nothing elsewhere.

Work is done in blocks (see `in_threads`), so the time that it takes is known soon after it begins.
Where that is more than a few seconds, and stderr is a terminal, a bar shows what is being done and
the time that is left. It is drawn by rich if that is installed, and otherwise is a line of text.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOOK_AFTER = 2.0  # seconds, after which the speed is known well enough
WORTH_A_BAR = 6.0  # seconds that the work must take in all
BETWEEN_UPDATES = 0.2  # seconds

_here = threading.local()


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Name what is being done, for a bar that may appear."""
    before = getattr(_here, "stage", "")
    _here.stage = name
    try:
        yield
    finally:
        _here.stage = before


class Progress:
    """The progress of work in blocks."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.began = total, 0, 0.0
        self.name = getattr(_here, "stage", "") or "working"
        self.bar: Any = None
        self.last = 0.0
        self.shown = bool(getattr(sys.stderr, "isatty", bool)())
        self.lock = threading.Lock()

    def step(self) -> None:
        """Note that one more block is done."""
        if not self.shown:
            return
        with self.lock:
            now = time.monotonic()
            self.done += 1
            if self.done == 1:  # its loops may have been compiled
                self.began = now
            elapsed = now - self.began
            if self.done < 2 or now - self.last < BETWEEN_UPDATES or elapsed < LOOK_AFTER:
                return
            self.last = now
            if self.bar is None:
                expected = elapsed * self.total / (self.done - 1)
                if expected < WORTH_A_BAR:
                    return
                self.bar = _bar(f"{self.name}, about {_in_words(expected)}", self.total)
            self.bar.show(self.done)

    def close(self) -> None:
        """Take the bar away."""
        with self.lock:
            if self.bar is not None:
                self.bar.close()
                self.bar = None
            self.shown = False


def _in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(text: str, total: int) -> Any:
    try:
        return _RichBar(text, total)
    except ImportError:
        return _Line(text, total)


class _RichBar:
    def __init__(self, text: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        self.progress = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.task = self.progress.add_task(text, total=total)
        self.progress.start()

    def show(self, done: int) -> None:
        self.progress.update(self.task, completed=done)

    def close(self) -> None:
        self.progress.stop()


class _Line:
    def __init__(self, text: str, total: int) -> None:
        self.text, self.total = text, total

    def show(self, done: int) -> None:
        print(f"\r{self.text}: {done / self.total:.0%}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("\r" + " " * (len(self.text) + 8), end="\r", file=sys.stderr, flush=True)
