"""Train a generator until no two-sample test can tell its samples from the data.

- `Configuration` and `Phase` describe a training run; `PRESETS` and `RECIPES` are ready-made ones.
- `load` returns a `Dataset`.
- `paper_generator` builds the network of the paper, and `initialise` draws its parameters.
- `Trainer` trains any generator on any data with any loss.
- `Run` is a training run in a folder: it is saved, loaded, and sampled from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crossedge.runtime.lazy import lazy_attribute

if TYPE_CHECKING:
    from crossedge.learning.configuration import Configuration as Configuration
    from crossedge.learning.configuration import Phase as Phase
    from crossedge.learning.configuration import with_epochs as with_epochs
    from crossedge.learning.datasets import Dataset as Dataset
    from crossedge.learning.datasets import load as load
    from crossedge.learning.generators import initialise as initialise
    from crossedge.learning.generators import paper_generator as paper_generator
    from crossedge.learning.learn import Run as Run
    from crossedge.learning.recipes import PRESETS as PRESETS
    from crossedge.learning.recipes import RECIPES as RECIPES
    from crossedge.learning.trainer import Trainer as Trainer

# Public name -> module. Each is imported on first use, because configurations do not need torch.
_HOMES = {
    "PRESETS": "recipes",
    "RECIPES": "recipes",
    "Configuration": "configuration",
    "Phase": "configuration",
    "Run": "learn",
    "with_epochs": "configuration",
    "Dataset": "datasets",
    "load": "datasets",
    "initialise": "generators",
    "paper_generator": "generators",
    "Trainer": "trainer",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    homes = {name: f"{__name__}.{home}" for name, home in _HOMES.items()}
    value = lazy_attribute(homes, __name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
