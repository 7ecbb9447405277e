"""`crossedge monitor`: watch a folder of tables for a change."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from crossedge.cli.arguments import COUNT, SEED, Answer, Parsed, Task, WithHelp
from crossedge.cli.tables import SCALES
from crossedge.cli.wording import words_of

if TYPE_CHECKING:
    from crossedge.data.table import Table
    from crossedge.monitoring import Monitor, MonitorState

UNFINISHED = ("~", ".tmp", ".part", ".crdownload")  # how names of files end that are being written
ALARM, BAD_INPUT = 1, 2  # exit codes
EXITS = """
\b
Exit codes:
  0    no alarm
  1    alarm, even if a file could not be read
  2    bad input, and no alarm from the other files
  130  interrupted
"""


def _rate(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError(f"{text} is no rate: give a number between 0 and 1")
    return value


def _above(least: float) -> Any:
    def read(text: str) -> float:
        value = float(text)
        if not least < value < float("inf"):
            raise ValueError(f"{text} is out of range: give a number above {least:g}")
        return value

    return read


@click.command("monitor", cls=WithHelp, epilog=EXITS, context_settings={"show_default": True})
@click.argument("reference", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Where the monitor is kept, so that the next call takes new files only.  [default: no]",
)
@click.option("--order", type=click.Choice(("name", "time")), default="name", help="Of the files.")
@click.option(
    "--watch",
    type=Parsed("seconds", _above(0)),
    metavar="SECONDS",
    help="Look for new files again and again, until an alarm.  [default: look once]",
)
@click.option(
    "--false-alarm-rate",
    type=Parsed("number", _rate),
    help="Probability of ever raising an alarm if nothing changes.  [default: 0.01]",
)
@click.option(
    "--run-length",
    type=Parsed("number", _above(1)),
    help="Instead: mean number of files until a false alarm, at least.  [default: no]",
)
@click.option(
    "--columns", multiple=True, metavar="NAMES", help="Watch these columns only.  [default: all]"
)
@click.option("--drop", multiple=True, metavar="NAMES", help="Leave these out.  [default: none]")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a text or sheet names the columns.  [default: by its looks]",
)
@click.option(
    "--scale",
    type=click.Choice(SCALES),
    help="Scale of numbers.  [default: robust if the columns have names, else none]",
)
@click.option("--distance", type=float, default=2.0, metavar="P", help="The l_p distance.")
@click.option("--max-points", type=COUNT, help="Rows in the test of one file.  [default: 2000]")
@click.option("--seed", type=SEED, help="Of all random choices.  [default: 0]")
@click.option(
    "--reset",
    is_flag=True,
    help="Begin anew after an alarm, and forget the files since the change.  [default: no]",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="With --reset: keep these files as the reference instead.  [default: no]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each file.")
def command(**options: Any) -> Task:
    """Watch a folder of tables: do its files still come from the distribution of REFERENCE?

    The files of FOLDER are taken one after the other, each as one batch, and each is compared with
    everything before it. The rate of false alarms holds however many files there are. All formats
    of `crossedge test` are read. Leave out columns that count time or rows (--drop).
    """
    given = SimpleNamespace(**options, decimal="")
    return Task(lambda _: _run(given), in_thread=False)


def _run(options: SimpleNamespace) -> Answer:
    if options.false_alarm_rate is not None and options.run_length is not None:
        raise ValueError("--false-alarm-rate and --run-length are both given: leave one out")
    if options.reset and (options.state is None or not options.state.exists()):
        raise ValueError("--reset is for a monitor that was kept: give its --state")
    if options.adopt and not options.reset:
        raise ValueError("--adopt goes with --reset: give both, or leave it out")
    if options.state is not None and not options.state.parent.is_dir():
        raise ValueError(f"--state {options.state}: {options.state.parent} is no folder, make it")
    if options.state is not None and options.state.is_dir():
        raise ValueError(f"--state {options.state} is a folder: name a file, such as monitor.npz")
    if not options.folder.is_dir():
        raise ValueError(f"{options.folder} is no folder: give one with a table for each batch")
    from crossedge.data.columns import printable

    monitor = _monitor(options)
    if options.reset:
        _reset(monitor, options)
    told: set[str] = set()
    once = options.watch is None
    while True:
        for path in _new_files(options, monitor):
            try:
                state = _take(monitor, path, options)
            except (ValueError, TypeError, OSError) as error:
                line = words_of(error)
                line = line if path.name in line else f"{path.name}: {line}"
                if line not in told:  # perhaps it is being written: the next look tries it again
                    told.add(line)
                    click.echo(f"crossedge: {printable(line)}", err=True)
                continue
            if options.state is not None:
                monitor.save(options.state)
            click.echo(state.to_json() if options.as_json else printable(_line(state, options)))
            if state.alarm and not once:
                break
        if once or monitor.alarm:
            break
        time.sleep(options.watch)
    text = "" if options.as_json else str(monitor)
    # an alarm is never hidden by a bad file
    return Answer(text, (), ALARM if monitor.alarm else BAD_INPUT if told and once else 0)


def _monitor(options: SimpleNamespace) -> Monitor:
    """Return the monitor as it was kept, or a new one."""
    from crossedge.monitoring import Monitor

    table = _table(options.reference, options, None)
    options.decimal = table.decimal if table.decimal in (",", ".") else ""
    seed = options.seed or 0
    if options.state is None or not options.state.exists():
        made: Monitor = _quietly(lambda: _made(table, options, seed, options.scale))
        return made
    monitor = Monitor.load(options.state)
    rule = monitor.rule
    changed = (
        (options.false_alarm_rate not in (None, rule.false_alarm_rate), "--false-alarm-rate"),
        (options.run_length not in (None, rule.run_length), "--run-length"),
        (options.scale not in (None, monitor.scale), "--scale"),
        (options.distance != monitor.distance, "--distance"),
        (options.max_points not in (None, monitor.max_points), "--max-points"),
    )
    for differs, name in changed:
        if differs:
            raise ValueError(
                f"{options.state} was made with another {name}: leave it out, or give a new --state"
            )
    from crossedge.monitoring.storage import check_origin, check_seed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which the first call has told
        again = _made(table, options, seed, monitor.scale)
    check_origin(monitor, again, str(options.state))
    if options.seed is not None:
        check_seed(monitor, again, str(options.state))
    return monitor


def _made(table: Table, options: SimpleNamespace, seed: int, scale: str | None) -> Monitor:
    from crossedge.monitoring import Monitor

    return Monitor(
        table,
        false_alarm_rate=options.false_alarm_rate,
        run_length=options.run_length,
        distance=options.distance,
        scale=scale,
        max_points=2000 if options.max_points is None else options.max_points,
        rng=seed,
    )


def _reset(monitor: Monitor, options: SimpleNamespace) -> None:
    """Begin anew after an alarm, and keep that."""
    if not monitor.alarm:
        raise ValueError(f"--reset: {options.state} has no alarm: leave it out")
    monitor.reset(adopt=options.adopt)
    monitor.save(options.state)


def _new_files(options: SimpleNamespace, monitor: Monitor) -> list[Path]:
    """Return the files that the monitor has not seen, in order."""
    seen = {state.name for state in monitor.history}
    own = [path.resolve() for path in (options.reference, options.state) if path is not None]
    found = [
        path
        for path in options.folder.iterdir()
        if path.is_file()
        and not path.name.startswith(".")
        and not path.name.endswith(UNFINISHED)
        and path.name not in seen
        and path.resolve() not in own
    ]
    by_time = options.order == "time"
    return sorted(found, key=lambda path: (os.stat(path).st_mtime_ns if by_time else 0, path.name))


def _take(monitor: Monitor, path: Path, options: SimpleNamespace) -> MonitorState:
    """Read a file and update the monitor."""
    table = _table(path, options, monitor)
    state: MonitorState = _quietly(lambda: monitor.update(table, name=path.name))
    return state


def _table(path: Path, options: SimpleNamespace, monitor: Monitor | None) -> Table:
    from crossedge.data.selection import Pair, choose_columns
    from crossedge.data.tables import read_table

    table = read_table(path, options.header, options.decimal)
    chosen = choose_columns(Pair(table, table), options.columns, options.drop).x
    if monitor is not None and not chosen.named:
        return replace(chosen, names=monitor.names or chosen.names)
    return chosen


def _quietly(work: Any) -> Any:
    """Do the work, with warnings as lines on the standard error."""
    from crossedge.data.columns import printable

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    for each in caught:
        if each.category is UserWarning:
            click.echo(f"crossedge: warning: {printable(str(each.message))}", err=True)
    return found


def _line(state: MonitorState, options: SimpleNamespace) -> str:
    hint = ""
    if state.alarm and options.state is not None:
        hint = "; the alarm stands until --reset (with --adopt if the new state is accepted)"
    return (
        f"{state.name}: {state.size:,} rows, p-value {state.pvalue:.3g}, "
        f"evidence {state.evidence:.3g} of {state.threshold:g}: {state.words}{hint}"
    )
