"""The function `report`: find all answers, and write them to one page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, SupportsIndex

from crossedge.data.columns import check_sample_names
from crossedge.data.distances import BlockDistance
from crossedge.effects import EffectSize
from crossedge.findings import Findings, find, verdict_of
from crossedge.null import Law
from crossedge.result import TwoSampleResult
from crossedge.runtime.lazy import what_to_install
from crossedge.runtime.randomness import Rng, random_key
from crossedge.weights import Weights
from crossedge.witnesses import Witness

SEEDS = 2**32  # of a report without a seed: it draws one, and tells it


@dataclass(frozen=True, eq=False)
class Report:
    """What a report says, and where it was written. It prints as the summaries of its parts.

    Attributes
    ----------
    path : Path
        The page.
    test : TwoSampleResult
        Whether the samples differ.
    effect : EffectSize or None
        How large the difference is; None for samples of fewer than five points.
    witness : Witness
        Where it is.

    See Also
    --------
    report : The function that returns it.
    """

    path: Path
    test: TwoSampleResult
    effect: EffectSize | None
    witness: Witness

    def __repr__(self) -> str:
        verdict = verdict_of(self.test, self.effect)
        parts = [f"report: {self.path}", verdict, self.test, self.effect, self.witness]
        return "\n".join(str(part) for part in parts if part is not None)


def report(
    x: Any,
    y: Any,
    path: str | os.PathLike[str],
    weights: Weights | Sequence[Weights] | None = None,
    *,
    statistic: str | None = None,
    null: str | Law = "permutation",
    n_resamples: SupportsIndex = 9999,
    distance: float | BlockDistance = 2.0,
    scale: str | None = None,
    rng: Rng = None,
    tolerance: float | None = None,
    names: tuple[str, str] = ("x", "y"),
    today: date | None = None,
) -> Report:
    """Write one self-contained page of HTML about two samples.

    It says whether the samples differ, how large the difference is and where it lies, with figures,
    and how to repeat it. It needs no network, has no scripts, and prints well.

    Parameters
    ----------
    x, y : array, tensor, list or frame
        The samples, as in `two_sample`. Distances alone are not enough.
    path : str or path
        Where to write the page. A file that is there is replaced.
    weights, statistic, null, n_resamples, distance, scale : optional
        The test, as in `two_sample`.
    rng : int, numpy Generator or torch Generator, optional
        The source of randomness. The page names the seed that repeats it.
    tolerance : float, optional
        A divergence that would be tolerable, as in `effect_size`.
    names : pair of str, optional
        What to call the samples.
    today : date, optional
        The date on the page; by default that of today.

    Returns
    -------
    Report
        The answers, of the test, of `effect_size` and of `witness`, which the page shows.

    Raises
    ------
    ImportError
        If jinja2 is missing.
    TypeError, ValueError
        As `two_sample`, `effect_size` and `witness` do.
    OSError
        If the page cannot be written.

    Warns
    -----
    UserWarning
        For frames, as in `two_sample`. The page has these warnings, too.

    See Also
    --------
    two_sample, effect_size, witness : The answers one by one.

    Notes
    -----
    The test sees all points. How large and where are told by at most 20,000 random ones.
    """
    target = check_target(path)
    named = check_sample_names(names)
    seed = int(rng) if isinstance(rng, int) else int(random_key(rng)) % SEEDS
    choices = {
        "weights": weights,
        "statistic": statistic,
        "null": null,
        "n_resamples": n_resamples,
        "distance": distance,
        "scale": scale,
        "tolerance": tolerance,
    }
    found = find(x, y, rng=seed, names=named, **choices)  # type: ignore[arg-type]
    own = {"names": named} if named != ("x", "y") else {}
    write(found, target, named, reproduce=python_lines(choices | own, seed), seed=seed, today=today)
    for caution in found.cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    assert found.witness is not None
    return Report(target, found.test, found.effect, found.witness)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page, or raise before anything is computed if it cannot be written."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{target} is a folder: name a file for the report, such as report.html")
    if not target.parent.is_dir():
        raise ValueError(
            f"{target.parent} is no folder: make it first, or write the report elsewhere"
        )
    try:
        import jinja2  # noqa: F401
    except ModuleNotFoundError as missing:
        raise ImportError(what_to_install("a report", missing)) from None
    return target


def write(
    found: Findings,
    target: Path,
    names: tuple[str, str],
    *,
    reproduce: str,
    seed: int,
    today: date | None = None,
) -> None:
    """Write the page of what was found."""
    from crossedge.reports.page import page  # needs jinja2

    text = page(found, names, reproduce=reproduce, seed=seed, today=today or _today())
    target.write_text(text, encoding="utf-8", errors="replace")


def _today() -> date:
    """Return the date, or that of SOURCE_DATE_EPOCH, which makes builds reproducible."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    if seconds.isdecimal():
        return datetime.fromtimestamp(int(seconds), UTC).date()
    return datetime.now(UTC).date()


def python_lines(choices: dict[str, Any], seed: int) -> str:
    """Return the lines that repeat a report, with x and y for the samples."""
    usual = {"null": "permutation", "n_resamples": 9999, "distance": 2.0}
    given = [
        f"{name}={_spelt(value)}"
        for name, value in choices.items()
        if value is not None and value is not usual.get(name) and value != usual.get(name)
    ]
    arguments = ", ".join(["x", "y", '"report.html"', *given, f"rng={seed}"])
    return f"import crossedge as ce\n\nce.report({arguments})"


def _spelt(value: Any) -> str:
    if isinstance(value, Weights) or hasattr(value, "log_pvalue"):
        return f"ce.{value!r}"
    if isinstance(value, list | tuple) and any(isinstance(each, Weights) for each in value):
        return f"[{', '.join(map(_spelt, value))}]"
    return getattr(value, "__name__", None) or repr(value)
