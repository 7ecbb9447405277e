"""Sums of pair weights inside the first sample, for 512 labellings and a full matrix of weights.

R_x = z' W z / 2 for labels z of 0 and 1: a product of matrices for all labellings together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from crossedge.compiled import compiled
from crossedge.numerics.bit_counters import LANES, WORDS, Words

Floats = npt.NDArray[np.float64]

PARTS, LEAST = 4, 64  # blocks of rows of W, and how many rows they have at least
# the eight bits of every byte, as numbers
BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(
    np.float64
)


def multiply_within(
    labels: Words, matrix: torch.Tensor, degree: torch.Tensor
) -> tuple[Floats, Floats]:
    """For every lane, R_x and the sum of degrees over x."""
    z = spread(labels)
    n, product = len(z), np.empty_like(z)
    labelled, out = torch.from_numpy(z), torch.from_numpy(product)
    # W is symmetric: blocks below the diagonal count twice, those above it need no product
    size = max(-(-n // PARTS), LEAST)
    for first in range(0, n, size):
        rows = slice(first, min(first + size, n))
        torch.mm(matrix[rows, rows], labelled[rows], out=out[rows])
        if first:
            out[rows].mul_(0.5).addmm_(matrix[rows, :first], labelled[:first])
        else:
            out[rows].mul_(0.5)
    within, degrees = np.zeros(LANES), np.zeros(LANES)
    _gather(z, product, degree.numpy(), within, degrees)
    return within, degrees


def spread(labels: Words) -> Floats:
    """(n, LANES): the bits as numbers."""
    z = np.empty((len(labels), LANES))
    _spread(labels, BITS, z)
    return z


@compiled
def _spread(labels: Words, bits: Floats, z: Floats) -> None:
    for point in range(len(labels)):
        for word in range(WORDS):
            rest = labels[point, word]
            for byte in range(8):
                digits = bits[rest & np.uint64(255)]
                first = 64 * word + 8 * byte
                for bit in range(8):
                    z[point, first + bit] = digits[bit]
                rest >>= np.uint64(8)


@compiled
def _gather(z: Floats, product: Floats, degree: Floats, within: Floats, degrees: Floats) -> None:
    for point in range(len(z)):
        d = degree[point]
        for lane in range(LANES):
            within[lane] += z[point, lane] * product[point, lane]
        for lane in range(LANES):
            degrees[lane] += d * z[point, lane]
