"""Training: steps, phases, randomness, several processes."""

import os
import subprocess
import sys

import pytest
import torch

import crossedge as ce
import learning_cases
from crossedge.learning import Phase, Trainer, initialise, paper_generator
from crossedge.learning.classifier import CACHE_VARIABLE, classifier_of
from crossedge.learning.datasets import Dataset
from crossedge.learning.recipes import RECIPES
from crossedge.learning.trainer import NotFiniteError
from learning_cases import distance_of_means, learn_in_double, same


class TestTrainer:
    def make(self, seed=0, epochs=3, batch=32, loss=None):
        data = torch.randn(128, 2, generator=torch.Generator().manual_seed(1)) + 2
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            generator = paper_generator(3, 2)
        loss = loss or ce.TwoSampleLoss(ce.NearestNeighbours(1, 1.0))
        phases = [Phase(epochs, 1e-3)]
        return Trainer(generator, data, loss, batch=batch, phases=phases, noise=3, seed=seed)

    def test_it_learns(self):
        trainer = self.make(epochs=30)
        losses = [epoch.loss for epoch in trainer.run()]
        assert losses[-1] < losses[0] / 3
        assert (trainer.sample(500).mean(0) - 2).abs().max() < 0.8

    def test_a_restored_state_goes_on_bit_for_bit(self):
        whole = self.make()
        expected = [epoch.loss for epoch in whole.run()]
        first = self.make()
        epochs = first.run()
        found = [next(epochs).loss]
        second = self.make(seed=99)
        second.restore(first.state())
        found += [epoch.loss for epoch in second.run()]
        assert found == expected
        for name, value in whole.generator.state_dict().items():
            assert torch.equal(value, second.generator.state_dict()[name])

    def test_a_loss_that_is_not_finite_stops(self):
        for loss in (
            lambda x, y: (y * torch.nan).sum(),
            lambda x, y: (y * 0).sum().sqrt(),  # finite, but its gradient is not
        ):
            trainer = self.make(loss=loss)
            with pytest.raises(NotFiniteError, match="smaller step size"):
                list(trainer.run())
            assert all(value.isfinite().all() for value in trainer.generator.parameters())

    def test_phases_have_steps_and_losses_of_their_own(self):
        seen = []

        def first(x, y):
            seen.append("first")
            return ((x.mean(0) - y.mean(0)) ** 2).sum()

        def second(x, y):
            seen.append("second")
            return first(x, y)

        def make():
            trainer = self.make()
            return Trainer(
                trainer.generator,
                trainer.data,
                [first, second],
                batch=64,
                phases=[Phase(1, 1e-3), Phase(2, 1e-5)],
                noise=3,
            )

        trainer = make()
        steps = []
        for epoch in trainer.run():
            steps.append((epoch.step, trainer.optimizer.param_groups[0]["lr"]))
            if epoch.epoch == 1:
                assert "second" not in seen
                resumed = make()
                resumed.restore(trainer.state())
        assert steps == [(1e-3, 1e-3), (1e-5, 1e-5), (1e-5, 1e-5)]
        assert seen.count("second") == 4
        list(resumed.run())
        for name, value in trainer.generator.state_dict().items():
            assert torch.equal(value, resumed.generator.state_dict()[name])
        with pytest.raises(ValueError, match="1 losses for 2 phases"):
            Trainer(
                trainer.generator, trainer.data, [first], batch=8, phases=[Phase(1, 1)] * 2, noise=3
            )
        with pytest.raises(ValueError, match="positive"):
            Trainer(trainer.generator, trainer.data, first, batch=8, phases=[Phase(1, -1)], noise=3)

    def test_batches_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="larger than the data"):
            self.make(batch=129)


class TestAverage:
    """Samples are drawn by averaged parameters, and training does not see them."""

    def make(self, average, epochs=3):
        data = torch.randn(128, 2, generator=torch.Generator().manual_seed(1)) + 2
        generator = paper_generator(3, 2)
        initialise(generator, 0)
        options = {"batch": 32, "phases": [Phase(epochs, 1e-3)], "noise": 3, "average": average}
        return Trainer(generator, data, distance_of_means, **options)

    def test_it_is_the_average_of_the_steps(self):
        trainer = self.make(0.9, epochs=1)
        seen = []
        trainer.optimizer.register_step_post_hook(
            lambda *_: seen.append(trainer.generator[0].weight.detach().clone())
        )
        expected = trainer.generator[0].weight.detach().clone()
        list(trainer.run())
        assert len(seen) == 4
        for step, weight in enumerate(seen, 1):
            decay = min(0.9, step / (step + 10))
            expected = decay * expected + (1 - decay) * weight
        torch.testing.assert_close(trainer.averaged[0].weight, expected)
        assert not torch.equal(trainer.generator[0].weight, expected)

    def test_training_is_the_same_and_samples_are_others(self):
        plain, averaged = self.make(0.0), self.make(0.99)
        assert [one.loss for one in plain.run()] == [one.loss for one in averaged.run()]
        assert same(plain.generator.state_dict(), averaged.generator.state_dict())
        assert not torch.equal(plain.sample(5), averaged.sample(5))

    def test_it_goes_on_bit_for_bit_from_a_file(self, tmp_path):
        whole = self.make(0.99)
        list(whole.run())
        first, second = self.make(0.99), self.make(0.99)
        next(first.run())
        first.save(tmp_path / "state.npz")
        second.load(tmp_path / "state.npz")
        list(second.run())
        assert same(whole.state()["averaged"], second.state()["averaged"])
        assert torch.equal(whole.sample(5), second.sample(5))

    def test_counts_of_normalisation_are_taken_over(self):
        generator = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        data, phases = torch.ones(64, 2), [Phase(1, 1e-3)]
        trainer = Trainer(
            generator, data, distance_of_means, batch=32, phases=phases, noise=3, average=0.5
        )
        list(trainer.run())
        assert trainer.averaged[1].num_batches_tracked == 2

    def test_what_is_no_decay_is_refused(self):
        with pytest.raises(ValueError, match="no decay"):
            self.make(1.0)


class TestInputs:
    """The noise: normal numbers, random signs, and what the generator is told."""

    def test_they_stand_in_columns(self):
        seen = []

        class Watched(torch.nn.Linear):
            def forward(self, inputs):
                seen.append(inputs.detach().clone())
                return super().forward(inputs)

        labels = torch.eye(2)[torch.arange(64) % 2]
        data = torch.cat([torch.randn(64, 1), labels], 1)
        compared = []

        def loss(real, fake):
            compared.append((real, fake.detach()))
            return distance_of_means(real, fake)

        trainer = Trainer(
            Watched(7, 1), data, loss, batch=16, phases=[Phase(1, 1e-3)], noise=2, signs=3, given=2
        )
        list(trainer.run())
        inputs = torch.cat(seen)
        assert inputs.shape == (64, 7)
        assert set(inputs[:, 2:5].flatten().tolist()) == {-1.0, 1.0}
        assert abs(float(inputs[:, 2:5].mean())) < 0.4
        for told, (real, fake) in zip(seen, compared, strict=True):
            assert torch.equal(told[:, 5:], real[:, 1:])
            assert torch.equal(fake[:, 1:], real[:, 1:])
        points = trainer.sample(40)
        assert points.shape == (40, 3)
        assert points[:, 1:].sum(1).eq(1).all()
        only = torch.tensor([[0.0, 1.0]]).expand(5, 2)
        assert torch.equal(trainer.sample(5, given=only)[:, 1:], only)


class TestRandomness:
    """A run is determined by its seed, and leaves the global generators alone."""

    def make(self, seed=0):
        layers = torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout()
        generator = torch.nn.Sequential(*layers, torch.nn.Linear(8, 2))
        initialise(generator, 0)
        return Trainer(
            generator,
            torch.ones(64, 2),
            lambda x, y: ((x - y) ** 2).mean(),
            batch=32,
            phases=[Phase(4, 1e-2)],
            noise=3,
            seed=seed,
        )

    def test_dropout_and_batch_norm_go_on_bit_for_bit(self):
        torch.manual_seed(1)
        whole = self.make()
        expected = [epoch.loss for epoch in whole.run()]
        torch.manual_seed(2)  # as good as another process
        first = self.make()
        epochs = first.run()
        found = [next(epochs).loss]
        torch.rand(5)
        found.append(next(epochs).loss)
        first.sample(10)
        state = first.state()
        torch.manual_seed(3)
        second = self.make(seed=99)
        second.restore(state)
        found += [epoch.loss for epoch in second.run()]
        assert found == expected
        assert same(whole.state(), second.state())
        assert len(set(expected)) == 4

    def test_dropout_differs_from_epoch_to_epoch_and_by_seed(self):
        seeds = set()
        for trainer in (self.make(0), self.make(1)):
            for _ in trainer.run():
                seeds.add(trainer._seed_of_layers())
        assert len(seeds) == 8

    def test_global_generators_are_left_alone(self, monkeypatch, tmp_path):
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
        images = torch.zeros(20, 4)
        dataset = Dataset("toy", images, images, images[:, 0].long(), side=2)
        trainer = self.make()
        before = torch.get_rng_state()
        list(trainer.run())
        trainer.sample(10)
        Trainer.configured(RECIPES["moons"], Dataset("toy", torch.zeros(512, 2), images))
        classifier_of(dataset)  # trained
        classifier_of(dataset)  # kept
        assert torch.equal(torch.get_rng_state(), before)

    def test_samples_are_those_of_their_seed(self):
        class Noisy(torch.nn.Linear):
            def forward(self, noise):
                return super().forward(noise) + torch.randn(len(noise), 1)

        generator = Noisy(3, 2)
        options = {"batch": 8, "phases": [Phase(1, 1e-3)], "noise": 3}
        trainer = Trainer(generator, torch.ones(8, 2), distance_of_means, **options)
        torch.manual_seed(1)
        first = trainer.sample(5, seed=1)
        torch.manual_seed(2)
        assert torch.equal(trainer.sample(5, seed=1), first)
        assert not torch.equal(trainer.sample(5, seed=2), first)


WORKER = """
import sys, torch, torch.distributed as dist
sys.path.insert(0, sys.argv[1])
from learning_cases import learn_in_double
torch.set_num_threads(1)
rank, meet, out = int(sys.argv[2]), sys.argv[3], sys.argv[4]
dist.init_process_group("gloo", f"file://{meet}", rank=rank, world_size=2)
state = learn_in_double()
if rank == 0:
    torch.save(state, out)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_are_as_good_as_one(tmp_path):
    """The same global batch, half of it made in each process."""
    helpers, out = os.path.dirname(learning_cases.__file__), tmp_path / "out.pt"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, helpers, str(rank), str(tmp_path / "meet"), str(out)]
        )
        for rank in range(2)
    ]
    expected = learn_in_double()
    assert all(worker.wait(300) == 0 for worker in workers)
    found = torch.load(out)
    for name, value in expected.items():
        torch.testing.assert_close(value, found[name], rtol=1e-9, atol=1e-12)
