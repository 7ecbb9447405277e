"""Data sets to learn: points of the training and of the held-out part."""

from __future__ import annotations

import gzip
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

MNIST_VARIABLE = "CROSSEDGE_MNIST"
MOONS, MOONS_HELD_OUT, MOONS_NOISE = 5120, 1000, 0.05
IMAGES, LABELS = 2051, 2049  # the magic numbers of IDX files of bytes


@dataclass(frozen=True)
class Dataset:
    """Points in rows, float32; labels for images."""

    name: str
    train: torch.Tensor
    held_out: torch.Tensor
    train_labels: torch.Tensor | None = None
    held_out_labels: torch.Tensor | None = None
    side: int = 0  # images have side x side pixels in [-1, 1]

    @property
    def dimension(self) -> int:
        return self.train.shape[1]

    @property
    def is_images(self) -> bool:
        return self.side > 0


def load(name: str, folder: str | Path | None = None) -> Dataset:
    if name == "moons":
        return moons()
    if name == "digits":
        return digits()
    if name == "mnist":
        return mnist(folder)
    raise ValueError(f"data set {name!r} is unknown: choose from 'moons', 'digits', 'mnist'")


def moons() -> Dataset:
    """Two moons, with noise 0.05 as in the paper."""
    import torch
    from sklearn.datasets import make_moons

    points, _ = make_moons(MOONS + MOONS_HELD_OUT, noise=MOONS_NOISE, random_state=0)
    tensor = torch.as_tensor(points, dtype=torch.float32)
    return Dataset("moons", tensor[:MOONS], tensor[MOONS:])


def digits() -> Dataset:
    """The 1,797 digits of scikit-learn, 8 x 8, in a fixed random order; 360 of them held out."""
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    points = torch.as_tensor(images[order] / 8 - 1, dtype=torch.float32)
    classes = torch.as_tensor(labels[order])
    cut = len(points) - 360
    return Dataset("digits", points[:cut], points[cut:], classes[:cut], classes[cut:], side=8)


def mnist(folder: str | Path | None = None) -> Dataset:
    """Load the four IDX files, plain or gzipped, and scale pixels to [-1, 1]."""
    import torch

    files = mnist_files(folder)
    parts: list[tuple[torch.Tensor, torch.Tensor, int]] = []
    shape: tuple[int, ...] = ()
    for part in ("train", "t10k"):
        images, labels = (
            read_idx(files[part, "images"], IMAGES),
            read_idx(files[part, "labels"], LABELS),
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
    """Find the files of both parts, without reading them."""
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
    for suffix in ("", ".gz"):
        path = Path(folder) / (name + suffix)
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} has no {name} or {name}.gz: give the folder of MNIST")


def read_idx(path: Path, magic: int) -> npt.NDArray[np.uint8]:
    """An IDX file of bytes."""
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
