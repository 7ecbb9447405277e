import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
# compiled loops take their time on the first call, so examples have no deadline
settings.register_profile("crossedge", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("crossedge")
