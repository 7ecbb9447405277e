"""`crossedge test`: compare two tables."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from crossedge.cli.arguments import (
    COUNT,
    NULLS,
    SEED,
    STATISTICS,
    TEMPERATURE,
    Answer,
    Parsed,
    Task,
    WithHelp,
)
from crossedge.learning.configuration import WEIGHTS

if TYPE_CHECKING:
    from crossedge.data.columns import Column
    from crossedge.data.designs import Blocks
    from crossedge.data.selection import Pair
    from crossedge.effects import EffectSize
    from crossedge.result import TwoSampleResult
    from crossedge.weights import Weights

SCALES = ("none", "std", "robust", "rank")  # those of crossedge.data.columns, which imports numpy
MOST_LINES = 40  # of columns that are shown one by one
MOST_EFFECT_POINTS = 20_000  # random points of large samples: the interval is narrow enough then
EXITS = """
\b
Exit codes:
  0    done, or not different with --fail-below or --fail-above-effect
  1    different, with one of these
  2    bad input
  130  interrupted
"""


def _probability(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError(f"{text} is no p-value: give a number above 0 and at most 1")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError(f"{text} is no divergence: give a number of at least 0 and below 1")
    return value


FILE = click.Path(path_type=Path, allow_dash=True)


@click.command("test", cls=WithHelp, epilog=EXITS, context_settings={"show_default": True})
@click.argument("x", type=FILE)
@click.argument("y", type=FILE, required=False)
@click.option(
    "--by", metavar="COLUMN[=a,b]", help="Split X by the two values of a column.  [default: no]"
)
@click.option(
    "--columns", multiple=True, metavar="NAMES", help="Compare these columns only.  [default: all]"
)
@click.option("--drop", multiple=True, metavar="NAMES", help="Leave these out.  [default: none]")
@click.option(
    "--sample", type=COUNT, metavar="N", help="Random rows of each sample.  [default: all]"
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a text or sheet names the columns.  [default: by its looks]",
)
@click.option(
    "--scale",
    type=click.Choice(SCALES),
    help="Scale of numbers, by both samples together.  "
    "[default: robust if the columns have names, else none]",
)
@click.option(
    "--weights",
    type=click.Choice(tuple(WEIGHTS)),
    help="Which points are neighbours.  [default: many, one adaptive test]",
)
@click.option("--k", type=COUNT, help="Number of nearest neighbours.  [default: 1]")
@click.option(
    "--temperature", type=TEMPERATURE, help="Of smoothed graphs: numbers, or median.  [default: 0]"
)
@click.option("--bandwidth", type=TEMPERATURE, help="Of kernels, likewise.  [default: median]")
@click.option(
    "--statistic",
    type=click.Choice(STATISTICS),
    help="What is computed from the weights.  [default: that of the weights]",
)
@click.option("--null", type=click.Choice(NULLS), default="permutation", help="Where p is from.")
@click.option("--distance", type=float, default=2.0, metavar="P", help="The l_p distance.")
@click.option("--pairs", is_flag=True, help="Row i of X and row i of Y are a pair.")
@click.option(
    "--strata", metavar="COLUMN", help="Exchange labels within strata only.  [default: no]"
)
@click.option(
    "--clusters", metavar="COLUMN", help="Rows of a cluster share their label.  [default: no]"
)
@click.option("--resamples", type=COUNT, default=9999, help="Random labellings.")
@click.option("--seed", type=SEED, default=0, help="Of the labellings and of --sample.")
@click.option("--json", "as_json", is_flag=True, help="Print all facts as JSON.")
@click.option(
    "--fail-below",
    type=Parsed("number", _probability),
    metavar="P",
    help="Exit with 1 if the p-value is below.  [default: never]",
)
@click.option(
    "--fail-above-effect",
    type=Parsed("number", _share),
    metavar="D",
    help="Exit with 1 if the divergence is surely above: its 95% interval is.  [default: never]",
)
def command(**options: Any) -> Task:
    """Compare two tables: do X and Y come from the same distribution?

    Tables are csv, tsv and other text, json lines, parquet, feather, xlsx, npy or npz, also
    compressed (gz, zst, bz2, xz), a folder of images, or - for the standard input. Columns are
    matched by name, if they have names, and may hold numbers, dates, booleans, categories and
    missing values. With --by, X alone is split in two.
    """
    given = SimpleNamespace(**options)
    return Task(lambda _: _run(given))


def _run(options: SimpleNamespace) -> Answer:
    _check_options(options)
    pair, told = _read(options)
    from crossedge.data.columns import left_out_lines
    from crossedge.data.selection import sample_rows

    left_out: tuple[Column, ...] = ()
    if options.sample:
        pair, left_out = sample_rows(pair, options.sample, options.seed)
    blocks = _blocks(options)
    from crossedge.verbs import two_sample  # after the files: it imports scipy

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = two_sample(
            pair.x,
            pair.y,
            _weights(options),
            statistic=options.statistic,
            null=options.null,
            n_resamples=options.resamples,
            distance=options.distance,
            scale=options.scale,
            blocks=blocks,
            rng=options.seed,
        )
    result = replace(result, columns=(*result.columns, *left_out))
    lines = [str(each.message) for each in caught if each.category is UserWarning]
    cautions = (*left_out_lines(left_out), *lines)
    effect = None if blocks else _effect(pair, result, options)  # its interval is for free rows
    is_below = options.fail_below is not None and result.pvalue < options.fail_below
    most = options.fail_above_effect
    if most is not None and effect is None:
        raise ValueError("--fail-above-effect needs at least 5 rows of each sample: leave it out")
    is_above = most is not None and effect is not None and effect.interval[0] > most
    if options.as_json:
        text = _as_json(result, effect, told, options, cautions)
    else:
        text = _in_words(result, effect, told)
    return Answer(text, cautions, int(is_below or is_above))


def _effect(pair: Pair, result: TwoSampleResult, options: SimpleNamespace) -> EffectSize | None:
    """Return how large the difference is; None for samples that are too small for an interval."""
    from crossedge.effects import FEWEST_POINTS, effect_size

    if min(result.n_x, result.n_y) < FEWEST_POINTS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test has said it
        return effect_size(
            pair.x,
            pair.y,
            tolerance=options.fail_above_effect,
            distance=options.distance,
            scale=options.scale,
            rng=options.seed,
            max_points=MOST_EFFECT_POINTS,
        )


def _check_options(options: SimpleNamespace) -> None:
    """Complain of arguments before anything heavy is imported."""
    if options.y is None and options.by is None:
        raise ValueError("one file is given: give a second one, or --by COLUMN to split it")
    if options.y is not None and options.by is not None:
        raise ValueError("--by splits one file, and two are given: leave one of them out")
    useful = WEIGHTS.get(options.weights, ())
    for name in ("k", "temperature", "bandwidth"):
        if getattr(options, name) is not None and name not in useful:
            raise ValueError(
                f"--{name} does not go with weights {options.weights!r}: leave it out"
                if options.weights
                else f"--{name} needs --weights: give them, or leave it out"
            )
    columns = tuple(name for name in (options.strata, options.clusters) if name)
    if options.pairs or columns:
        if options.pairs and columns:
            raise ValueError("--pairs are strata of two rows: give --pairs or columns, not both")
        for name in ("sample", "fail_above_effect"):
            if getattr(options, name) is not None:
                raise ValueError(
                    f"--{name.replace('_', '-')} does not go with --pairs, --strata and --clusters,"
                    " whose rows are not independent: leave it out"
                )
        if options.columns:
            options.columns = (*options.columns, *columns)
    for path in (options.x, options.y):
        if path is not None and str(path) != "-":
            os.stat(path)


def _read(options: SimpleNamespace) -> tuple[Pair, str]:
    """Read the samples, and say what they are."""
    from crossedge.data.selection import Pair, choose_columns, read_pair, split_by
    from crossedge.data.tables import read_table

    if options.y is not None:
        chosen = options.columns, options.drop
        pair = read_pair(options.x, options.y, options.header, *chosen)
        return pair, f"{pair.x.source} against {pair.y.source}"
    pair, told = split_by(read_table(options.x, options.header), options.by)
    pair = choose_columns(Pair(*pair), options.columns, options.drop)
    return pair, f"{pair.x.source}, {told}"


def _weights(options: SimpleNamespace) -> Weights | None:
    """Return the weights that the options name; None for the default test."""
    from crossedge import weights as families

    makers: dict[str, Any] = {
        "neighbours": families.NearestNeighbours,
        "tree": families.SpanningTree,
        "gaussian": families.GaussianKernel,
        "laplace": families.LaplaceKernel,
        "multiquadric": families.InverseMultiquadricKernel,
        "energy": families.EnergyKernel,
    }
    if options.weights is None:
        return None
    names = ("k", "temperature", "bandwidth")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    weights: Weights = makers[options.weights](**given)
    return weights


def _blocks(options: SimpleNamespace) -> Blocks | None:
    """Return which labels may be exchanged; None for all."""
    from crossedge.data.designs import Clusters, Strata

    if options.clusters:
        return Clusters(options.clusters, options.strata)
    if options.strata:
        return Strata(options.strata)
    return "pairs" if options.pairs else None


def _in_words(result: TwoSampleResult, effect: EffectSize | None, told: str) -> str:
    from crossedge.data.columns import show_columns

    answer = f"{told}\n{_verdict(result)}\n{result}"
    if effect is not None:
        answer += f"\n{effect}"
    if all(column.treatment == "as it is" for column in result.columns):
        return answer
    table = show_columns(result.columns[:MOST_LINES])
    more = len(result.columns) - MOST_LINES
    rest = f"\n  ... and {more} more, all of them with --json" if more > 0 else ""
    return f"{answer}\nwhat was done to each column:\n{table}{rest}"


def _verdict(result: TwoSampleResult) -> str:
    """Return the answer in one line of words."""
    grades = [(1e-3, "very strong"), (1e-2, "strong"), (5e-2, "some")]
    found = [word for level, word in grades if result.pvalue <= level]
    if found:
        return f"{found[0]} evidence that the samples differ (p = {result.pvalue:.4g})"
    return (
        f"no evidence that the samples differ (p = {result.pvalue:.4g}), "
        "which is no proof that they are equal"
    )


def _as_json(
    result: TwoSampleResult,
    effect: EffectSize | None,
    told: str,
    options: SimpleNamespace,
    cautions: tuple[str, ...],
) -> str:
    facts = {
        "samples": told,
        "verdict": _verdict(result),
        **result.to_dict(),
        "effect": None if effect is None else effect.to_dict(),
        "seed": options.seed,
        "warnings": [*cautions],
    }
    return json.dumps(facts, indent=1, allow_nan=False)
