"""`crossedge test` on one file that a column splits into three samples or more."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING

from crossedge.cli.arguments import Answer

if TYPE_CHECKING:
    from crossedge.data.table import Table
    from crossedge.weights import Weights

FOR_TWO = (  # options of two samples, which say nothing of several
    "sample",
    "statistic",
    "pairs",
    "strata",
    "clusters",
    "where",
    "report",
    "plot",
    "fail_above_effect",
    "tolerance",
)


def compare_several(
    groups: list[Table], told: str, options: SimpleNamespace, weights: Weights | None
) -> Answer:
    """Test all samples together, and each pair."""
    given = [name for name in FOR_TWO if getattr(options, name) not in (None, False)]
    given += ["null"] if options.null != "permutation" else []
    if given:
        flag, name = given[0].replace("_", "-"), options.by.partition("=")[0]
        raise ValueError(
            f"--{flag} is for two samples, and --by {options.by} has {len(groups)} values: choose "
            f"two by {name}=a,b, or leave --{flag} out"
        )
    from crossedge.k_samples import k_sample

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = k_sample(
            {group.source: group for group in groups},
            weights,
            n_resamples=options.resamples,
            distance=options.distance,
            scale=options.scale,
            rng=options.seed,
        )
    lines = tuple(str(each.message) for each in caught if each.category is UserWarning)
    is_below = options.fail_below is not None and found.pvalue < options.fail_below
    if options.as_json:
        facts = {"samples": told, **found.to_dict(), "seed": options.seed, "warnings": [*lines]}
        return Answer(json.dumps(facts, indent=1, allow_nan=False), lines, int(is_below))
    return Answer(f"{told}\n{found}", lines, int(is_below))
