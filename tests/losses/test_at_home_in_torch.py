"""Losses under torch's transforms, compilers, precisions and processes."""

import subprocess
import sys

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import crossedge as ce
from crossedge.losses.in_torch import _median
from crossedge.weights.scales import median_distances

EVERY = [
    ce.NearestNeighbours(1, 0.7),
    ce.NearestNeighbours(3, 0.7),
    ce.SpanningTree(0.7),
    ce.GaussianKernel(),
    ce.EnergyKernel(),
]
TWICE = [*EVERY[:2], ce.GaussianKernel(1.5), ce.LaplaceKernel((1.0, 2.0)), ce.EnergyKernel()]


def points(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("weights", EVERY, ids=repr)
@pytest.mark.parametrize("standardize", [True, "pearson3"])
class TestTransforms:
    def test_gradients(self, weights, standardize):
        loss = ce.TwoSampleLoss(weights, standardize=standardize)
        x, y = points(12, 3), points(9, 3, seed=1).requires_grad_()
        (expected,) = torch.autograd.grad(loss(x, y), y)
        y = y.detach()
        one = torch.tensor(1.0, dtype=torch.float64)
        for found in (
            torch.func.grad(lambda y: loss(x, y))(y),
            torch.func.vjp(lambda y: loss(x, y), y)[1](one)[0],
            torch.func.jacrev(lambda y: loss(x, y))(y),
        ):
            torch.testing.assert_close(found, expected)

    def test_batches(self, weights, standardize):
        loss = ce.TwoSampleLoss(weights, standardize=standardize)
        x, y = points(12, 3), points(2, 4, 9, 3, seed=1)
        flat = y.reshape(-1, 9, 3)
        values = torch.stack([loss(x, one) for one in flat])
        slopes = torch.stack([torch.func.grad(lambda y: loss(x, y))(one) for one in flat])
        torch.testing.assert_close(loss(x, y), values.reshape(2, 4))
        torch.testing.assert_close(torch.vmap(lambda y: loss(x, y))(flat), values)
        mapped = torch.vmap(torch.func.grad(lambda y: loss(x, y)), in_dims=1, out_dims=1)
        torch.testing.assert_close(mapped(flat.movedim(0, 1)), slopes.movedim(0, 1))
        y = y.clone().requires_grad_()
        loss(x, y).sum().backward()
        torch.testing.assert_close(y.grad.reshape(-1, 9, 3), slopes)


def test_a_batch_of_other_distances():
    loss, x, y = ce.TwoSampleLoss(EVERY[0], distance=1.0), points(6, 3), points(2, 5, 3, seed=1)
    torch.testing.assert_close(loss(x, y), torch.stack([loss(x, one) for one in y]))


@pytest.mark.parametrize("distance", [1.0, torch.cdist])
def test_vmap_of_other_distances_says_what_to_do(distance):
    loss, x, y = ce.TwoSampleLoss(EVERY[0], distance=distance), points(6, 3), points(2, 5, 3)
    with pytest.raises(NotImplementedError, match="vmap serves Euclidean distances only: give"):
        torch.vmap(lambda y: loss(x, y))(y)


def test_a_batch_of_temperatures():
    x, y, temperatures = points(6, 3), points(5, 3, seed=1), torch.tensor([0.5, 2.0]).double()

    def loss(t):
        return ce.TwoSampleLoss(ce.NearestNeighbours(1, t))(x, y)

    def slope(t):
        t = t.requires_grad_()
        return torch.autograd.grad(loss(t), t)[0]

    expected = torch.stack([slope(t.clone()) for t in temperatures])
    torch.testing.assert_close(
        torch.stack([torch.func.grad(loss)(t) for t in temperatures]), expected
    )


class TestSecondDerivatives:
    @pytest.mark.parametrize("weights", TWICE, ids=repr)
    @pytest.mark.parametrize(
        "standardize", [True, False, pytest.param("pearson3", marks=pytest.mark.slow)]
    )
    def test_they_are_right(self, weights, standardize):
        loss = ce.TwoSampleLoss(weights, standardize=standardize)
        x, y = points(5, 3).requires_grad_(), points(4, 3, seed=1).requires_grad_()
        assert torch.autograd.gradgradcheck(loss, (x, y))

    def test_in_the_temperature(self):
        x, y = points(5, 3), points(4, 3, seed=1).requires_grad_()
        t = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(
            lambda t, y: ce.TwoSampleLoss(ce.NearestNeighbours(2, t))(x, y), (t, y)
        )

    @pytest.mark.parametrize("weights", [ce.NearestNeighbours(2, 0.7), ce.GaussianKernel(1.5)])
    def test_every_way_to_ask_for_them(self, weights):
        loss, x, y = ce.TwoSampleLoss(weights), points(5, 3), points(4, 3, seed=1)

        def of_y(y):
            return loss(x, y)

        expected = torch.autograd.functional.hessian(of_y, y)
        direction = points(4, 3, seed=2)
        leaf = y.clone().requires_grad_()
        (slope,) = torch.autograd.grad(of_y(leaf), leaf, create_graph=True)
        identity = torch.eye(12, dtype=torch.float64).reshape(12, 4, 3)
        (rows,) = torch.autograd.grad(slope, leaf, identity, is_grads_batched=True)
        for found in (
            rows.reshape(expected.shape),
            torch.autograd.functional.hessian(of_y, y, vectorize=True),
            torch.func.jacrev(torch.func.grad(of_y))(y),
            torch.vmap(torch.func.jacrev(torch.func.grad(of_y)))(y[None])[0],
        ):
            torch.testing.assert_close(found, expected)
        times = (expected * direction).sum((2, 3))
        for product in (torch.autograd.functional.hvp, torch.autograd.functional.vhp):
            torch.testing.assert_close(product(of_y, y, direction)[1], times)

    def test_a_batch_of_temperatures(self):
        x, y, t = points(5, 3), points(4, 3, seed=1), torch.tensor([0.5, 2.0]).double()
        loss = ce.TwoSampleLoss(ce.NearestNeighbours(1, torch.nn.Parameter(t[0])))

        def of_t(t):
            return torch.func.functional_call(loss, {"scale": t}, (x, y))

        second = torch.func.grad(torch.func.grad(of_t))
        expected = torch.stack([torch.autograd.functional.hessian(of_t, one) for one in t])
        torch.testing.assert_close(torch.stack([second(one) for one in t]), expected)
        torch.testing.assert_close(torch.vmap(second)(t), expected)

    @pytest.mark.parametrize("scale", [0.7, pytest.param((0.5, 2.0), marks=pytest.mark.slow)])
    def test_of_a_batch_with_a_temperature_that_learns(self, scale):
        x, y = points(2, 1, 4, 2).requires_grad_(), points(3, 5, 2, seed=1).requires_grad_()
        scale = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(
            lambda t, x, y: ce.TwoSampleLoss(ce.GaussianKernel(t))(x, y), (scale, x, y)
        )

    def test_there_are_no_third_ones(self):
        loss, x, y = ce.TwoSampleLoss(EVERY[0]), points(5, 3), points(4, 3, seed=1).requires_grad_()
        (slope,) = torch.autograd.grad(loss(x, y), y, create_graph=True)
        (second,) = torch.autograd.grad((slope**2).sum(), y, create_graph=True)
        with pytest.raises(NotImplementedError, match="no third derivatives"):
            second.sum().backward()

    @pytest.mark.parametrize(
        "loss",
        [
            ce.TwoSampleLoss(ce.SpanningTree(0.7)),
            ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.7), distance=1.0),
            ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.7), distance=3.0),
        ],
        ids=["tree", "l_1", "l_3"],
    )
    def test_where_there_are_none_one_line_says_so(self, loss):
        x, y = points(5, 3), points(4, 3, seed=1).requires_grad_()
        (slope,) = torch.autograd.grad(loss(x, y), y, create_graph=True)  # may be asked for
        with pytest.raises(NotImplementedError, match="leave out create_graph=True"):
            slope.sum().backward()

    def test_weights_alone_say_so_too(self):
        distances = torch.cdist(points(5, 3), points(5, 3)).requires_grad_()
        W = ce.SpanningTree(0.7)(distances)
        (slope,) = torch.autograd.grad(W[0, 1], distances, create_graph=True)
        with pytest.raises(RuntimeError, match="no second derivatives"):
            slope.sum().backward()


COMPILED = """
import torch
import crossedge as ce

generator = torch.Generator().manual_seed(0)
x, y = torch.randn(2, 20, 2, generator=generator)
linear = torch.nn.Linear(2, 2)
temperature = torch.nn.Parameter(torch.tensor(0.5))
losses = [
    ce.TwoSampleLoss(ce.SpanningTree(0.5)),
    ce.TwoSampleLoss(ce.NearestNeighbours(1, temperature)),
    ce.TwoSampleLoss(ce.GaussianKernel(), standardize="pearson3"),
    ce.TwoSampleLoss(ce.NearestNeighbours(3, 0.5), distance=1.0),
    ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.5), distance=lambda a, b: torch.cdist(a, b)),
    ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.5), transform=torch.nn.Tanh()),
]
for loss in losses:
    def call():
        return loss(x, linear(y))
    gradients = []
    for one in (call, torch.compile(call, backend=%r, fullgraph=True)):
        linear.zero_grad()
        one().backward()
        gradients.append(linear.weight.grad.clone())
    torch.testing.assert_close(*gradients)
    torch._dynamo.reset()
    wants, checks = [True, False, loss.scale is not None], ("test_schema", "test_faketensor")
    if loss.distance == 2:
        operator = torch.ops.crossedge.loss_of_points.default
        torch.library.opcheck(operator, (x, y, loss.scale, loss.text, wants), test_utils=checks)
print("compiled")
"""


EVERY_STATISTIC_COMPILED = """
from itertools import product

import torch
import crossedge as ce

generator = torch.Generator().manual_seed(0)
x, y = torch.randn(2, 12, 2, generator=generator, dtype=torch.float64)
y = (y + 1).requires_grad_()
losses = []
for statistic, standardize in product(
    ("cross", "weighted", "generalized", "max", "fisher", "mmd", "mmd_ratio"),
    (True, False, "normal", "pearson3"),
):
    try:
        losses.append(ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.7), statistic, standardize))
    except ValueError:  # a statistic without this law
        continue
families = ce.NearestNeighbours(1, 1.0), ce.NearestNeighbours(3, 1.0), ce.SpanningTree(1.0)
losses += [ce.TwoSampleLoss(weights, "max") for weights in (*families, ce.EnergyKernel())]
for scale in (torch.tensor(0.7), torch.tensor([0.7, 2.0])):
    for family in (ce.SpanningTree, ce.GaussianKernel, lambda t: ce.NearestNeighbours(1, t)):
        losses.append(ce.TwoSampleLoss(family(torch.nn.Parameter(scale.clone()))))
losses.append(ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.7), "max", distance=1.0))
for loss in losses:
    leaves = [y, *loss.parameters()]
    eager = torch.autograd.grad(loss(x, y), leaves)
    compiled = torch.compile(loss, backend=%r, fullgraph=True)
    for ours, theirs in zip(torch.autograd.grad(compiled(x, y), leaves), eager, strict=True):
        torch.testing.assert_close(ours, theirs, msg=str(loss))
        assert theirs.abs().max() > 0, loss
    torch._dynamo.reset()
print("compiled")
"""
SOME_STATISTICS_COMPILED = EVERY_STATISTIC_COMPILED.replace("in losses:", "in losses[::15]:")
SECOND_DERIVATIVES_COMPILED = """
import torch
import crossedge as ce

generator = torch.Generator().manual_seed(0)
x, y = torch.randn(2, 5, 2, generator=generator, dtype=torch.float64)
loss = ce.TwoSampleLoss(ce.NearestNeighbours(1, 0.7))
try:
    torch.compile(torch.func.jacrev(torch.func.grad(loss)), backend=%r)(x, y)
except RuntimeError as error:
    assert "does not currently support double backward" in str(error), error
    print("compiled")
"""


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(COMPILED, id="one graph", marks=pytest.mark.slow),
        pytest.param(SOME_STATISTICS_COMPILED, id="statistics"),
        pytest.param(EVERY_STATISTIC_COMPILED, id="every statistic", marks=pytest.mark.slow),
        pytest.param(SECOND_DERIVATIVES_COMPILED, id="second derivatives", marks=pytest.mark.slow),
    ],
)
def test_torch_compile(backend, program):
    """In a process of its own, where nothing was compiled before."""
    command = [sys.executable, "-W", "ignore", "-c", program % backend]
    found = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert found.stdout.strip() == "compiled", found.stderr


@pytest.mark.parametrize("weights", EVERY, ids=repr)
def test_half_precision_and_autocast_compute_in_float32(weights):
    loss, linear = ce.TwoSampleLoss(weights), torch.nn.Linear(3, 3)
    x, y = points(12, 3, dtype=torch.float32), points(9, 3, seed=1, dtype=torch.float32)
    expected = loss(x.half().float(), y.half().float())
    y = y.half().requires_grad_()
    found = loss(x.half(), y)
    found.backward()
    assert (found.dtype, y.grad.dtype) == (torch.float32, torch.float16)
    torch.testing.assert_close(found, expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fake = linear(x)
        value = loss(x, fake)
    value.backward()
    assert (fake.dtype, value.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(value, loss(x, fake.float()))
    assert torch.isfinite(linear.weight.grad).all()


class TestTransform:
    def test_the_loss_is_that_of_mapped_points(self):
        embed, x, y = torch.nn.Linear(3, 2).double(), points(12, 3), points(9, 3, seed=1)
        loss = ce.TwoSampleLoss(EVERY[0], transform=embed)
        assert set(loss.parameters()) == set(embed.parameters())
        expected = ce.TwoSampleLoss(EVERY[0])(embed(x), embed(y))
        found = loss(x, y)
        torch.testing.assert_close(found, expected)
        found.backward()
        assert embed.weight.grad.abs().max() > 0

    def test_it_sees_the_pooled_sample_once(self):
        seen = []
        loss = ce.TwoSampleLoss(EVERY[0], transform=lambda z: seen.append(z.shape) or z)
        loss(points(12, 3), points(9, 3, seed=1))
        assert seen == [(21, 3)]

    def test_it_sees_samples_in_one_batch(self):
        loss, x, y = ce.TwoSampleLoss(EVERY[0], transform=torch.tanh), points(6, 3), points(2, 5, 3)
        torch.testing.assert_close(loss(x, y), torch.stack([loss(x, one) for one in y]))

    def test_bad_ones_get_one_line(self):
        with pytest.raises(TypeError, match="transform=3 is not callable"):
            ce.TwoSampleLoss(EVERY[0], transform=3)
        with pytest.raises(TypeError, match="transform is the class Tanh: give an instance"):
            ce.TwoSampleLoss(EVERY[0], transform=torch.nn.Tanh)
        for wrong in (lambda z: z[:7], lambda z: torch.cat([z, z]), lambda z: z[:, None]):
            with pytest.raises(ValueError, match="for 9 points: it must give"):
                ce.TwoSampleLoss(EVERY[0], transform=wrong)(points(5, 3), points(4, 3))
        with pytest.raises(ValueError, match=r"transform\(points\) has shape"):
            ce.TwoSampleLoss(EVERY[0], transform=lambda z: z.sum(1))(points(5, 3), points(4, 3))


GATHERED = """
import torch, torch.distributed as dist
import crossedge as ce
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
data, noise = torch.randn(16, 3), torch.randn(16, 3)
alone, shared = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
shared.load_state_dict(alone.state_dict())
generator = DistributedDataParallel(shared)
loss = ce.TwoSampleLoss(ce.NearestNeighbours(1, 1.0))
loss(data, alone(noise)).backward()
mine = slice(8 * rank, 8 * rank + 8)
loss(ce.gather(data[mine]), ce.gather(generator(noise[mine]))).backward()
torch.testing.assert_close(shared.weight.grad, alone.weight.grad)
sharded = torch.nn.Linear(3, 3)
sharded.load_state_dict(alone.state_dict())
fully_shard(sharded, mesh=init_device_mesh("cpu", (2,)))
loss(ce.gather(data[mine]), ce.gather(sharded(noise[mine]))).backward()
torch.testing.assert_close(sharded.weight.grad.full_tensor(), alone.weight.grad)
"""
TWICE_GATHERED = """
import warnings
import torch, torch.distributed as dist
import crossedge as ce

warnings.simplefilter("error")  # as torch's, if a collective is no part of the graph
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
data, whole = torch.randn(2, 8, 3, dtype=torch.float64)
losses = [ce.TwoSampleLoss(ce.NearestNeighbours(1, t)) for t in (0.5, 2.0)]  # one for each process

def penalty(loss, points):
    (slope,) = torch.autograd.grad(loss, points, create_graph=True)
    return (slope**2).sum()

whole.requires_grad_()
penalty(sum(loss(data, whole) for loss in losses), whole).backward()
mine = slice(4 * rank, 4 * rank + 4)
own = whole.detach()[mine].requires_grad_()
penalty(losses[rank](data, ce.gather(own)), own).backward()
torch.testing.assert_close(own.grad, whole.grad[mine])
"""
UNEQUAL = """
import torch, torch.distributed as dist
import crossedge as ce

dist.init_process_group("gloo")
rank = dist.get_rank()
for points, found in [
    (torch.zeros(8 - rank, 3), "(7, 3) torch.float32 and (8, 3) torch.float32:"),
    (torch.zeros((4, 3, 2)[: 3 - rank]), "(4, 3) torch.float32 and (4, 3, 2) torch.float32:"),
    (torch.zeros(4, 3, dtype=[torch.float, torch.double][rank]), "and (4, 3) torch.float64:"),
    (torch.zeros(4, 3, requires_grad=rank == 0), "(4, 3) torch.float32 with a gradient:"),
]:
    try:
        ce.gather(points)
    except ValueError as error:
        assert found in str(error) and "\\n" not in str(error), error
    else:
        raise AssertionError(found)
with torch.no_grad():  # no gradient will be asked for
    assert ce.gather(torch.zeros(4, 3, requires_grad=rank == 0)).shape == (8, 3)
"""
LEAVE = """
dist.barrier()
dist.destroy_process_group()
print("done")
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(GATHERED, id="gradient", marks=pytest.mark.slow),
        pytest.param(TWICE_GATHERED, id="second", marks=pytest.mark.slow),
        pytest.param(UNEQUAL, id="unequal", marks=pytest.mark.slow),
    ],
)
def test_gathered_shares_are_as_one_process(tmp_path, program):
    (tmp_path / "program.py").write_text(program + LEAVE)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    found = subprocess.run(
        [*command, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert found.stdout.count("done") == 2, found.stderr  # two processes share one line
    assert found.returncode == 0, found.stderr


class Calls(TorchDispatchMode):
    """Keeps the names of operations."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class NoTransfer(TorchFunctionMode):
    """Refuses to make tensors of values on the host."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        assert func not in (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "weights",
    [
        *EVERY[:2],
        ce.NearestNeighbours(1, "median"),
        ce.NearestNeighbours(3, (0.5, 2.0)),
        ce.GaussianKernel("median"),
        ce.LaplaceKernel((1.0, 2.0)),
        ce.EnergyKernel(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("statistic", [None, "generalized", "max", "mmd_ratio"])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_device_is_not_waited_for(weights, statistic, standardize):
    """The device "meta" has no values: whoever looks at one, or needs it for a shape, fails.

    A tensor that is made of values on the host is a transfer, which waits too.
    """
    loss = ce.TwoSampleLoss(weights, statistic, standardize)
    x, y = torch.empty(12, 3, device="meta"), torch.empty(9, 3, device="meta", requires_grad=True)
    with NoTransfer():
        loss(x, y).backward()
    assert y.grad.shape == (9, 3)


@pytest.mark.parametrize("weights", [*EVERY[:2], ce.GaussianKernel(1.0), ce.EnergyKernel()])
def test_the_kernels_on_a_device_do_not_grow_with_n(weights):
    counts, loss = [], ce.TwoSampleLoss(weights)
    for n in (32, 64):
        x, y = torch.empty(2, n, 3, device="meta").unbind()
        with Calls() as calls:
            loss(x, y.requires_grad_()).backward()
        counts.append(len(calls.names))
    assert counts[1] <= counts[0] + 80  # one more level of a tree of products


@pytest.mark.parametrize("zeros", [0, 60, 120, 121, 190])
def test_the_median_without_looking_is_the_median(zeros):
    """Of 190 distances; if it is 0, of those above 0."""
    distances = torch.zeros(20, 20, dtype=torch.float64)
    between = points(190).abs()
    between[:zeros] = 0.0
    distances[*torch.triu_indices(20, 20, 1)] = between
    (expected,) = median_distances(distances + distances.T)
    assert _median(distances + distances.T).item() == pytest.approx(expected or 1.0, rel=1e-12)
