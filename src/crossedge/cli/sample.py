"""`crossedge sample`: rows from the generator of a training run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from crossedge.cli.arguments import COUNT, SEED, Answer, Task, WithHelp

if TYPE_CHECKING:
    from crossedge.learning.learn import Run

ENDINGS = (".npy", ".csv", ".parquet")


@click.command("sample", cls=WithHelp, context_settings={"show_default": True})
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-n", "--count", type=COUNT, default=1000, help="Number of rows.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write, .npy, .csv or .parquet; or a folder, for images.",
)
@click.option(
    "--given",
    metavar="LABEL",
    help="Of all rows, for runs with --condition.  [default: labels as frequent as in the data]",
)
@click.option(
    "--generator",
    metavar="MODULE:FACTORY",
    help="Of a run whose generator is code, which is imported and run.  [default: none]",
)
@click.option("--seed", type=SEED, default=0, help="Of the noise and of the labels.")
def command(**options: Any) -> Task:
    """Draw rows from the generator of RUN, a folder that `crossedge learn` made.

    A run on a table gives its columns, with values as the table has them. A run on images gives
    one image in each row, or a .png file for each if --out has no ending. The data are not needed.
    """
    given = SimpleNamespace(**options)
    return Task(lambda _: Answer(_sample(given)))


def _sample(options: SimpleNamespace) -> str:
    target: Path = options.out
    if target.suffix not in (*ENDINGS, ""):
        raise ValueError(f"--out {target} has an unknown ending: give {', '.join(ENDINGS)}")
    if not target.parent.is_dir():
        raise ValueError(f"{target.parent} is no folder: make it first, or write elsewhere")
    from crossedge.learning.runs import RunFolder

    RunFolder(options.run).check_finished()
    from crossedge.learning.learn import Run

    run = Run.load(options.run, generator=options.generator)
    if not target.suffix:
        return _write_images(run, options)
    rows = run.rows(options.count, options.seed, options.given)
    _write(rows, target)
    return f"{len(rows):,} rows of {options.run} after {run.saved} epochs: {target}"


def _write(rows: Any, target: Path) -> None:
    """Write rows into a file, of the format that its ending says."""
    import numpy as np

    if target.suffix == ".npy":
        array = np.asarray(rows)
        if array.dtype == object:
            raise ValueError("the rows hold more than numbers: give --out a .csv or .parquet file")
        np.save(target, array)
        return
    import pandas as pd

    frame = rows
    if isinstance(rows, np.ndarray):
        frame = pd.DataFrame(rows, columns=[str(place) for place in range(1, rows.shape[1] + 1)])
    if target.suffix == ".csv":
        # columns without names are written without: their numbers might be taken for a row
        frame.to_csv(target, index=False, header=frame is rows)
    else:
        frame.to_parquet(target, index=False)


def _write_images(run: Run, options: SimpleNamespace) -> str:
    import numpy as np

    if run.layout.image is None:
        raise ValueError(f"{options.run} makes no images: give --out a file with an ending")
    from PIL import Image

    height, width, channels = run.layout.image
    if channels not in (1, 3):
        raise ValueError(f"images of {channels} channels are no pictures: give --out a .npy file")
    points = run.sample(options.count, options.seed, options.given)[:, : run.layout.dimension]
    low = -1.0 if run.layout.range == "symmetric" else 0.0
    values = ((points.double().numpy() - low) / (1 - low)).clip(0, 1)
    pixels = np.round(255 * values).astype(np.uint8).reshape(-1, height, width, channels)
    options.out.mkdir(exist_ok=True)
    for place, image in enumerate(pixels):
        plain = image[..., 0] if channels == 1 else image
        Image.fromarray(plain).save(options.out / f"{place:06d}.png")
    return f"{len(pixels):,} images of {options.run} after {run.saved} epochs: {options.out}"
