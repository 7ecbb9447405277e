"""Train a generator until no test can tell its samples from the data."""

from crossedge.learning.configuration import PRESETS as PRESETS
from crossedge.learning.configuration import RECIPES as RECIPES
from crossedge.learning.configuration import Configuration as Configuration
from crossedge.learning.configuration import Phase as Phase
from crossedge.learning.datasets import Dataset as Dataset
from crossedge.learning.datasets import load as load
from crossedge.learning.generators import initialise as initialise
from crossedge.learning.generators import paper_generator as paper_generator
from crossedge.learning.trainer import Trainer as Trainer
