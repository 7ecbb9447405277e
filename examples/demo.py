"""Learn the two moons by fooling a test, watch it happen, and ask the test for its verdict.

A generator makes points out of noise. Each step draws a batch of data and one of generated points,
joins near ones by a smoothed graph, and moves the generator so that more edges cross between the
two, until no more can: then they have the same distribution, as far as the test can see.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import torch

import crossedge as ce
from crossedge.learning import RECIPES, Trainer, load

SHOWN = (0, 2, 10)  # epochs, before the last

torch.set_num_threads(1)  # small networks gain nothing by more

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--seed", type=int, default=0, help="of the training run (default: 0)")
seed = parser.parse_args().seed

data, recipe = load("moons"), replace(RECIPES["moons"], seed=seed)
trainer = Trainer.configured(recipe, data)
print(f"Learning two moons from {len(data.train):,} points, {recipe.epochs} epochs:")
snapshots, losses, start = {0: trainer.sample(1000)}, [], time.perf_counter()
for epoch in trainer.run():
    losses.append(epoch.loss)
    if epoch.epoch in SHOWN:
        snapshots[epoch.epoch] = trainer.sample(1000)
    if epoch.epoch in SHOWN or epoch.epoch % 10 == 0:
        seconds = time.perf_counter() - start
        print(f"  epoch {epoch.epoch:3d}   edges that cross {-epoch.loss:6.1f}   {seconds:3.0f} s")
generated = trainer.sample(1000, seed=2)
snapshots[trainer.epoch] = generated

print("\nAre 1,000 generated points like 1,000 points that the generator has not seen?")
verdict = ce.two_sample(data.held_out, generated, n_resamples=999, rng=0)
print(verdict.verdict)
print(verdict)

figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
panels = {"data": data.held_out}
panels |= {f"generated, epoch {epoch}": points for epoch, points in snapshots.items()}
for ax, (title, points) in zip(axes.flat, panels.items(), strict=False):
    colour = "#4477aa" if title == "data" else "#ee6677"
    ax.scatter(points[:, 0], points[:, 1], s=4, lw=0, color=colour)
    ax.set(title=title, xlim=(-1.6, 2.6), ylim=(-1.1, 1.6), xticks=[], yticks=[])
axes[-1, -1].plot(range(1, len(losses) + 1), [-loss for loss in losses], color="#4477aa")
axes[-1, -1].set(title="minus the loss: edges that cross", xlabel="epoch")
figure.suptitle(f"p = {verdict.pvalue:.3g} for 1,000 generated against 1,000 held-out points")
figure.savefig("demo.png", dpi=110)

page = ce.report(
    data.held_out, generated, "demo.html", n_resamples=999, rng=0, names=("data", "generated")
)
print(f"\nLook at demo.png, and at {page.path}: whether, how large and where they differ.")
