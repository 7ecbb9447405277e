"""Data of one's own to learn from: a table, an array, or images, as a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from crossedge.data.selection import Pair, choose_columns
from crossedge.data.stored_tables import IMAGES
from crossedge.data.table import Table
from crossedge.data.tables import read_table
from crossedge.learning.column_code import ColumnCode, learn_labels
from crossedge.learning.configuration import Configuration
from crossedge.learning.datasets import Dataset, load
from crossedge.learning.layout import Layout, layout_of_code
from crossedge.learning.table_code import learn_images, learn_table
from crossedge.runtime.types import Floats

BUILT_IN = ("digits", "mnist", "moons")
HELD_OUT_SHARE, MOST_HELD_OUT = 0.2, 1000  # of the rows, for p-values and the measures of quality
LEAST_ROWS = 20
ALIKE = 1e-5  # relative difference of fingerprints of the same data on two machines
MOST_LABELS = 100
LABEL = "label"  # what the labels of built-in data, and of folders in a folder, are called
PAIRS_LOOKED_AT = 500  # points whose distances set the scale of labels


class _Labels(NamedTuple):
    code: ColumnCode
    places: np.ndarray[tuple[int], np.dtype[np.int64]]


def dataset_of(configuration: Configuration, folder: str | Path | None = None) -> Dataset:
    """Return the data set of a configuration: a built-in one, or one's own."""
    if configuration.data not in BUILT_IN:
        return load_own(configuration)
    dataset = load(configuration.data, folder)
    if configuration.condition is None:
        return dataset
    if configuration.condition != LABEL or dataset.train_labels is None:
        raise ValueError(
            f"{configuration.data} has no column {configuration.condition!r}: "
            + ("leave --condition out" if dataset.train_labels is None else "give label")
        )
    assert dataset.held_out_labels is not None
    both = torch.cat([dataset.train_labels, dataset.held_out_labels]).numpy()
    labels = learn_labels(both, LABEL, MOST_LABELS)
    layout = _with_labels(dataset.layout, _Labels(labels, labels.places(both)), dataset.train)
    train, held_out = (
        torch.cat([points, _told(layout, labels.places(classes.numpy()))], 1)
        for points, classes in (
            (dataset.train, dataset.train_labels),
            (dataset.held_out, dataset.held_out_labels),
        )
    )
    return replace(dataset, train=train, held_out=held_out, known_layout=layout)


def load_own(configuration: Configuration) -> Dataset:
    """Read a file or a folder, encode its rows as points, and hold out a fifth of them.

    Which rows are held out depends on their number only.
    """
    table, labels = _read(configuration)
    names = table.names
    if len(table) < LEAST_ROWS:
        raise ValueError(f"{table.source} has {len(table)} rows: give at least {LEAST_ROWS}")
    if labels is None and configuration.condition is not None:
        table, labels = _taken_out(table, configuration.condition)
    shape = configuration.image
    code = learn_images(table, shape) if shape else learn_table(table)
    layout = layout_of_code(code, names)
    points = torch.from_numpy(code.encode(table).astype(np.float32))
    if labels is not None:
        layout = _with_labels(layout, labels, points)
        points = torch.cat([points, _told(layout, labels.places)], 1)
    order = np.random.default_rng(0).permutation(len(points))
    held_out = min(int(HELD_OUT_SHARE * len(points)), MOST_HELD_OUT)
    name = Path(configuration.data).stem
    return Dataset(name, points[order[held_out:]], points[order[:held_out]], known_layout=layout)


def image_shape(path: Path) -> tuple[int, int, int] | None:
    """Return the size of the images in a folder or in an array with three or four axes."""
    if path.is_dir():
        files = _images(path) or [file for each in _folders(path) for file in _images(each)]
        if not files:
            return None  # which the reader complains of
        from PIL import Image

        with Image.open(files[0]) as image:
            across, down = image.size
        rows = _read_folder(path)[0].values.shape[1]
        return down, across, rows // (down * across)
    if path.suffix == ".npy":
        shape: tuple[int, ...] = np.load(path, mmap_mode="r", allow_pickle=False).shape
        if len(shape) in (3, 4):
            return shape[1], shape[2], shape[3] if len(shape) == 4 else 1
    return None


def fingerprint(dataset: Dataset) -> list[float]:
    """Return numbers by which other training points, or other rows of them, are told apart.

    Machines round differently, so they are to be compared by `is_alike`.
    """
    points = dataset.train.double().numpy()
    rows = np.random.default_rng(0).standard_normal(len(points))
    columns = np.random.default_rng(1).standard_normal(points.shape[1])
    return [*map(float, points.shape), float(rows @ points @ columns), float((points**2).sum())]


def is_alike(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two fingerprints are equal up to rounding."""
    size = 1 + np.sqrt(max(*one, *other, 1.0))  # of a sum of random signs, at most
    return len(one) == len(other) and bool(np.allclose(one, other, ALIKE, ALIKE * size))


def read_rows(path: Path, header: bool | None = None, *, is_image: bool = False) -> Table:
    """Read a file or folder as a table; images also from folders in a folder, or several axes."""
    if path.is_dir():
        return _read_folder(path)[0]
    if is_image and path.suffix == ".npy":
        values = np.load(path, allow_pickle=False)
        if values.ndim > 2:
            values = values.reshape(len(values), -1)
            names = tuple(map(str, range(1, values.shape[1] + 1)))
            return Table(str(path), values, names, named=False)
    return read_table(path, header)


def _read(configuration: Configuration) -> tuple[Table, _Labels | None]:
    path = Path(configuration.data)
    if path.is_dir():
        table, labels = _read_folder(path)
        if configuration.condition is None:
            return table, None
        if configuration.condition != LABEL or labels is None:
            raise ValueError(
                f"{path} has no labels {configuration.condition!r}: put the images of each label "
                "in a folder of its own, and give --condition label"
            )
        cells = np.array(labels, object)
        code = learn_labels(cells, LABEL, MOST_LABELS)
        return table, _Labels(code, code.places(cells))
    table = read_rows(path, configuration.header, is_image=configuration.image is not None)
    pair = Pair(table, table)
    return choose_columns(pair, configuration.columns, configuration.drop).x, None


def _read_folder(path: Path) -> tuple[Table, list[str] | None]:
    """Read the images of a folder, or those of the folders in it with their labels."""
    if _images(path) or not _folders(path):
        return read_table(path), None
    tables = [read_table(folder) for folder in _folders(path)]
    values = np.concatenate([np.asarray(table.values) for table in tables])
    labels = [
        folder.name
        for folder, table in zip(_folders(path), tables, strict=True)
        for _ in range(len(table))
    ]
    return Table(str(path), values, tables[0].names, named=False), labels


def _images(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGES)


def _folders(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir() and _images(each))


def _taken_out(table: Table, name: str) -> tuple[Table, _Labels]:
    """Return a table without its column of labels, and the labels."""
    if name not in table.names:
        shown = ", ".join(table.names[:5])
        raise ValueError(f"--condition: {table.source} has no column {name!r}: it has {shown}")
    others = [each for each in table.names if each != name]
    if not others:
        raise ValueError(f"{table.source} has no column beside {name!r}: there is nothing to learn")
    code = learn_labels(table[name], name, MOST_LABELS)
    return table.with_columns(others), _Labels(code, code.places(table[name]))


def _with_labels(layout: Layout, labels: _Labels, points: torch.Tensor) -> Layout:
    """Return a layout with labels, as far apart as two points are in the median."""
    counts = np.bincount(labels.places, minlength=len(labels.code.levels))
    order = np.random.default_rng(0).permutation(len(points))[:PAIRS_LOOKED_AT]
    distance = float(torch.pdist(points[order].double()).median())
    shares: Floats = counts / counts.sum()
    return replace(
        layout,
        labels=labels.code,
        label_shares=tuple(shares.tolist()),
        label_scale=(distance or 1.0) / 2**0.5,
    )


def _told(layout: Layout, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> torch.Tensor:
    return torch.from_numpy(layout.told(places).astype(np.float32))
