"""The settings under which every public call runs, whatever the settings of the caller."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np

from crossedge.runtime.interrupts import run_interruptibly
from crossedge.runtime.threads import one_blas_thread, torch_in_one_thread

Answer = TypeVar("Answer")


# numpy's default error handling, for `np.errstate`
USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def run_usual(work: Callable[[], Answer]) -> Answer:
    """Run the work such that an interrupt ends it at once, with default settings.

    Settings of the caller, such as `np.seterr` and `torch.set_default_device`, are meant for the
    caller's own arithmetic.
    """

    def on_usual_terms() -> Answer:
        with ExitStack() as terms:
            terms.enter_context(np.errstate(**USUAL))
            terms.enter_context(torch_in_one_thread())
            terms.enter_context(one_blas_thread())
            torch = sys.modules.get("torch")
            if torch is not None and torch.get_default_device().type != "cpu":
                terms.enter_context(torch.device("cpu"))
            return work()

    return run_interruptibly(on_usual_terms)
