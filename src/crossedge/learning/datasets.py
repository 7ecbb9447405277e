"""Data sets to learn from, split into training and held-out points."""

from __future__ import annotations

import gzip
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crossedge.learning.layout import Layout

if TYPE_CHECKING:
    import torch

MNIST_VARIABLE = "CROSSEDGE_MNIST"  # environment variable with the folder of the MNIST files
MOONS_TRAIN_POINTS, MOONS_HELD_OUT_POINTS = 5120, 1000  # 5120 points are 20 batches of 256
MOONS_NOISE = 0.05  # standard deviation, as in the paper
# Magic numbers of IDX files: 0x08 for unsigned bytes, then the number of axes
IDX_IMAGES_MAGIC, IDX_LABELS_MAGIC = 2051, 2049


@dataclass(frozen=True)
class Dataset:
    """Training and held-out points of one data set, with labels if the points are images.

    Attributes
    ----------
    name : str
        Name of the data set.
    train, held_out : (n, d) tensors
        Points in rows, float32. Pixels of images lie in [-1, 1].
    train_labels, held_out_labels : (n,) tensors, optional
        Classes of images, as integers from 0 to 9.
    side : int
        Images with classes have side x side pixels; 0 if the points are not such images.
    known_layout : Layout, optional
        What the coordinates mean, if there is more to say than the above.

    See Also
    --------
    load : Load a data set by name.
    """

    name: str
    train: torch.Tensor
    held_out: torch.Tensor
    train_labels: torch.Tensor | None = None
    held_out_labels: torch.Tensor | None = None
    side: int = 0
    known_layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        """What the coordinates of the points mean."""
        if self.known_layout is not None:
            return self.known_layout
        if self.is_images:
            return Layout(self.dimension, "symmetric", (self.side, self.side, 1))
        return Layout(self.dimension)

    @property
    def dimension(self) -> int:
        """Number of columns of the points."""
        return self.train.shape[1]

    @property
    def is_images(self) -> bool:
        """Whether the points are images."""
        return self.side > 0


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        "moons" (two half circles in the plane), "digits" (8 x 8 images, from scikit-learn) or
        "mnist" (28 x 28 images).
    folder : path, optional
        Folder of the four IDX files of MNIST, plain or gzipped. By default, the environment
        variable CROSSEDGE_MNIST names it. The other data sets do not use it.

    Returns
    -------
    Dataset
        Always the same points in the same order.

    Raises
    ------
    ValueError
        If the name is unknown, or a file of MNIST is damaged.
    FileNotFoundError
        If the files of MNIST are not found.

    Examples
    --------
    >>> from crossedge.learning import load
    >>> moons = load("moons")
    >>> moons.train.shape, moons.held_out.shape
    (torch.Size([5120, 2]), torch.Size([1000, 2]))
    """
    if name == "moons":
        return moons()
    if name == "digits":
        return digits()
    if name == "mnist":
        return mnist(folder)
    raise ValueError(f"data set {name!r} is unknown: choose from 'moons', 'digits', 'mnist'")


def moons() -> Dataset:
    """Draw the two moons of scikit-learn, with noise 0.05 as in the paper."""
    import torch
    from sklearn.datasets import make_moons

    points, _ = make_moons(
        MOONS_TRAIN_POINTS + MOONS_HELD_OUT_POINTS, noise=MOONS_NOISE, random_state=0
    )
    tensor = torch.as_tensor(points, dtype=torch.float32)
    return Dataset("moons", tensor[:MOONS_TRAIN_POINTS], tensor[MOONS_TRAIN_POINTS:])


def digits() -> Dataset:
    """Load the 1,797 digits of scikit-learn in a fixed random order, and hold out 360."""
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    points = torch.as_tensor(images[order] / 8 - 1, dtype=torch.float32)
    classes = torch.as_tensor(labels[order])
    cut = len(points) - 360
    return Dataset("digits", points[:cut], points[cut:], classes[:cut], classes[cut:], side=8)


def mnist(folder: str | Path | None = None) -> Dataset:
    """Read MNIST from its four IDX files, plain or gzipped, and scale pixels to [-1, 1]."""
    import torch

    files = mnist_files(folder)
    parts: list[tuple[torch.Tensor, torch.Tensor, int]] = []
    shape: tuple[int, ...] = ()
    for part in ("train", "t10k"):
        images, labels = (
            read_idx(files[part, "images"], IDX_IMAGES_MAGIC),
            read_idx(files[part, "labels"], IDX_LABELS_MAGIC),
        )
        shape = shape or (images.shape[1], images.shape[1])
        if len(images) != len(labels):
            raise ValueError(f"{part} of MNIST has {len(images)} images and {len(labels)} labels")
        points = torch.from_numpy(images.reshape(len(images), -1).astype(np.float32) / 127.5 - 1)
        parts.append((points, torch.from_numpy(labels.astype(np.int64)), images.shape[1]))
        if images.shape[1] != images.shape[2] or images.shape[1:] != shape:
            raise ValueError(f"{part} of MNIST has images of {images.shape[1:]}, not of {shape}")
        if labels.max() > 9:
            raise ValueError(f"{part} of MNIST has the label {labels.max()}: give digits, 0 to 9")
    (train, classes, side), (held_out, held_out_classes, _) = parts
    return Dataset("mnist", train, held_out, classes, held_out_classes, side=side)


def mnist_files(folder: str | Path | None = None) -> dict[tuple[str, str], Path]:
    """Return the paths of the four files by (part, kind), without reading them."""
    folder = folder or os.environ.get(MNIST_VARIABLE)
    if not folder:
        raise FileNotFoundError(
            f"MNIST is not here: give its folder by --data or the variable {MNIST_VARIABLE}"
        )
    return {
        (part, kind): find_idx(folder, f"{part}-{kind}-idx{axes}-ubyte")
        for part in ("train", "t10k")
        for kind, axes in (("images", 3), ("labels", 1))
    }


def find_idx(folder: str | Path, name: str) -> Path:
    """Return the path of an IDX file, plain or gzipped, or raise FileNotFoundError."""
    for suffix in ("", ".gz"):
        path = Path(folder) / (name + suffix)
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} has no {name} or {name}.gz: give the folder of MNIST")


def read_idx(path: Path, magic: int) -> npt.NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes, or raise ValueError if it is damaged."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
        raise ValueError(f"{path} cannot be read: {error}") from None
    if len(content) < 8 or struct.unpack(">i", content[:4])[0] != magic:
        raise ValueError(f"{path} is not an IDX file of the kind that MNIST has")
    axes = magic % 256
    start = 4 + 4 * axes
    shape = struct.unpack(f">{axes}i", content[4:start]) if len(content) >= start else ()
    if not shape or len(content) != start + int(np.prod(shape)):
        raise ValueError(f"{path} is truncated: load it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
