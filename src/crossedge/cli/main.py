"""The command line: `crossedge test`, `plan`, `monitor`, `learn`, `sample` and `reproduce`.

Only light modules are imported at the top, so that help and complaints come at once: whatever needs
pandas or torch is imported by the command that needs it, after its arguments have been checked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from crossedge import __version__
from crossedge.cli import learn, monitor, plan, reproduce, sample, test
from crossedge.cli.arguments import Answer, Group, SaidError, Task
from crossedge.cli.wording import words_of
from crossedge.runtime.interrupts import run_interruptibly
from crossedge.runtime.lazy import what_to_install

FAULTS = (ValueError, TypeError, OSError, ImportError, MemoryError, FloatingPointError)
BAD_INPUT, INTERRUPTED = 2, 130  # exit codes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    That is 0, or 1 if the command says so; or 2 after a line on stderr that says what is wrong; or
    130 after an interrupt, which ends a command at once and leaves a line too.
    """
    task = None
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        task = run_interruptibly(lambda: _task(given))
        # the thread only computes: if it finished after an interrupt, it must not have printed
        answer = run_interruptibly(lambda: task.work(task)) if task.in_thread else task.work(task)
    except SaidError as said:
        answer = Answer(str(said))
    except KeyboardInterrupt as stopped:
        if os.environ.get("RANK", "0") == "0":  # one of the processes of torchrun speaks for all
            _complain(str(stopped) or (task.interrupted() if task else "interrupted"))
        return INTERRUPTED
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        path = where.command_path if where else "crossedge"
        _complain(f"{error.format_message().rstrip('.')} (see {path} --help)")
        return BAD_INPUT
    except ModuleNotFoundError as missing:
        line = what_to_install("this command", missing)
        _complain(re.sub(r"\[(torch|plots)\]", "[learn]", line))  # which has both
        return BAD_INPUT
    except FAULTS as error:
        _complain(words_of(error))
        return BAD_INPUT
    for caution in answer.cautions:
        _complain(f"warning: {caution}")
    text = _sayable(answer.text)
    print(text, end="\n" if text else "")  # pipes that are closed: see __main__.py
    return answer.code


def _sayable(text: str) -> str:
    """Return text that the output can encode, without characters that would move a cursor."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        "±".encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("±", "+-")
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.encode(encoding, "replace").decode(encoding)


def _complain(text: str) -> None:
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    print("crossedge:", line, file=sys.stderr, flush=True)


def _task(given: list[str]) -> Task:
    """Read the arguments, and return the work that they ask for."""
    with crossedge.make_context("crossedge", [*given]) as context:
        task: Task = crossedge.invoke(context)
        task.arguments = tuple(given)
        return task


def _say_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        raise SaidError(f"crossedge {__version__}")


@click.group(cls=Group, no_args_is_help=False)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version.",
)
def crossedge(**_: Any) -> None:
    """Do two samples come from the same distribution?"""


for _each in (test, plan, monitor, learn, sample, reproduce):
    crossedge.add_command(_each.command)
