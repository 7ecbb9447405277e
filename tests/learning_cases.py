"""What the tests of training share: comparing states, interrupting, and a run in two processes."""

import os
import signal
import time

import torch

from crossedge.learning import Phase, Trainer, paper_generator
from crossedge.runtime.interrupts import checkpoint


def same(one, other):
    """Return whether two states are equal bit for bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def interrupt_and_wait():
    """Send a real signal, and work until nobody waits for the result any more."""
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(3000):
        time.sleep(0.01)
        checkpoint()


class Double(torch.nn.Module):
    """The paper's generator in double precision, so that rounding is far below any mistake."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.inner = paper_generator(3, 2).double()

    def forward(self, noise):
        return self.inner(noise.double())


def distance_of_means(x, y):
    """Return a loss of the whole batch that is not a sum over its points."""
    return (x.mean(0) - y.mean(0)).norm()


def learn_in_double():
    """Train for two epochs, under torch.distributed if it is initialised; return the parameters."""
    data = torch.randn(96, 2, generator=torch.Generator().manual_seed(1)).double() + 1
    phases = [Phase(2, 1e-3)]
    trainer = Trainer(Double(), data, distance_of_means, batch=32, phases=phases, noise=3)
    list(trainer.run())
    return trainer.generator.state_dict()
