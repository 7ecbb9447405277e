"""The paper's power figure, and the appendix's figure of MMD tests.

The samples come from N(0, I) and N((mu, 0, ..., 0), diag(sigma^2, 1, ..., 1)). Their divergence is
the same in every dimension d, but the difference is harder to find the more coordinates there are.
Graphs are smoothed at temperature d^gamma, and kernels have bandwidth d^gamma.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import crossedge as ce

# Dimensions d, and exponents gamma of temperatures and bandwidths
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256)
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Setting(NamedTuple):
    """One row of the figure: the alternative and the sample size."""

    mu: float  # shift of the first coordinate
    sigma: float  # standard deviation of the first coordinate
    n: int  # points in each sample

    @property
    def title(self) -> str:
        """Title of a panel, in TeX."""
        return f"$\\mu = {self.mu:g}$, $\\sigma = {self.sigma:g}$, $n = {self.n}$"


# The paper's three settings: a shift, and a change of scale at two sample sizes
SETTINGS = (Setting(0.5, 1.0, 128), Setting(0.0, 3.0, 128), Setting(0.0, 3.0, 256))


# Draw x from N(0, I) and y from N((mu, 0, ..., 0), diag(sigma^2, 1, ..., 1)). This is a comment,
# because a docstring would change the fingerprint by which folders recognise their study.
def normals(rng: np.random.Generator, d: int, mu: float, sigma: float, n: int) -> tuple[Any, Any]:
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    y[:, 0] = sigma * y[:, 0] + mu
    return x, y


def tests() -> dict[str, Any]:
    """Return the tests by their names in the paper: "ct" is classical, a number is gamma."""
    found: dict[str, Any] = {"3nn-ct": ce.NearestNeighbours(3), "fr-ct": ce.SpanningTree()}
    for gamma in GAMMAS:
        found[f"3nn-{gamma:g}"] = {"weights": _neighbours(gamma)}
        found[f"fr-{gamma:g}"] = {"weights": _tree(gamma)}
        found[f"mmd-{gamma:g}"] = {"weights": _gaussian(gamma)}
    return {**found, "mmd-med": ce.GaussianKernel(), "energy": ce.EnergyKernel(), "adaptive": None}


def _neighbours(gamma: float) -> Any:
    return lambda d: ce.NearestNeighbours(3, float(d) ** gamma)


def _tree(gamma: float) -> Any:
    return lambda d: ce.SpanningTree(float(d) ** gamma)


def _gaussian(gamma: float) -> Any:
    return lambda d: ce.GaussianKernel(float(d) ** gamma)


def reproduce_power(
    out: str | os.PathLike[str],
    *,
    repetitions: int = 300,
    dimensions: Sequence[int] = DIMENSIONS,
    seed: int = 0,
    jobs: int = 1,
    dask: Any = None,
) -> ce.PowerStudy:
    """Run the study, or continue it, and write tables and figures.

    power.parquet, power.csv     one row for each setting, dimension and test
    claims.csv                   the paper's claims, as differences between tests
    power.png, mmd.png           the figures of the paper and of its appendix
    study/                       finished work, from which the study continues

    Parameters
    ----------
    out : path
        Folder of the study and its results.
    repetitions : int
        Number of pairs of samples for each setting and dimension.
    dimensions : sequence of int
        Dimensions d.
    seed : int
        Seed of the study.
    jobs, dask
        Workers, as in `power_study`.
    """
    folder = Path(out)
    study = ce.power_study(
        normals,
        tests(),
        grid=[{**each._asdict(), "d": int(d)} for each in SETTINGS for d in dimensions],
        repetitions=repetitions,
        rng=seed,
        jobs=jobs,
        dask=dask,
        folder=folder / "study",
    )
    study.frame.to_parquet(folder / "power.parquet", index=False)
    study.frame.to_csv(folder / "power.csv", index=False)
    claims(study).to_csv(folder / "claims.csv", index=False)
    draw_power(study.frame, folder / "power.png")
    draw_mmd(study.frame, folder / "mmd.png")
    return study


def best(frame: Any, family: str) -> str:
    """Return the test of a family with the highest mean power, as in the paper's third column."""
    mean = frame[frame["test"].str.startswith(family + "-")].groupby("test")["power"].mean()
    return str(mean.idxmax())


def claims(study: ce.PowerStudy) -> Any:
    """Return the paper's claims as differences of power: the mean over dimensions and the largest.

    The standard errors are those of paired differences, because all tests saw the same samples.
    """
    import pandas as pd

    found = []
    for setting, rows in _settings(study.frame).items():
        neighbours, tree, mmd = (best(rows, family) for family in ("3nn", "fr", "mmd"))
        pairs = [(neighbours, "3nn-ct"), (tree, "fr-ct")]
        pairs += [
            (test, other)
            for test in (neighbours, tree, "adaptive")
            for other in dict.fromkeys((mmd, "mmd-med", "energy"))
        ]
        for test, other in pairs:
            by_d = study.difference(test, other)
            by_d = by_d[(by_d[list(Setting._fields)] == list(setting)).all(axis=1)]
            most = by_d.loc[by_d["difference"].abs().idxmax()]
            found.append(
                {
                    **setting._asdict(),
                    "test": test,
                    "versus": other,
                    "difference": by_d["difference"].mean(),
                    "standard_error": float(np.sqrt((by_d["standard_error"] ** 2).sum()))
                    / len(by_d),
                    "largest": most["difference"],
                    "its_error": most["standard_error"],
                    "at_d": int(most["d"]),
                }
            )
    return pd.DataFrame(found)


def draw_power(frame: Any, path: Path) -> None:
    """Draw 3-NN, trees, and the best of both beside other tests, one row for each setting."""
    from matplotlib.figure import Figure

    from crossedge.plots import plot_power

    columns = ("3nn", "fr")
    settings = _settings(frame)
    figure = Figure(figsize=(12, 3.1 * len(settings)), layout="constrained")
    axes = figure.subplots(len(settings), 3, squeeze=False)
    for row, (setting, rows) in zip(axes, settings.items(), strict=True):
        for ax, family in zip(row, columns, strict=False):
            plot_power(rows, "d", tests=_family(family), styles=_by_gamma(family), ax=ax)
            ax.set_title(setting.title, fontsize=10)
        chosen = [best(rows, family) for family in ("3nn", "fr", "mmd")]
        if "mmd-med" not in chosen:
            chosen.append("mmd-med")
        plot_power(rows, "d", tests=[*chosen, "energy", "adaptive"], styles=COMPARED, ax=row[2])
        row[2].set_title(setting.title, fontsize=10)
        row[2].legend(frameon=False, fontsize=8)
    for ax in axes[0, :2]:
        ax.legend(frameon=False, fontsize=8)
    _finish(figure, axes, path)


def draw_mmd(frame: Any, path: Path) -> None:
    """Draw the power of MMD at all bandwidths, one panel for each setting."""
    from matplotlib.figure import Figure

    from crossedge.plots import plot_power

    settings = _settings(frame)
    figure = Figure(figsize=(12, 3.3), layout="constrained")
    axes = figure.subplots(1, len(settings), squeeze=False)
    styles = {**_by_gamma("mmd"), "mmd-med": CLASSICAL}
    for ax, (setting, rows) in zip(axes[0], settings.items(), strict=True):
        plot_power(rows, "d", tests=["mmd-med", *_family("mmd")[1:]], styles=styles, ax=ax)
        ax.set_title(setting.title, fontsize=10)
    axes[0, 0].legend(frameon=False, fontsize=8)
    _finish(figure, axes, path)


def _family(family: str) -> list[str]:
    """Return the names of a family of tests, the classical one first."""
    return [f"{family}-ct", *(f"{family}-{gamma:g}" for gamma in GAMMAS)]


# Styles of curves: of the classical tests, and of the tests in the third column
CLASSICAL = {"color": "black", "ls": "--"}
COMPARED: Mapping[str, Mapping[str, Any]] = {
    **{name: {"color": "#4477aa"} for name in _family("3nn")},
    **{name: {"color": "#228833", "ls": "--"} for name in _family("fr")},  # often on top of 3-NN
    **{name: {"color": "#ee6677"} for name in _family("mmd")},
    "mmd-med": {"color": "#ee6677", "ls": ":"},
    "energy": {"color": "#ccbb44"},
    "adaptive": {"color": "black", "lw": 2.0},
}


def _by_gamma(family: str) -> dict[str, Mapping[str, Any]]:
    """Return styles of curves: lighter for larger gamma, black and dashed for the classical."""
    import matplotlib as mpl

    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.9, len(GAMMAS)))
    styles: dict[str, Mapping[str, Any]] = {f"{family}-ct": CLASSICAL}
    for gamma, shade in zip(GAMMAS, shades, strict=True):
        styles[f"{family}-{gamma:g}"] = {"color": mpl.colors.to_hex(shade)}
    return styles


def _settings(frame: Any) -> dict[Setting, Any]:
    """Return the rows of the table for each setting."""
    names = list(Setting._fields)
    return {Setting(*values): rows for values, rows in frame.groupby(names, sort=False)}


def _finish(figure: Any, axes: Any, path: Path) -> None:
    """Label the axes and write the figure."""
    for ax in axes.flat:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("")
    for ax in axes[-1]:
        ax.set_xlabel("dimension")
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    figure.savefig(path, dpi=130)
