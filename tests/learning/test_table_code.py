"""Tables as points and back: the round trip, and points that are no row of the table."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crossedge as ce
from crossedge.data.table import Table
from crossedge.data.tables import read_table
from crossedge.learning.column_code import ColumnCode, learn_column, learn_labels
from crossedge.learning.table_code import (
    ImageCode,
    TableCode,
    code_from_dict,
    learn_images,
    learn_table,
)


def mixed(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2024-01-31") + pd.to_timedelta(rng.integers(0, 400, rows), "D")
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "income": rng.lognormal(3, 1, rows),
            "price": rng.integers(100, 999, rows) / 100,
            "children": pd.array(rng.integers(0, 4, rows), "Int64"),
            "city": rng.choice(["Aarau", "Basel", "Chur"], rows).astype(object),
            "member": rng.random(rows) < 0.3,
            "since": days,
            "seen": days + pd.to_timedelta(rng.integers(0, 86_400_000_000, rows), "us"),
            "wait": pd.to_timedelta(rng.integers(0, 9000, rows), "s"),
            "country": "CH",
            "small": rng.normal(size=rows).astype(np.float32),
        }
    )
    frame.loc[3:7, "income"] = np.nan
    frame.loc[5:9, "children"] = pd.NA
    frame.loc[0, "city"] = None
    frame.loc[2, "seen"] = pd.NaT
    return frame


def as_table(frame):
    return Table("a frame", frame, tuple(map(str, frame.columns)), True)


def same_cells(one, other):
    one, other = (frame.copy() for frame in (one, other))
    for frame in (one, other):
        for name in frame:
            if frame[name].dtype.kind in "Mm":
                frame[name] = frame[name].astype(f"{frame[name].dtype.kind}8[us]")
    pd.testing.assert_frame_equal(one, other, check_exact=False, rtol=1e-12)


class TestRoundTrip:
    def test_a_table_comes_back_with_its_types(self):
        frame = mixed()
        code = learn_table(as_table(frame))
        points = code.encode(frame)
        assert points.shape == (60, code.width)
        same_cells(code.decode(points), frame)

    def test_also_from_single_precision_and_through_json(self):
        frame = mixed()
        code = learn_table(as_table(frame))
        assert code_from_dict(json.loads(json.dumps(code.to_dict()))) == code
        points = code.encode(frame).astype(np.float32).astype(np.float64)
        found = code.decode(points)
        for name in ("age", "price", "children", "city", "member", "since", "country"):
            same_cells(found[[name]], frame[[name]])
        assert (found["income"].isna() == frame["income"].isna()).all()

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_files(self, tmp_path, ending):
        frame = mixed().drop(columns="wait")
        path = tmp_path / f"data.{ending}"
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
        table = read_table(path)
        code = learn_table(table)
        found = code.decode(code.encode(table))
        assert list(found) == list(frame)
        names = ["price", "member", "since"]
        same_cells(found[names], frame[names])
        assert found["age"].tolist() == frame["age"].tolist()
        assert str(found["age"].dtype) == str(table["age"].dtype) == "Int64"
        assert found["city"].isna().sum() == 1

    @given(
        st.lists(st.one_of(st.none(), st.floats(-1e12, 1e12, allow_subnormal=False)), min_size=1)
    )
    @settings(max_examples=100, deadline=None)
    def test_any_numbers(self, cells):
        column = np.array([np.nan if cell is None else cell for cell in cells])
        code = learn_column(column, "a")
        found = code.decode(code.encode(column))
        size = np.nanmax(np.abs(column)) if not np.isnan(column).all() else 0
        np.testing.assert_allclose(found, column, rtol=1e-9, atol=1e-12 * size)

    @given(st.lists(st.one_of(st.none(), st.sampled_from("abc"), st.booleans()), min_size=1))
    @settings(max_examples=100, deadline=None)
    def test_any_texts(self, cells):
        cells = [None if cell is None else str(cell) for cell in cells]
        code = learn_column(pd.Series(cells, dtype=object), "a")
        found = code.decode(code.encode(pd.Series(cells, dtype=object)))
        assert [None if pd.isna(cell) else cell for cell in found] == cells

    def test_arrays_keep_their_shape_type_and_geometry(self):
        points = np.random.default_rng(0).normal(size=(50, 3)) * [1, 10, 100] + 5
        table = Table("points", points.astype(np.float32), ("1", "2", "3"), False)
        code = learn_table(table)
        inside = code.encode(table)
        found = code.decode(inside)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, table.values, rtol=1e-6)
        ratio = np.linalg.norm(inside[0] - inside[1]) / np.linalg.norm(points[0] - points[1])
        other = np.linalg.norm(inside[2] - inside[3]) / np.linalg.norm(points[2] - points[3])
        assert ratio == pytest.approx(other, rel=1e-4)  # one scale for all

    def test_the_two_table_test_sees_no_difference(self):
        frame = mixed(200)
        code = learn_table(as_table(frame))
        names = ["age", "city", "member", "since", "children"]
        found = code.decode(code.encode(frame))[names]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all rows stand in both
            result = ce.two_sample(frame[names], found, n_resamples=99, rng=0, scale="robust")
        assert result.pvalue > 0.9


class TestOtherPoints:
    def test_numbers_are_brought_into_their_range_and_rounded(self):
        code = learn_column(np.array([1, 4, 2, 9]), "a")
        assert code.decode(np.array([[-99.0], [99.0], [0.1]])).tolist() == [1, 9, 3]
        priced = learn_column(np.array([1.25, 4.5, 2.0]), "a")
        assert priced.decimals == 2
        assert priced.decode(np.array([[0.12345]]))[0] == pytest.approx(
            round(0.12345 * priced.spread + priced.centre, 2), abs=1e-12
        )

    def test_the_largest_category_and_the_nearer_mark_win(self):
        city = learn_column(pd.Series(["a", "b", None], dtype=object), "city")
        found = city.decode(np.array([[0.2, 0.4, 0.3], [0.2, 0.1, 0.3], [1.0, 0, 0]]))
        assert found.tolist() == ["b", None, "a"]
        age = learn_column(np.array([1.5, np.nan, 2.5]), "age")
        found = age.decode(np.array([[0.0, 0.6], [0.0, 0.8]]))
        assert np.isnan(found).tolist() == [False, True]

    def test_values_that_are_new_are_refused(self):
        city = learn_column(pd.Series(["a", "b"], dtype=object), "city")
        with pytest.raises(ValueError, match="'city' has the value 'c', which is new"):
            city.encode(pd.Series(["a", "c"], dtype=object))

    def test_texts_without_repetition_are_refused(self):
        with pytest.raises(ValueError, match="--drop who"):
            learn_column(pd.Series([f"name {i}" for i in range(50)], dtype=object), "who")


class TestLabels:
    def test_numbers_are_labels_in_order_and_come_back_as_numbers(self):
        column = np.array([10, 2, 2, 10, 3])
        code = learn_labels(column, "digit", 10)
        assert code.levels == ("2", "3", "10")
        assert code.places(column).tolist() == [2, 0, 0, 2, 1]
        found = code.of_places(code.places(column))
        assert found.tolist() == column.tolist()
        assert found.dtype == column.dtype

    def test_too_many_or_missing_labels_are_refused(self):
        with pytest.raises(ValueError, match="has 5 labels: condition on one with 2 to 4"):
            learn_labels(np.arange(5), "a", 4)
        with pytest.raises(ValueError, match="missing labels"):
            learn_labels(np.array([1.0, np.nan]), "a", 4)


class TestImages:
    def test_bytes(self):
        values = np.random.default_rng(0).integers(0, 256, (5, 12)).astype(np.uint8)
        code = learn_images(Table("images", values, tuple("abcdefghijkl"), False), (2, 2, 3))
        points = code.encode(Table("images", values, tuple("abcdefghijkl"), False))
        assert points.min() >= 0
        assert points.max() <= 1
        found = code.decode(points.astype(np.float32))
        assert found.dtype == np.uint8
        assert (found == values).all()
        assert code_from_dict(json.loads(json.dumps(code.to_dict()))) == code

    def test_other_values_by_their_range(self):
        values = np.array([[-3.0, 1.0], [5.0, 2.0]])
        table = Table("images", values, ("1", "2"), False)
        code = learn_images(table, (1, 2, 1))
        assert code.encode(table).tolist() == [[0, 0.5], [1, 0.625]]
        np.testing.assert_allclose(code.decode(code.encode(table)), values)
        unit = learn_images(Table("images", values / 8 + 0.375, ("1", "2"), False), (1, 2, 1))
        assert (unit.low, unit.high) == (0, 1)
        assert isinstance(unit, ImageCode)

    def test_other_sizes_are_refused(self):
        table = Table("images", np.zeros((2, 5)), tuple("abcde"), False)
        with pytest.raises(ValueError, match="5 columns, which are no 2 x 2 x 1 images"):
            learn_images(table, (2, 2, 1))


def test_a_table_without_variation_is_refused():
    with pytest.raises(ValueError, match="nothing to learn"):
        learn_table(as_table(pd.DataFrame({"a": [1, 1], "b": ["x", "x"]})))
    assert TableCode((ColumnCode("a", "constant", "int64", low=1),)).width == 0
