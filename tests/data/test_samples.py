import fractions

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

import crossedge as ce
from crossedge.data.precomputed import pool_precomputed
from crossedge.data.representations import (
    REPRESENTATIONS,
    RIDGE,
    ranks,
    squares,
    standardized,
    whitened,
)
from crossedge.data.samples import pool

X = np.array([[0, 1], [2, 3], [5, 4]])
Y = np.array([[1, 1], [3, 7]])
POOLED = np.vstack([X, Y]).astype(float)

FORMS = {
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a.tolist())),
    "fractions": lambda a: [[fractions.Fraction(int(v)) for v in row] for row in a],
    "pandas": lambda a: pd.DataFrame(a, columns=["a", "b"]),
    "nullable pandas": lambda a: pd.DataFrame(a, columns=["a", "b"]).astype("Int64"),
    "polars": lambda a: pl.DataFrame({"a": a[:, 0], "b": a[:, 1]}),
    "torch": torch.as_tensor,
    "torch bfloat16": lambda a: torch.as_tensor(a).bfloat16(),
    "torch with gradient": lambda a: torch.as_tensor(a).double().requires_grad_(),
    "fortran order": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "read only": lambda a: np.broadcast_to(a, a.shape),
    "no mask": np.ma.masked_array,
    **{name: lambda a, name=name: a.astype(name) for name in "bhilqBHILQefdg"},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_a_sample_is_the_same_sample(form):
    samples = pool(form(X), form(Y), "none")
    assert samples.values.dtype == np.float64
    np.testing.assert_array_equal(samples.values, POOLED)
    np.testing.assert_array_equal(samples.in_x, [True, True, True, False, False])
    assert (samples.n_x, samples.n_y) == (3, 2)


def test_forms_may_be_mixed():
    np.testing.assert_array_equal(pool(FORMS["polars"](X), Y.tolist(), "none").values, POOLED)


def test_booleans_are_numbers():
    np.testing.assert_array_equal(pool([True, False], [False]).values, [[1], [0], [0]])


@pytest.mark.parametrize("series", [list, np.array, torch.tensor, pd.Series, pl.Series])
def test_plain_numbers_are_points_on_a_line(series):
    np.testing.assert_array_equal(pool(series([1.0, 2.0]), series([3.0])).values, [[1], [2], [3]])


def test_frames_are_matched_by_name():
    x = pd.DataFrame({"age": [1, 2], "height": [3, 4]})
    y = pl.DataFrame({"height": [5], "age": [6]})
    np.testing.assert_array_equal(pool(x, y, "none").values, [[1, 3], [2, 4], [6, 5]])


def test_the_sample_of_the_caller_is_left_alone():
    x, y = X.astype(float), Y.astype(float)
    ce.two_sample(x, y, ce.SpanningTree())
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


BAD_SAMPLES = {
    "NaN": ([[1.0, float("nan")]], "x has NaN at row 0, column 1"),
    "infinity": ([[1.0, 2.0], [-np.inf, 1.0]], "x has infinity at row 1, column 0"),
    "torch NaN": (torch.tensor([[1.0, torch.nan]]), "x has NaN at row 0, column 1"),
    "no rows": (np.empty((0, 2)), "x has no rows"),
    "empty list": ([], "x has no rows"),
    "no columns": (np.empty((3, 0)), "x has no columns"),
    "different columns": (np.zeros((3, 5)), "y has 2 columns, x has 5"),
    "3-d": (np.zeros((3, 2, 2)), "x has 3 dimensions"),
    "a number": (3.0, "x is the single number 3.0"),
    "a 0-d array": (np.array(3.0), "x has 0 dimensions"),
    "complex": (np.zeros((3, 2), complex), "x holds complex numbers"),
    "torch complex": (torch.zeros(3, 2, dtype=torch.complex64), "x holds complex numbers"),
    "strings": ([["a", "b"]], "x is text"),
    "string objects": (np.array([["a", "b"]], object), "x is text"),
    "one string": ("abc", "x is text"),
    "dates": (np.zeros((3, 2), "datetime64[s]"), "x is dates"),
    "mixed objects": ([[{}, 1.0]], "x is mixed objects"),
    "missing objects": ([[None, 1.0]], "x has NaN at row 0, column 0"),
    "nothing": (None, "x is None"),
    "a dictionary": ({"a": [1.0]}, "x is of type dict"),
    "a generator": ((row for row in [[1.0, 2.0]]), "x is of type generator"),
    "a lazy frame": (pl.DataFrame({"a": [1.0]}).lazy(), "x is a lazy frame: pass x.collect()"),
    "a sparse matrix": (scipy.sparse.eye_array(2), "x is a sparse matrix: pass x.toarray()"),
    "number-like text": (np.array([["1", "2"]], object), "x is text"),
    "lists in a frame": (
        pd.DataFrame({"a": [[1, 2]], "b": [1]}),
        "column 'a' of x holds lists or dictionaries",
    ),
    "complex objects": (np.array([[1, 2j]], object), "x holds complex numbers"),
    "large integers": (np.array([[2**60, 1]]), "x has integers beyond 2^53"),
    "larger integers": ([[10**400, 1]], "x has numbers beyond the range"),
    "large torch integers": (torch.tensor([[2**60, 1]]), "x has integers beyond 2^53"),
    "tensors in a list": ([torch.ones(2, requires_grad=True)], "x cannot be read as an array"),
    "ragged": ([[1.0, 2.0], [3.0]], "x is ragged"),
    "masked": (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), "x has masked entries"),
    "sparse tensor": (torch.eye(2).to_sparse(), "x is a sparse tensor"),
    "bytes in a frame": (
        pd.DataFrame({"a": [1], "name": [b"bob"]}),
        "column 'name' of x holds bytes",
    ),
    "infinity in a frame": (
        pd.DataFrame({"a": [1.0], "b": [np.inf]}),
        "column 'b' of x has infinity in row 1",
    ),
    "large integers in a frame": (
        pd.DataFrame({"a": [1.0], "b": [2**60]}),
        "column 'b' of x has integers beyond 2^53",
    ),
    "repeated names": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns of the same name"),
}


@pytest.mark.parametrize(("sample", "message"), BAD_SAMPLES.values(), ids=BAD_SAMPLES.keys())
def test_a_bad_sample_gets_one_clear_line(sample, message):
    with pytest.raises((ValueError, TypeError)) as error:
        ce.two_sample(sample, Y, ce.SpanningTree())
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert ":" in str(error.value)  # what was found: what to do


def test_the_message_names_the_sample_that_is_bad():
    with pytest.raises(ValueError, match="y has NaN at row 1"):
        ce.two_sample(X, [[1, 2], [np.nan, 3]], ce.SpanningTree())


def test_unlike_column_names():
    with pytest.raises(ValueError, match="y has a column 'c' that x lacks"):
        pool(pd.DataFrame({"a": [1], "b": [1]}), pd.DataFrame({"a": [1], "c": [1]}))


DISTANCES = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])


ONE_LARGE = np.full((4, 4), 2.0) * (1 - np.eye(4))
ONE_LARGE[3, :3] = ONE_LARGE[:3, 3] = 2e6
ONE_LARGE[0, 1], ONE_LARGE[1, 0] = 1, 3


def test_precomputed_by_size_or_by_mask():
    for size in (1, np.int64(1), np.array(1), torch.tensor(1)):
        in_x = pool_precomputed(DISTANCES, size).in_x
        np.testing.assert_array_equal(in_x, [True, True, False])
    for mask in (
        [True, False, False],
        torch.tensor([True, False, False]),
        np.eye(3, dtype=bool)[0],
    ):
        np.testing.assert_array_equal(pool_precomputed(DISTANCES, mask).in_x, [False, True, True])


BAD_MATRICES = {
    "not square": (DISTANCES[:2], 1, "x has shape (2, 3)"),
    "asymmetric": (DISTANCES + np.triu(DISTANCES), 1, "x is not symmetric: 2 at (0, 1) but 1"),
    "negative": (-DISTANCES, 1, "x has a negative distance -3 at (1, 2)"),
    "similarities": (np.ones((3, 3)), 1, "x has 1 on its diagonal"),
    "one point": ([[0.0]], 1, "x is the distance matrix of a single pooled point"),
    "NaN": (DISTANCES * np.nan, 1, "x has NaN at row 0, column 0"),
    "all y": (DISTANCES, 3, "y=3 of 3 points leaves a sample empty"),
    "no y": (DISTANCES, 0, "y=0 of 3 points leaves a sample empty"),
    "a sample": (DISTANCES, DISTANCES, "y is an array of float64 and shape (3, 3)"),
    "labels": (DISTANCES, [0, 0, 1], "y is of type list"),
    "a truth": (DISTANCES, True, "y is True"),
    "short mask": (DISTANCES, [True, False], "y has 2 entries, x has 3 rows"),
    "ragged mask": (DISTANCES, [[True], [False, True]], "y is ragged"),
    "one large distance": (ONE_LARGE, 1, "x is not symmetric: 1 at (0, 1) but 3"),
    "unlike labels": (
        pd.DataFrame(DISTANCES, index=list("abc"), columns=list("acb")),
        1,
        "x has its rows and columns in different orders",
    ),
    "one-sided mask": (DISTANCES, [False] * 3, "y is False everywhere"),
}


@pytest.mark.parametrize(("x", "y", "message"), BAD_MATRICES.values(), ids=BAD_MATRICES.keys())
def test_a_bad_matrix_gets_one_clear_line(x, y, message):
    with pytest.raises((ValueError, TypeError)) as error:
        ce.two_sample(x, y, ce.SpanningTree(), distance="precomputed")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_matrix_that_rounding_made_asymmetric_or_negative_will_do(dtype):
    x = torch.rand(60, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    noise = torch.rand(60, 60, generator=torch.Generator().manual_seed(1), dtype=dtype)
    distances = torch.cdist(x, x) * (1 + torch.finfo(dtype).eps * noise)
    assert (distances != distances.T).any()
    ce.two_sample(distances, 10, ce.SpanningTree(), distance="precomputed")
    unit = x / x.norm(dim=1, keepdim=True)
    similarity = 1 - unit @ unit.T
    assert (similarity < 0).any()
    ce.two_sample(similarity, 10, ce.SpanningTree(), distance="precomputed")


def test_equal_points_in_a_matrix_are_merged():
    points = np.random.default_rng(0).integers(0, 2, (1200, 3)) * 1.0
    distances = np.abs(points[:, None] - points).sum(-1)
    for weights in (ce.SpanningTree(), ce.NearestNeighbours(2)):
        by_matrix = ce.two_sample(distances, 400, weights, distance="precomputed", rng=0)
        by_points = ce.two_sample(points[:800], points[800:], weights, distance=1, rng=0)
        assert by_matrix.statistic == pytest.approx(by_points.statistic, rel=1e-12)
        assert by_matrix.pvalue == by_points.pvalue


class Foreign:
    """An array of another library that numpy can read, as those of JAX."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype) if dtype else self.values


class OnGpu:
    """An array that numpy cannot read by itself, as those of CuPy."""

    __module__ = "cupy"

    def __init__(self, values):
        self.values = np.asarray(values)

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def get(self):
        return self.values


@pytest.mark.parametrize("kind", [Foreign, OnGpu])
def test_arrays_of_other_libraries_are_converted(kind):
    x, y = np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2)
    found = pool(kind(x), kind(y))
    np.testing.assert_array_equal(found.values, np.concatenate([x, y]))
    assert not found.as_tensors


class TestTransform:
    def test_the_test_is_that_of_mapped_points(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(30, 3)), rng.normal(size=(20, 3)) + 0.5
        seen = []

        def squares(points):
            seen.append(points.shape)
            return points**2

        found = ce.two_sample(x, y, transform=squares, n_resamples=99, rng=0)
        assert found.statistic == ce.two_sample(x**2, y**2, n_resamples=99, rng=0).statistic
        assert seen == [(50, 3)]
        one_column = ce.two_sample(x, y, transform=lambda z: z.sum(1), n_resamples=99, rng=0)
        assert 0 < one_column.pvalue <= 1

    def test_modules_and_tensors(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(30, 3)), rng.normal(size=(20, 3)) + 0.5
        module = torch.nn.Linear(3, 2)
        with torch.no_grad():
            mapped = [module(torch.as_tensor(one).float()) for one in (x, y)]
        expected = ce.two_sample(*mapped, ce.SpanningTree(), null="normal")
        for given in ((x, y), (torch.as_tensor(x), torch.as_tensor(y))):
            found = ce.two_sample(*given, ce.SpanningTree(), transform=module, null="normal")
            assert found.statistic == expected.statistic
        kinds = []
        tensors = torch.as_tensor(x), torch.as_tensor(y)
        ce.two_sample(*tensors, transform=lambda z: kinds.append(type(z)) or z, n_resamples=9)
        assert kinds == [torch.Tensor]

    @pytest.mark.parametrize("shape", [(60, 4), (30, 90)])
    def test_named_maps(self, shape):
        rng = np.random.default_rng(0)
        points = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape[1]) + 5
        points[:, 1] = 0.1  # constant, but for the rounding of its mean
        mapped = standardized(points)
        varies = np.arange(shape[1]) != 1
        np.testing.assert_allclose(mapped.mean(0), 0, atol=1e-10)
        np.testing.assert_allclose(mapped.std(0), varies, atol=1e-10)
        np.testing.assert_allclose(squares(points), standardized(mapped**2))
        assert (np.argsort(ranks(points)[:, 0]) == np.argsort(points[:, 0])).all()
        np.testing.assert_allclose(ranks(np.exp(points / 1e4)), ranks(points))
        white = whitened(points)
        covariance = mapped.T @ mapped / len(mapped) + RIDGE * np.eye(shape[1])
        expected = mapped @ np.linalg.inv(covariance) @ mapped.T  # whatever the axes are
        np.testing.assert_allclose(white @ white.T, expected, atol=1e-9)
        x, y = points[:20], points[20:]
        for name, function in REPRESENTATIONS.items():
            named, given = (
                ce.two_sample(x, y, ce.EnergyKernel(), transform=one, n_resamples=99, rng=0)
                for one in (name, function)
            )
            assert named.statistic == pytest.approx(given.statistic, rel=1e-9)

    @pytest.mark.parametrize(
        ("transform", "message"),
        [
            ("whitened", "transform='whitened' is unknown: choose from 'standardize', 'whiten', "),
            (3, "transform=3 is not callable"),
            (type("Map", (), {"__call__": len}), "transform is the class Map: give an instance"),
            (lambda z: z[:3], r"transform returned shape \(3, 2\) for 10 points"),
            (lambda z: z + np.inf, "transform returned NaN or infinite"),
            (lambda z: "points", "transform returned str"),
        ],
    )
    def test_bad_ones_get_one_line(self, transform, message):
        points = np.arange(10.0).reshape(5, 2)
        with np.errstate(all="ignore"), pytest.raises((ValueError, TypeError), match=message):
            ce.two_sample(points, points, transform=transform)

    def test_precomputed_distances_have_no_points(self):
        with pytest.raises(ValueError, match="transform does not go with distance='precomputed'"):
            ce.two_sample(np.ones((4, 4)), 2, distance="precomputed", transform=lambda z: z)
