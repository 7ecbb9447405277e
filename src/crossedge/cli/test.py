"""`crossedge test`: compare two tables."""

from __future__ import annotations

import json
import shlex
import warnings
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
from crossedge.cli.gates import check_gate, left_out_of_gate, look_at_labellings
from crossedge.cli.several import compare_several
from crossedge.cli.tables import check, read_groups, two_tables
from crossedge.cli.wording import in_flags
from crossedge.learning.configuration import WEIGHTS

if TYPE_CHECKING:
    from crossedge.data.columns import Column
    from crossedge.data.designs import Blocks
    from crossedge.findings import Findings
    from crossedge.result import TwoSampleResult
    from crossedge.weights import Weights

MOST_LINES = 40  # of columns that are shown one by one
_FREE = (
    "leave it out, or call once more without these, and take that answer for a description, "
    "because its p-values are for independent rows"
)
NOT_WITH_BLOCKS = {  # and why
    "sample": "random rows would tear them apart, so leave it out",
    "where": _FREE,
    "report": _FREE,
    "tolerance": _FREE,
    "fail_above_effect": _FREE,
}
PICTURES = ("png", "pdf", "svg", "jpg", "jpeg", "tif", "tiff", "webp", "eps", "ps")
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


@click.command("test", cls=WithHelp, epilog=EXITS, context_settings={"show_default": True})
@two_tables
@click.option(
    "--sample", type=COUNT, metavar="N", help="Random rows of each sample.  [default: all]"
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
@click.option(
    "--where",
    is_flag=True,
    help="Find points, columns and regions that differ, too.  [default: no]",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write one page of HTML about it all.  [default: none]",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the null distribution, as png, pdf or svg.  [default: no picture]",
)
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
@click.option(
    "--tolerance",
    type=Parsed("number", _share),
    metavar="EPS",
    help="Is the divergence larger than EPS, or smaller? Two more p-values.  [default: no]",
)
def command(**options: Any) -> Task:
    """Compare two tables: do X and Y come from the same distribution?

    Tables are csv, tsv and other text, json lines, parquet, feather, xlsx, npy or npz, also
    compressed (gz, zst, bz2, xz), a folder of images, or - for the standard input. Columns are
    matched by name, if they have names, and may hold numbers, dates, booleans, categories and
    missing values. With --by, X alone is split by the values of a column: if these are three or
    more, all samples are tested together, and then each pair. The folder of a run of
    `crossedge learn` stands for a sample of its generator.
    """
    given = SimpleNamespace(**options)
    return Task(lambda task: _run(given, task.arguments))


def _run(options: SimpleNamespace, arguments: tuple[str, ...]) -> Answer:
    _check_options(options)
    target = _check_target(options)
    if options.plot is not None:
        _check_picture(options.plot)
    groups, told = read_groups(options)
    if len(groups) > 2:
        return compare_several(groups, told, options, _weights(options))
    from crossedge.data.selection import Pair, sample_rows

    pair = Pair(*groups)

    left_out: tuple[Column, ...] = ()
    if options.sample:
        pair, left_out = sample_rows(pair, options.sample, options.seed)
    blocks, weights = _blocks(options), None
    names = _sample_names(pair.x.source, pair.y.source, is_split=options.by is not None)
    from crossedge.findings import Findings, find  # after the files: it imports scipy
    from crossedge.verbs import two_sample

    settings: dict[str, Any] = {
        "statistic": options.statistic,
        "null": options.null,
        "n_resamples": options.resamples,
        "distance": options.distance,
        "scale": options.scale,
        "rng": options.seed,
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            weights = _weights(options)
            if blocks is not None:  # how large and where are for independent rows
                tested = two_sample(pair.x, pair.y, weights, blocks=blocks, **settings)
                found = Findings(tested, None, None, None, ())
            else:
                found = find(
                    pair.x,
                    pair.y,
                    weights,
                    tolerance=_tolerance(options),
                    with_witness=options.where or target is not None,
                    left_out=left_out,
                    names=names,
                    **settings,
                )
        except (ValueError, TypeError) as error:
            raise type(error)(in_flags(str(error), options.weights, weights)) from None
    lines = [str(each.message) for each in caught if each.category is UserWarning]
    lines += look_at_labellings(found.test, options.fail_below)
    is_below = options.fail_below is not None and found.test.pvalue < options.fail_below
    lines += () if is_below else left_out_of_gate(found.test.columns, options.fail_below)
    found = found._replace(cautions=(*found.cautions, *lines))
    most, effect = options.fail_above_effect, found.effect
    for name in ("fail_above_effect", "tolerance"):
        if getattr(options, name) is not None and effect is None:
            raise ValueError(f"{_flag(name)} needs at least 5 rows of each sample: leave it out")
    is_above = most is not None and effect is not None and effect.interval[0] > most
    if options.plot is not None:
        _plot(found.test, options.plot)
    if target is not None:
        from crossedge.reports.verb import write

        command = shlex.join(["crossedge", *arguments])
        write(found, target, names, reproduce=command, seed=options.seed)
    if options.as_json:
        text = _as_json(found, told, options)
    else:
        text = _in_words(found, told, options.where)
        text += f"\nreport: {target}" if target is not None else ""
    return Answer(text, found.cautions, int(is_below or is_above))


def _check_target(options: SimpleNamespace) -> Path | None:
    """Return where to write a report, if one is wanted; complain before anything is computed."""
    if options.report is None:
        return None
    from crossedge.reports.verb import check_target

    return check_target(options.report)


def _check_picture(path: Path) -> None:
    """Complain of a picture that could not be written, before anything is computed."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in PICTURES:
        ends = ", ".join(PICTURES)
        raise ValueError(f"--plot {path}: give a name that ends in one of {ends}")
    if not path.parent.is_dir():
        raise ValueError(f"--plot {path}: {path.parent} is no folder, make it first")
    import matplotlib  # noqa: F401


def _sample_names(x: str, y: str, is_split: bool) -> tuple[str, str]:
    """Return what the samples are called: names of files, without folders if they differ."""
    short = Path(x).name, Path(y).name
    return short if short[0] != short[1] and not is_split else (x, y)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _tolerance(options: SimpleNamespace) -> float | None:
    """Return the divergence that would be tolerable, if one is given."""
    given: float | None = options.tolerance
    return options.fail_above_effect if given is None else given


def _plot(result: TwoSampleResult, path: Path) -> None:
    """Draw the null distribution and the observed statistic into a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from crossedge.plots import plot_null

    figure, ax = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    plot_null(result, ax=ax)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _check_options(options: SimpleNamespace) -> None:
    """Complain of arguments before anything heavy is imported."""
    if options.statistic == "energy" and options.weights != "energy":
        raise ValueError(
            "--statistic energy is made for --weights energy: give both, or another statistic"
        )
    if options.null != "permutation" and options.weights is None:
        raise ValueError(
            f"--null {options.null} needs --weights, because the default test compares labellings: "
            "give --weights, or leave --null out"
        )
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
        for name, why in NOT_WITH_BLOCKS.items():
            if getattr(options, name) not in (None, False):
                raise ValueError(
                    f"{_flag(name)} does not go with --pairs, --strata and --clusters: {why}"
                )
        if options.columns:
            options.columns = (*options.columns, *columns)
    check_gate(options)
    check(options)
    taken = {Path(path).resolve(): "is read" for path in (options.x, options.y) if path is not None}
    for name in ("report", "plot"):
        path = getattr(options, name)
        if path is not None and path.resolve() in taken:
            raise ValueError(
                f"--{name} {path} would overwrite what {taken[path.resolve()]}: name another file"
            )
        if path is not None:
            taken[path.resolve()] = f"--{name} writes"


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


def _in_words(found: Findings, told: str, where: bool) -> str:
    from crossedge.data.columns import show_columns

    result = found.test
    parts = [told, found.verdict, str(result)]
    if found.points is not None and len(found.points.in_x) < result.n_x + result.n_y:
        drawn, given = len(found.points.in_x), result.n_x + result.n_y
        what = "how large and where" if where else "how large"
        parts.append(f"{what}: told by {drawn:,} random rows of {given:,}")
    parts += [str(found.effect)] if found.effect is not None else []
    parts += [str(found.witness)] if where else []
    if any(column.treatment != "as it is" for column in result.columns):
        parts += ["what was done to each column:", show_columns(result.columns[:MOST_LINES])]
        more = len(result.columns) - MOST_LINES
        parts += [f"  ... and {more} more, all of them with --json"] if more > 0 else []
    return "\n".join(parts)


def _as_json(found: Findings, told: str, options: SimpleNamespace) -> str:
    facts = {
        "samples": told,
        "verdict": found.verdict,
        **found.test.to_dict(),
        "effect": None if found.effect is None else found.effect.to_dict(),
        "seed": options.seed,
        "warnings": [*found.cautions],
    }
    if options.where and found.witness is not None:
        facts["witness"] = found.witness.to_dict()
    return json.dumps(facts, indent=1, allow_nan=False)
