"""The command line: `crossedge test`, `crossedge learn` and `crossedge reproduce`.

Only light modules are imported at the top, so that help and complaints come at once: whatever needs
torch is imported by the command that needs it, after its arguments and files have been checked.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from crossedge import __version__
from crossedge.cli import learn, reproduce, test
from crossedge.runtime.interrupts import run_interruptibly
from crossedge.runtime.lazy import what_to_install

FAULTS = (ValueError, TypeError, OSError, ImportError, MemoryError, FloatingPointError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    That is 0; or 1 after a line on stderr that says what is wrong; or 130 after an interrupt, which
    ends a command at once and leaves a line too.
    """
    options = argparse.Namespace(interrupted=lambda: "interrupted", in_thread=True)
    try:
        run_interruptibly(lambda: _parser().parse_args(arguments, options))
        # the thread only computes: if it finished after an interrupt, it must not have printed
        answer: str = (
            run_interruptibly(lambda: options.run(options))
            if options.in_thread
            else options.run(options)
        )
    except KeyboardInterrupt as stopped:
        if os.environ.get("RANK", "0") == "0":  # one of the processes of torchrun speaks for all
            _complain(str(stopped) or options.interrupted())
        return 130
    except ModuleNotFoundError as missing:
        line = what_to_install("this command", missing)
        _complain(re.sub(r"\[(torch|plots)\]", "[learn]", line))  # which has both
        return 1
    except FAULTS as error:
        _complain(str(error) or f"{type(error).__name__}, without a message")
        return 1
    answer = answer.replace("±", "±" if _can_say("±") else "+-")
    print(answer, end="\n" if answer else "")  # pipes that are closed: see __main__.py
    return 0


def _can_say(text: str) -> bool:
    """Return whether the output can encode the text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _complain(text: str) -> None:
    print("crossedge:", " ".join(text.split()), file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crossedge", description="Do two samples come from the same distribution?"
    )
    parser.add_argument("--version", action="version", version=f"crossedge {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (test, learn, reproduce):
        command.add_to(commands)
    return parser
