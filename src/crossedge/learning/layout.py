"""What the coordinates of points mean, so that a generator can be made and read without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crossedge.learning.column_code import ColumnCode
from crossedge.learning.table_code import Code, ImageCode, TableCode, code_from_dict
from crossedge.runtime.types import Floats

RANGES = ("free", "symmetric", "unit", "table")  # of coordinates: any, (-1, 1), (0, 1), by columns


@dataclass(frozen=True)
class Layout:
    """What the coordinates of points mean.

    A point has `dimension` coordinates that are generated, and then `given` ones that the generator
    is told: one for each label, `label_scale` for the label of the point and 0 for the others.

    Attributes
    ----------
    dimension : int
        The number of generated coordinates.
    range : {"free", "symmetric", "unit", "table"}
        Where they lie: anywhere, in (-1, 1), in (0, 1), or as the columns of a table demand.
    image : (height, width, channels), optional
        The size of images.
    code : TableCode or ImageCode, optional
        How points become rows of the data; None if they are rows as they are.
    labels : ColumnCode, optional
        The labels that the generator is told.
    label_shares : tuple of float
        How frequent each label is.
    label_scale : float
        Two points that differ in nothing but their labels are sqrt(2) label_scale apart.
    names : tuple of str
        The columns of the data in order, with that of the labels.
    """

    dimension: int
    range: str = "free"
    image: tuple[int, int, int] | None = None
    code: Code | None = None
    labels: ColumnCode | None = None
    label_shares: tuple[float, ...] = ()
    label_scale: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def given(self) -> int:
        """The number of coordinates that the generator is told."""
        return len(self.label_shares)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is generated: that of an image, or (dimension,)."""
        return self.image or (self.dimension,)

    def place_of(self, label: str) -> int:
        """Return the place of a label, or raise ValueError."""
        if self.labels is None:
            raise ValueError(
                "--given is for runs with --condition, and this has none: leave it out"
            )
        if label not in self.labels.levels:
            known = ", ".join(self.labels.levels[:10])
            name = self.labels.name
            raise ValueError(f"{name!r} has no label {label!r}: give one of {known}")
        return self.labels.levels.index(label)

    def told(self, places: npt.NDArray[np.int64]) -> Floats:
        """Return the coordinates of labels, (n, given)."""
        return self.label_scale * np.eye(self.given)[places]

    def draw_places(self, count: int, seed: int) -> npt.NDArray[np.int64]:
        """Draw the places of labels, as frequent as in the data."""
        source = np.random.default_rng(seed)
        return source.choice(self.given, count, p=np.array(self.label_shares))

    def decode(self, points: Floats) -> Any:
        """Return points as rows of the data: a pandas frame, or an array if it had no names."""
        own = points[:, : self.dimension]
        rows = own if self.code is None else self.code.decode(own)
        if self.labels is None or not isinstance(self.code, TableCode):
            return rows
        import pandas as pd

        labels = self.labels.of_places(points[:, self.dimension :].argmax(1))
        others = [name for name in self.names if name != self.labels.name]
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=others)
        frame.insert(self.names.index(self.labels.name), self.labels.name, labels)
        plain = not self.code.named and all(kind.kind in "biuf" for kind in frame.dtypes)
        return frame.to_numpy() if plain else frame

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as JSON has them."""
        return {
            "dimension": self.dimension,
            "range": self.range,
            "image": self.image and list(self.image),
            "code": self.code and self.code.to_dict(),
            "labels": self.labels and self.labels.to_dict(),
            "label_shares": list(self.label_shares),
            "label_scale": self.label_scale,
            "names": list(self.names),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Layout:
        """Return the layout that `to_dict` wrote."""
        image = values["image"]
        return cls(
            dimension=int(values["dimension"]),
            range=values["range"],
            image=(image[0], image[1], image[2]) if image else None,
            code=code_from_dict(values["code"]) if values["code"] else None,
            labels=ColumnCode.from_dict(values["labels"]) if values["labels"] else None,
            label_shares=tuple(values["label_shares"]),
            label_scale=float(values["label_scale"]),
            names=tuple(values["names"]),
        )


def layout_of_code(code: Code, names: tuple[str, ...]) -> Layout:
    """Return the layout of data of one's own, without labels."""
    if isinstance(code, ImageCode):
        return Layout(code.width, "unit", code.shape, code, names=names)
    return Layout(code.width, "table", None, code, names=names)
