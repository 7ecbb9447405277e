"""The page: what was found, in words, for the template that lays it out."""

from __future__ import annotations

import math
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from crossedge.data.columns import Column
from crossedge.data.raw import Raw
from crossedge.data.samples import Samples
from crossedge.effects import EffectSize
from crossedge.findings import Findings
from crossedge.html import visible
from crossedge.reports import figures
from crossedge.reports.columns import column_figure, missing_shares, shows_missing
from crossedge.result import TwoSampleResult
from crossedge.witnesses import Region, Witness
from crossedge.witnesses.verb import columns_of, ratio_in_words

MOST_DOTS = 2000  # on a map
MOST_DRAWN = 80  # columns with a figure
MOST_LISTED = 300  # columns at all: the page stays small
LONGEST_NAME = 60  # characters of a column or sample
STRONG = 0.01  # p-values up to this make a headline without "seem"
KEY_COLUMNS = 3  # that the summary names


def page(found: Findings, names: tuple[str, str], *, reproduce: str, seed: int, today: date) -> str:
    """Return the page as HTML."""
    assert found.witness is not None
    assert found.points is not None
    shown = (_short(names[0]), _short(names[1]))
    template = _environment().get_template("page.html")
    return template.render(
        test=_test(found, found.witness),
        effect=_effect(found.effect),
        where=_where(found.witness, found.points, shown),
        columns=_columns(found.witness, found.points),
        treatments=_treatments(found.test.columns),
        warnings=found.cautions,
        settings=_settings(found, seed),
        parts=_parts(found.test),
        names=shown,
        reproduce=reproduce,
        version=import_module("crossedge").__version__,
        today=f"{today.day} {today:%B %Y}",
    )


def _environment() -> Environment:
    """Return the templates, which escape all text and show no character that is a command."""
    return Environment(
        loader=PackageLoader("crossedge.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )


def _test(found: Findings, witness: Witness) -> dict[str, Any]:
    result, effect, level = found.test, found.effect, witness.level
    strength, _, rest = found.verdict.partition(" (p ")
    if result.pvalue > level:
        headline = "No difference was found"
        if effect is not None and effect.same_rows:
            headline = "The samples have the same rows"
            strength = "with the same rows in both there is nothing to compare"
    else:
        headline = "The samples differ" if result.pvalue <= STRONG else "The samples seem to differ"
        if effect is not None and effect.is_slight:
            headline += ", but very slightly"
            strength += rest.partition(")")[2]
    return {
        "headline": headline,
        "strength": strength,
        "differ": result.pvalue <= level,
        "pvalue": f"{result.pvalue:.3g}",
        "n_x": f"{result.n_x:,}",
        "n_y": f"{result.n_y:,}",
        "chance": _by_chance(result),
        "figure": Markup(figures.null_figure(result)),  # its text is escaped
    }


def _by_chance(result: TwoSampleResult) -> str:
    """Say how the p-value was found."""
    values = result.null_distribution
    if values is None:
        return (
            "The grey hill is the law of the statistic if both samples came from the same "
            f"distribution. The p-value is from it: {result.law}."
        )
    if result.exact:
        return (
            f"The rows were divided into two samples in all {result.n_resamples:,} ways. In "
            f"{result.pvalue:.3g} of them the statistic is as extreme as observed."
        )
    count = max(round(result.pvalue * (result.n_resamples + 1)) - 1, 0)
    many = "none" if count == 0 else f"{count:,}"
    least = ", so the p-value is the smallest that they can give" if count == 0 else ""
    return (
        f"The rows were mixed and divided anew at random, {result.n_resamples:,} times: the grey "
        f"hill. In {many} of these the statistic was as extreme as observed{least}."
    )


def _effect(effect: EffectSize | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    if effect.same_rows:
        return {"same_rows": True}
    low, high = effect.interval
    least, most = effect.classifier_error
    tolerance = None
    if effect.tolerance is not None and effect.tolerance_pvalue is not None:
        larger = effect.tolerance_pvalue <= 1 - effect.confidence
        tolerance = (
            f"A divergence of {effect.tolerance:g} was said to be tolerable. There is "
            f"{'' if larger else 'no '}evidence that the difference is larger "
            f"(p = {effect.tolerance_pvalue:.3g})."
        )
    return {
        "divergence": f"{effect.divergence:.3f}",
        "interval": f"{low:.3f} to {high:.3f}",
        "confidence": f"{effect.confidence:.0%}",
        "same": f"{effect.same_neighbour:.0%}",
        "chance": f"{effect.same_neighbour_by_chance:.0%}",
        # if the two read alike, the sentence says nothing
        "neighbours_tell": round(effect.same_neighbour, 2)
        > round(effect.same_neighbour_by_chance, 2),
        "least": f"{least:.0%}",
        "most": f"{most:.0%}",
        "tolerance": tolerance,
        "n": f"{effect.n_x + effect.n_y:,}",
        "figure": Markup(figures.effect_figure(effect)),
        "neighbours": Markup(figures.neighbour_figure(effect)),
    }


def _where(witness: Witness, points: Samples, names: tuple[str, str]) -> dict[str, Any]:
    n = len(points.in_x)
    # a fixed seed: the same rows on every page about the same samples
    rows = np.random.default_rng(0).permutation(n)[:MOST_DOTS]
    plane, share = figures.principal_plane(points.values[rows])
    excess, significant = witness.points.excess[rows], witness.points.significant[rows]
    own, lean = figures.maps(plane, points.in_x[rows], excess, significant, names)
    chosen = witness.points.significant
    in_x, in_y = (
        int((chosen & side).sum())
        for side in (witness.points.excess < 0, witness.points.excess > 0)
    )
    found = [column for column in witness.columns if column.significant]
    width = points.values.shape[1]
    axes = {1: "The points along their only coordinate; heights only keep them apart."}.get(
        width, "The points in their two coordinates."
    )
    if share is not None:
        axes = (
            f"The first two principal components of the {width:,} coordinates that the columns "
            f"became, which show {share:.0%} of the variance."
        )
    return {
        "pvalue": f"{witness.pvalue:.3g}",
        "nothing": witness.pvalue > witness.level,
        "level": f"{witness.level:.0%}",
        "own": Markup(own),
        "lean": Markup(lean),
        "axes": axes,
        "dots": f"{len(rows):,}",
        "thinned": len(rows) < witness.n_given,
        "any_points": bool(in_x or in_y),
        "points_x": f"{in_x:,}" if in_x else "none",
        "points_y": f"{in_y:,}" if in_y else "none",
        "points": f"{len(chosen):,}",
        "given": f"{witness.n_given:,}",
        "sampled": len(chosen) < witness.n_given,
        "regions": [_region(region) for region in witness.regions],
        "leads": [(_short(c.name), _arrow(c.description)) for c in found[:KEY_COLUMNS]],
        "carrier": _carrier(witness),
        "more": len(found) - KEY_COLUMNS,
        "significant": len(found),
    }


def _carrier(witness: Witness) -> tuple[str, str] | None:
    """Return the only column that differs and without which nothing does, and how it does."""
    found = [column for column in witness.columns if column.significant]
    if len(found) != 1 or not found[0].pvalue_without > witness.level:
        return None
    return _short(found[0].name), _arrow(found[0].description)


def _region(region: Region) -> dict[str, Any]:
    if region.ratio == 0:
        times = "none"
    else:
        finite = math.isfinite(region.ratio)
        times = f"{ratio_in_words(region.ratio)} times" if finite else "only there"
    return {
        "where": region.where,
        "x": f"{region.share_x:.1%}",
        "y": f"{region.share_y:.1%}",
        "times": times,
        "pvalue": f"{region.pvalue:.3g}",
    }


def _columns(witness: Witness, points: Samples) -> dict[str, Any]:
    raws: dict[str, tuple[str, Raw]] = {
        name: (kind, raw) for name, kind, raw, _ in columns_of(points)
    }
    rows = []
    for place, column in enumerate(witness.columns[:MOST_LISTED]):
        kind, raw = raws[column.name]
        figure, missing = None, missing_shares(raw, points.in_x)
        if place < MOST_DRAWN:
            figure = column_figure(f"{place}", column.name, kind, raw, points.in_x)
            missing = None if shows_missing(raw) else missing
        rows.append(
            {
                "name": _short(column.name),
                "kind": column.kind,
                "figure": figure and Markup(figure),
                "missing": missing and f"missing: {missing[0]:.1%} → {missing[1]:.1%}",
                "change": _arrow(column.description),
                "pvalue": f"{column.adjusted:.3g}",
                "significant": column.significant,
                "without": f"{column.pvalue_without:.3g}",
            }
        )
    hidden = witness.columns[MOST_LISTED:]
    return {
        "rows": rows,
        "single": len(witness.columns) == 1,
        "many": len(witness.columns),
        "drawn": f"{len(witness.in_x):,}" if len(witness.in_x) < witness.n_given else None,
        "significant": sum(column.significant for column in witness.columns),
        "hidden": len(hidden),
        "undrawn": max(min(len(witness.columns), MOST_LISTED) - MOST_DRAWN, 0),
        "without": not any(math.isnan(column.pvalue_without) for column in witness.columns),
    }


def _treatments(columns: tuple[Column, ...]) -> dict[str, Any]:
    shown = [
        {
            "name": _short(column.name),
            "kind": column.kind,
            "treatment": column.treatment,
            "used": bool(column.outputs),
        }
        for column in columns[:MOST_LISTED]
    ]
    width = sum(len(column.outputs) for column in columns)
    return {
        "rows": shown,
        "more": max(len(columns) - MOST_LISTED, 0),
        "width": f"{width:,} dimension{'' if width == 1 else 's'}",
    }


def _settings(found: Findings, seed: int) -> list[tuple[str, str]]:
    test, witness = found.test, found.witness
    assert witness is not None
    rows = [
        ("Test", test.method),
        (
            "Statistic",
            f"{test.statistic:.6g}; if the distributions are equal "
            f"{test.null_mean:.6g} ± {test.null_std:.4g}, z = {test.zscore:.3g}",
        ),
    ]
    if found.effect is not None:
        rows.append(
            ("How large", f"{found.effect.weights.name}, {found.effect.confidence:.0%} interval")
        )
    rows += [
        (
            "Where",
            f"{witness.n_resamples:,} labellings, level {witness.level:g}, "
            f"p = {witness.pvalue:.3g}",
        ),
        ("Seed", str(seed)),
    ]
    if len(witness.in_x) < witness.n_given:
        rows.append(
            (
                "Rows",
                f"the test saw all {witness.n_given:,}; how large and where are told by "
                f"{len(witness.in_x):,} random ones",
            )
        )
    return rows


def _parts(result: TwoSampleResult) -> list[tuple[str, str, str, str]]:
    """Return the parts of an adaptive test, the strongest first."""
    ordered = sorted(result.members, key=lambda member: -member.evidence)
    return [
        (each.name, each.statistic, f"{each.evidence:.3g}", f"{each.pvalue:.3g}")
        for each in ordered
    ]


def _arrow(text: str) -> str:
    return text.replace(" -> ", " → ")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
