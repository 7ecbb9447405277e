"""Train a generator until no test can tell its samples from the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossedge.learning.configuration import PRESETS as PRESETS
    from crossedge.learning.configuration import RECIPES as RECIPES
    from crossedge.learning.configuration import Configuration as Configuration
    from crossedge.learning.configuration import Phase as Phase
    from crossedge.learning.datasets import Dataset as Dataset
    from crossedge.learning.datasets import load as load
    from crossedge.learning.generators import initialise as initialise
    from crossedge.learning.generators import paper_generator as paper_generator
    from crossedge.learning.trainer import Trainer as Trainer

# Every public name and its home, imported on first use: configurations do not need torch.
_HOMES = {
    "PRESETS": "configuration",
    "RECIPES": "configuration",
    "Configuration": "configuration",
    "Phase": "configuration",
    "Dataset": "datasets",
    "load": "datasets",
    "initialise": "generators",
    "paper_generator": "generators",
    "Trainer": "trainer",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
