"""The adaptive test against one product of matrices of the pooled size."""

from __future__ import annotations

import numpy as np
import torch

import crossedge as ce
from smoothed import milliseconds

N, D, RESAMPLES = 1000, 10, 2000


def main() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(N, D)), rng.normal(size=(N, D))
    A = torch.from_numpy(rng.normal(size=(2 * N, 2 * N)))
    ours, product = milliseconds(
        lambda: ce.two_sample(x, y, n_resamples=RESAMPLES, rng=0), lambda: A @ A, repeat=2
    )
    print(f"\nadaptive test, {N:,} + {N:,} points, d = {D}, {RESAMPLES:,} labellings")
    print(f"{ours:.0f} ms, {ours / product:.1f}x a product of 2,000 x 2,000 matrices; at most 12")


if __name__ == "__main__":
    main()
