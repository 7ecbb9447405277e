"""The last layer of a generator of tables: numbers as a file has them, and whole categories.

Two-sample losses see whether a number has two decimals, and whether a row is half of one category
and half of another. So the layer writes what the decoder of the table will read: numbers in their
range and rounded, a category drawn by its probabilities, and cells that are missing or not. The
gradient of what is drawn is that of the probabilities, smoothed by Gumbel noise (Jang and
co-authors, 2017; Maddison and co-authors, 2017), and that of what is rounded passes through.
"""

from __future__ import annotations

import torch
from torch import nn

from crossedge.data.coordinates import APART
from crossedge.learning.column_code import ColumnCode
from crossedge.learning.table_code import TableCode

SMOOTHING = 0.5  # temperature of the probabilities that gradients go through
LEAST = 1e-6  # the least uniform number that a logarithm is taken of


class TableHead(nn.Module):
    """Turn (n, width) numbers into the coordinates of rows of a table.

    The global generator of torch is the source of what is drawn.
    """

    def __init__(self, code: TableCode) -> None:
        super().__init__()
        self.columns = [column for column in code.columns if column.width]

    def forward(self, raw: torch.Tensor) -> torch.Tensor:
        """Return the coordinates of rows, of the type of the numbers."""
        parts = torch.split(raw, [column.width for column in self.columns], 1)
        made = [_cells(part, column) for part, column in zip(parts, self.columns, strict=True)]
        return torch.cat(made, 1)


def _cells(raw: torch.Tensor, column: ColumnCode) -> torch.Tensor:
    if column.kind == "category":
        return _drawn(raw)
    if not column.missing:
        return _rounded(raw, column)
    present = _drawn(torch.cat([torch.zeros_like(raw[:, -1:]), raw[:, -1:]], 1))
    mark = APART * present[:, 1:]
    if column.kind == "constant":
        return mark
    return torch.cat([_rounded(raw[:, :1], column) * present[:, :1], mark], 1)


def _drawn(logits: torch.Tensor) -> torch.Tensor:
    """Draw a category in each row, as 0s and a 1, with the gradient of smoothed probabilities."""
    uniform = torch.rand_like(logits).clamp(LEAST, 1 - LEAST)
    soft = ((logits - (-uniform.log()).log()) / SMOOTHING).softmax(1)
    hard = nn.functional.one_hot(soft.argmax(1), logits.shape[1]).to(logits.dtype)
    return hard + (soft - soft.detach())


def _rounded(values: torch.Tensor, column: ColumnCode) -> torch.Tensor:
    """Return numbers that the column can have; the gradient is that of the values."""
    with torch.no_grad():
        numbers = values.double() * column.spread + column.centre
        numbers = numbers.clamp(column.low, column.high)
        if column.decimals is not None:
            numbers = numbers.round(decimals=column.decimals)
        meant = ((numbers - column.centre) / column.spread).to(values.dtype)
    return values + (meant - values).detach()
