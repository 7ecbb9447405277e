"""Why images learned by t differ from those learned by T: what the standard deviation adds.

The loss is -t = -(T - mean) / sd, or -T. The mean is constant for graphs, so the gradient of -t is
that of -T over sd, plus t times that of log sd. While samples and data are apart, t is far below 0,
and the second term pays for a large sd, whatever the data are. The table follows one model of each
loss, same temperature, steps and seed: after each epoch t, the norm of the second term over that of
the first, the share of inverted images (bright, where the data are dark), the share that these have
in the squared norm of the second term, and the share that pairs of them have in the sum of all
W[i, j]^2, of which the variance consists but for little where samples have equal sizes.
"""

from __future__ import annotations

import argparse

import torch

import crossedge as ce
from crossedge.learning import Phase, Trainer, initialise, load, paper_generator

NOISE, BATCH, EPOCHS, LOOKS = 10, 256, 10, 8  # batches that are looked at after an epoch


def look(weights: ce.NearestNeighbours, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Return t, both norms squared, inverted images, and their shares of the second and of W^2."""
    leaf = fake.detach().requires_grad_()
    slopes = []
    for standardize in (True, False):
        loss = ce.TwoSampleLoss(weights, standardize=standardize)(real, leaf)
        slopes.append(torch.autograd.grad(loss, leaf)[0])
    test = ce.two_sample(real, fake.detach(), weights, null="normal")
    by_count = slopes[1] / test.null_std
    by_spread = slopes[0] - by_count
    is_inverted = fake.mean(1) > 0
    each = by_spread.square().sum(1)
    share = each[is_inverted].sum() / each.sum()
    points = torch.cat([real, fake.detach()]).double()
    W = torch.as_tensor(weights.marginals(torch.cdist(points, points)))
    apart = torch.cat([torch.zeros(len(real), dtype=torch.bool), is_inverted])
    between = W[apart][:, apart].square().sum() / W.square().sum()
    norms = by_count.square().sum(), each.sum()
    found = test.zscore, *norms, is_inverted.float().mean(), share, between
    return torch.tensor([float(one) for one in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the MNIST files")
    parser.add_argument("--temperature", type=float, default=10.0)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    dataset = load("mnist", options.data)
    weights = ce.NearestNeighbours(1, options.temperature)
    print("| loss | epoch | t | second / first term | inverted | of the second term | of W^2 |")
    print("|---" * 7 + "|")
    for name, standardize in (("t", True), ("T", False)):
        generator = paper_generator(NOISE, dataset.dimension, bounded=True)
        initialise(generator, 0)
        loss = ce.TwoSampleLoss(weights, standardize=standardize)
        phases = [Phase(options.epochs, 1e-3)]
        trainer = Trainer(generator, dataset.train, loss, batch=BATCH, phases=phases, noise=NOISE)
        for done in trainer.run():
            found = torch.stack(
                [
                    look(
                        weights,
                        dataset.held_out[k * BATCH : (k + 1) * BATCH],
                        trainer.sample(BATCH, seed=k),
                    )
                    for k in range(LOOKS)
                ]
            ).nanmean(0)
            ratio = float((found[2] / found[1]).sqrt())
            shares = " | ".join(f"{share:.1%}" for share in found[3:])
            cells = f"{found[0]:.1f} | {ratio:.2f} | {shares}"
            print(f"| {name} | {done.epoch} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
