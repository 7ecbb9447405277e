"""e^-x and 2^-x for x >= 0, in a form that compilers turn into vector instructions.

The exp of the C library is called element by element, at four times the cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crossedge.runtime.compiled import compiled_fused, inlined

LARGEST_EXPONENT = 708.0  # e^-708 is normal, e^-709 is subnormal
LOG2_E = 1.4426950408889634
LN_2, LN_2_REST = (
    0.6931471803691238,
    1.9082149292705877e-10,
)  # their sum is ln(2); the first ends in 21 zero bits, so small integers times it are exact
ROUNDING_SHIFT = 1.5 * 2.0**52  # adding it rounds to an integer, held in the lowest bits
BIAS, MANTISSA = np.int64(1023), np.int64(52)  # of a double: of its exponent, and in bits
# (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, interpolated at Chebyshev nodes: error 2e-17
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = (
    0.5000000000000001,
    0.16666666666666669,
    0.041666666666624164,
    0.008333333333330065,
    0.0013888888917196736,
    0.00019841269863040559,
    2.480152132234228e-05,
    2.7557268480289716e-06,
    2.7620075892548164e-07,
    2.51003758422237e-08,
)


@inlined
def decay_of(x: Any) -> Any:
    """Return e^-x with a relative error below 3e-16, and 0 from x = 708 on."""
    y = -min(x, LARGEST_EXPONENT)
    shifted = y * LOG2_E + ROUNDING_SHIFT
    whole = shifted - ROUNDING_SHIFT
    r = (y - whole * LN_2) - whole * LN_2_REST  # |r| <= ln(2) / 2
    power = np.int64((np.float64(shifted).view(np.int64) + BIAS) << MANTISSA).view(np.float64)
    r2 = r * r
    r4 = r2 * r2
    low = (C2 + C3 * r) + (C4 + C5 * r) * r2
    high = (C6 + C7 * r) + (C8 + C9 * r) * r2
    series = 1.0 + (r + r2 * (low + (high + (C10 + C11 * r) * r4) * r4))
    return series * power if x < LARGEST_EXPONENT else 0.0


LOWEST_POWER = 1000.0  # largest x of 2^-x: 2^-1000 is far from subnormal
# (2^f - 1) / f for |f| <= 1/2, interpolated at Chebyshev nodes: error 2e-17
H0, H1, H2, H3, H4, H5, H6, H7, H8, H9, H10 = (
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606888,
    0.0013333558146416936,
    0.0001540353044173605,
    1.525273382983612e-05,
    1.321544258792169e-06,
    1.0178062445845774e-07,
    7.072585949269223e-09,
    4.4549605981865186e-10,
)


@compiled_fused  # apart from its callers: with sums reordered, the two shifts would cancel
def half_to(x: float) -> float:
    """Return 2^-x with a relative error below 3e-16, for 0 <= x <= LOWEST_POWER."""
    shifted = ROUNDING_SHIFT - x
    f = (ROUNDING_SHIFT - shifted) - x
    f2 = f * f
    f4 = f2 * f2
    low = (H0 + H1 * f) + (H2 + H3 * f) * f2
    high = (H4 + H5 * f) + (H6 + H7 * f) * f2
    series = 1.0 + f * (low + (high + ((H8 + H9 * f) + H10 * f2) * f4) * f4)
    exponent = np.float64(shifted).view(np.int64) << MANTISSA
    return np.int64(np.float64(series).view(np.int64) + exponent).view(np.float64)
