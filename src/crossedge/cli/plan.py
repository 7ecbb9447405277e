"""`crossedge plan`: how many rows a test needs, from two pilot tables."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import click

from crossedge.cli.arguments import COUNT, SEED, Answer, Task, WithHelp
from crossedge.cli.tables import check, read, two_tables


@click.command("plan", cls=WithHelp, context_settings={"show_default": True})
@two_tables
@click.option("--power", type=float, default=0.8, help="The wanted probability of finding it.")
@click.option("--level", type=float, default=0.05, help="The level of the test.")
@click.option("--subsamples", type=COUNT, default=100, help="Of each size.")
@click.option("--seed", type=SEED, default=0, help="Of subsamples and labellings.")
@click.option("--json", "as_json", is_flag=True, help="Print all facts as JSON.")
def command(**options: Any) -> Task:
    """Plan a study: how many rows show a difference like that of the pilots X and Y?

    X and Y are tables, as for `crossedge test`. The test that is planned is its default.
    """
    given = SimpleNamespace(**options)
    return Task(lambda _: _run(given))


def _run(options: SimpleNamespace) -> Answer:
    check(options)
    pair, told = read(options)
    from crossedge.planning import plan  # after the files: it imports scipy

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = plan(
            pair.x,
            pair.y,
            power=options.power,
            level=options.level,
            scale=options.scale,
            rng=options.seed,
            n_subsamples=options.subsamples,
        )
    lines = tuple(str(each.message) for each in caught if each.category is UserWarning)
    return Answer(found.to_json(indent=1) if options.as_json else f"{told}\n{found}", lines)
