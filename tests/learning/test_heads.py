"""The last layer of generators of tables: what it draws, and its gradient."""

import numpy as np
import pandas as pd
import pytest
import torch

from crossedge.data.table import Table
from crossedge.learning.heads import TableHead
from crossedge.learning.table_code import learn_table


@pytest.fixture
def code():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "count": rng.integers(0, 9, 50),
            "price": np.round(rng.normal(5, 2, 50), 1),
            "city": rng.choice(["a", "b", "c"], 50).astype(object),
            "constant": np.where(rng.random(50) < 0.5, 3.0, np.nan),
        }
    )
    frame.loc[:9, "price"] = np.nan
    return learn_table(Table("a frame", frame, tuple(frame), True))


def test_it_writes_what_the_decoder_reads(code):
    torch.manual_seed(0)
    points = TableHead(code)(3 * torch.randn(300, code.width)).double().numpy()
    frame = code.decode(points)
    np.testing.assert_allclose(code.encode(frame), points, atol=1e-5)
    assert frame.isna().any().tolist() == [False, True, False, True]


def test_categories_are_drawn_by_their_probabilities(code):
    torch.manual_seed(0)
    raw = torch.zeros(20_000, code.width)
    raw[:, 3:6] = torch.tensor([0.2, 0.5, 0.3]).log()
    raw[:, 2] = torch.tensor(0.25 / 0.75).log()  # of a missing price
    frame = code.decode(TableHead(code)(raw).double().numpy())
    shares = frame["city"].value_counts(normalize=True)
    assert shares.sort_index().tolist() == pytest.approx([0.2, 0.5, 0.3], abs=0.02)
    assert frame["price"].isna().mean() == pytest.approx(0.25, abs=0.02)


def test_gradients_reach_all_inputs_and_point_the_right_way(code):
    torch.manual_seed(0)
    raw = (0.1 * torch.randn(2000, code.width)).requires_grad_()
    points = TableHead(code)(raw)
    points.sum(0)[0].backward(retain_graph=True)
    assert torch.equal(raw.grad[:, 0], torch.ones(2000))  # rounding passes gradients on
    raw.grad = None
    points[:, 3].sum().backward()  # more of the first city
    mean = raw.grad.mean(0)
    assert mean[3] > 0
    assert mean[4] < 0
    assert mean[5] < 0
    assert raw.grad[:, :3].eq(0).all()
