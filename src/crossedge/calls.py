"""What every public call does first: work on usual terms, wherever it was called from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np
import torch

from crossedge.interrupts import run_interruptibly
from crossedge.threads import one_blas_thread, torch_in_one_thread

Answer = TypeVar("Answer")


USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def run_usual(work: Callable[[], Answer]) -> Answer:
    """Do the work so that an interrupt ends it at once, and nobody else's settings change it.

    What the caller asked of numpy (`np.seterr`) and of torch (`torch.set_default_device`) is meant
    for the caller's own arithmetic.
    """

    def on_usual_terms() -> Answer:
        with ExitStack() as terms:
            terms.enter_context(np.errstate(**USUAL))
            terms.enter_context(torch_in_one_thread())
            terms.enter_context(one_blas_thread())
            if torch.get_default_device().type != "cpu":
                terms.enter_context(torch.device("cpu"))
            return work()

    return run_interruptibly(on_usual_terms)
