"""What the scoreboard keeps, and the table that it prints of it. It knows no test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

Kept = dict[str, dict[str, list[bool]]]  # family -> test -> whether trial 0, 1, ... was rejected
Job = tuple[str, int, tuple[str, ...]]  # a family, a trial, the tests to run on it


def read(path: Path | None) -> Kept:
    return json.loads(path.read_text()) if path and path.exists() else {}


def write(path: Path | None, kept: Kept) -> None:
    """Write to a file beside it first: a run that is stopped leaves the old one or the new one."""
    if path:
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(
            json.dumps({f: {t: [int(b) for b in o] for t, o in c.items()} for f, c in kept.items()})
        )
        fresh.replace(path)


def missing(kept: Kept, family: str, tests: list[str], trials: int) -> list[Job]:
    """The trials of a family that are not in what is kept, each with the tests that miss it."""
    done = {test: len(kept.get(family, {}).get(test, [])) for test in tests}
    jobs = [
        (family, trial, tuple(test for test in tests if done[test] <= trial))
        for trial in range(trials)
    ]
    return [job for job in jobs if job[2]]


def header(tests: list[str]) -> str:
    return f"| alternative | {' | '.join(tests)} | trials |\n" + "|---" * (2 + len(tests)) + "|"


def row(name: str, outcomes: dict[str, list[bool]], tests: list[str], trials: int) -> str:
    """One family: powers, the best in bold unless the distributions are equal."""
    powers = [float(np.mean(outcomes[test][:trials])) for test in tests]
    best = max(powers) if not is_equal(name) else None
    cells = [f"**{p:.2f}**" if p == best else f"{p:.2f}" for p in powers]
    done = min(len(outcomes[test][:trials]) for test in tests)
    return f"| {name} | {' | '.join(cells)} | {done} |"


def is_equal(name: str) -> bool:
    """Whether the distributions of this family are equal, so that the row shows the level."""
    return name.startswith("equal") or name == "mixture, sigma 1.0"


def summary(kept: Kept, families: list[str], tests: list[str], trials: int) -> list[str]:
    """The last rows: mean power, regrets to the best test of each family, and the error bound."""
    families = [name for name in families if name in kept and not is_equal(name)]
    if not families:
        return []
    power = np.array([[np.mean(kept[f][t][:trials]) for t in tests] for f in families])
    regret = power.max(1, keepdims=True) - power
    least = min(len(kept[f][t][:trials]) for f in families for t in tests)
    rows = {
        "mean power": (power.mean(0), np.max),
        "mean regret to the best": (regret.mean(0), np.min),
        "largest regret": (regret.max(0), np.min),
    }
    lines = []
    for name, (values, best_of) in rows.items():
        best = best_of(values)
        cells = [f"**{v:.2f}**" if v == best else f"{v:.2f}" for v in values]
        lines.append(f"| {name} | {' | '.join(cells)} | |")
    bound = 0.5 / np.sqrt(least)
    return [*lines, "", f"Standard errors of the powers are at most {bound:.3f}."]
