"""Columns of any kind as points: what becomes of each, and that the test keeps its level."""

import datetime
import decimal
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, kstest

import crossedge as ce
from crossedge.data.cautions import look_out
from crossedge.data.columns import share_compared, show_columns
from crossedge.data.encoding import identifiers
from crossedge.data.samples import pool

RNG = np.random.default_rng(0)


def mixed(rng, n, shift=0.0):
    """A table with columns of every kind, many of which have missing values."""
    frame = pd.DataFrame(
        {
            "age": rng.normal(40 + 12 * shift, 12, n).round(),
            "income": rng.lognormal(10, 1, n),
            "city": rng.choice(["Bern", "Zug", "Basel", None], n, p=[0.4, 0.3, 0.2, 0.1]),
            "member": rng.random(n) < 0.3,
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
            "children": rng.choice(["0", "1", "2", "3+"], n),
        }
    )
    frame.loc[rng.random(n) < 0.15, "age"] = np.nan
    return frame


def pooled(x, y, scale=None):
    """The points of two columns, or of two tables."""
    x, y = (side if isinstance(side, dict) else {"a": side} for side in (x, y))
    return pool(pd.DataFrame(x), pd.DataFrame(y), scale)


class TestNumbers:
    values = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 35.0])

    def test_scales(self):
        v = self.values
        low, middle, high = np.quantile(v, [0.25, 0.5, 0.75])
        expected = {
            "none": v,
            "std": (v - v.mean()) / v.std(),
            "robust": (v - middle) / (high - low) * 1.3489795003921634,
            "rank": (pd.Series(v).rank() - 5.5) / 10 * 12**0.5,
        }
        for scale, points in expected.items():
            found = pooled(v[:4], v[4:], scale)
            np.testing.assert_allclose(found.values[:, 0], points, rtol=1e-12)
            assert found.made[0].kind == "number"
        np.testing.assert_array_equal(
            pooled(v[:4], v[4:]).values, pooled(v[:4], v[4:], "robust").values
        )

    def test_arrays_are_left_alone_unless_a_scale_is_asked_for(self):
        v = self.values[:, None]
        np.testing.assert_array_equal(pool(v[:4], v[4:]).values, v)
        scaled = pool(v[:4], v[4:], "robust")
        np.testing.assert_array_equal(scaled.values, pooled(v[:4, 0], v[4:, 0]).values)

    def test_an_empty_interquartile_range_is_replaced(self):
        v = np.array([0.0] * 30 + [1.0, 2.0])
        found = pooled(v[:9], v[9:])
        np.testing.assert_allclose(found.values.std(), 1)
        assert "standard deviation" in found.made[0].treatment

    @pytest.mark.parametrize("scale", ["none", "std", "robust", "rank"])
    @pytest.mark.parametrize("unit", [1e-300, 1e300])
    def test_any_magnitude(self, scale, unit):
        found = pooled(self.values[:4] * unit, self.values[4:] * unit, scale).values
        one = pooled(self.values[:4], self.values[4:], scale).values
        np.testing.assert_allclose(found, one * (unit if scale == "none" else 1), rtol=1e-12)

    def test_missing_values_are_marked_and_filled(self):
        gaps = np.array([1.0, np.nan, 3.0, 2.0, np.nan])
        found = pooled(gaps[:2], gaps[2:])
        assert found.columns == ("a", "a missing")
        assert found.made[0].missing == 2
        filled = pooled([1.0], [3.0, 2.0]).values[:, 0]
        np.testing.assert_allclose(found.values[[0, 2, 3], 0], filled)
        np.testing.assert_array_equal(found.values[[1, 4], 0], 0)
        np.testing.assert_allclose(found.values[:, 1], np.array([0, 1, 0, 0, 1]) * 2**0.5)
        raw = pooled(gaps[:2], gaps[2:], "none").values
        np.testing.assert_allclose(raw[:, 0], [1, 2, 3, 2, 2])
        np.testing.assert_allclose(raw[1, 1], 2**0.5 * np.std([1, 3, 2]))

    def test_whether_a_constant_is_missing_counts(self):
        found = pooled([7.0, np.nan], [7.0, 7.0])
        assert found.columns == ("a missing",)

    def test_numbers_of_other_types(self):
        plain = pooled([1.5, 2.0], [4.0]).values
        for other in (
            [decimal.Decimal("1.5"), 2, 4],
            pd.array([1.5, 2, 4], "Float64"),
            pd.Series([1.5, 2, 4], dtype="float32"),
            ["1.5", 2.0, 4.0],  # text and numbers, all of which are numbers
        ):
            np.testing.assert_allclose(pooled(other[:2], other[2:]).values, plain)

    def test_unknown_scales(self):
        with pytest.raises(ValueError, match="scale='mean' is unknown: give one of 'none', 'std'"):
            ce.two_sample([1.0], [2.0], scale="mean")
        with pytest.raises(ValueError, match="scale does not go with distance='precomputed'"):
            ce.two_sample(np.zeros((3, 3)), 1, distance="precomputed", scale="std")


class TestCategories:
    def test_different_categories_are_as_far_apart_as_two_numbers(self):
        found = pooled(["a", "b", " a "], ["c", "a"]).values
        distances = np.linalg.norm(found[:, None] - found, axis=2)
        np.testing.assert_allclose(distances[0], np.array([0, 1, 0, 1, 0]) * 2**0.5)
        numbers = np.random.default_rng(0).normal(size=(2, 20_000))
        points = pooled(*numbers).values[:, 0]
        typical = np.sqrt(((points[:20_000] - points[20_000:]) ** 2).mean())
        np.testing.assert_allclose(typical, 2**0.5, rtol=0.02)

    def test_booleans_and_missing_values(self):
        np.testing.assert_allclose(
            pooled([True, False], [True]).values[:, 0], np.array([1, 0, 1]) * 2**0.5
        )
        found = pooled([True, None], [False, True])
        assert found.columns == ("a=False", "a=True", "a missing")
        assert found.made[0].kind == "boolean"
        np.testing.assert_array_equal(found.values, [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])
        assert pooled([True, None], [True]).columns == ("a=True", "a missing")

    def test_booleans_beside_numbers_are_numbers(self):
        np.testing.assert_array_equal(
            pooled([True, False], [3.0], "none").values[:, 0], [1.0, 0.0, 3.0]
        )

    def test_a_category_of_one_sample_is_a_difference(self):
        x, y = pd.DataFrame({"a": ["u"] * 40}), pd.DataFrame({"a": ["v"] * 40})
        assert ce.two_sample(x, y, rng=0).pvalue < 0.001

    def test_numbers_that_are_called_categories(self):
        x, y = (pd.Series(values, dtype="category") for values in ([1, 2, None], [2, 3.5]))
        found = pooled(x, y)
        assert found.columns == ("a=1", "a=2", "a=3.5", "a missing")
        assert found.made[0].kind == "category"

    def test_numbers_and_text_agree_on_spelling(self):
        found = pooled([1, 2, 3], ["1", "02", "many"])
        assert found.columns == ("a=1", "a=2", "a=3", "a=many")

    def test_too_many_texts_are_refused(self):
        texts = [f"name {place % 90}" for place in range(200)]
        with pytest.raises(ValueError, match=r"'a' is text with 90 distinct values.*drop it, or"):
            pooled(texts[:100], texts[100:])
        many = texts * 10  # 90 of 2,000 rows
        assert len(pooled(many[:900], many[900:]).columns) == 90

    def test_numbers_with_a_slip_are_refused(self):
        texts = [*map(str, range(100, 140)), "1O5"]
        with pytest.raises(ValueError, match="'a' holds numbers but also '1O5': mend such cells"):
            pooled(texts[:20], texts[20:])


class TestDates:
    def test_dates_of_all_kinds_are_days(self):
        days = [datetime.date(2024, 2, 28), datetime.date(2024, 3, 1), datetime.date(2025, 1, 1)]
        texts = [day.isoformat() for day in days]
        for x in (
            pd.to_datetime(pd.Series(texts)),
            pd.to_datetime(pd.Series(texts)).dt.tz_localize("UTC"),
            pd.Series(days),
            pd.Series(texts),
            pd.Series([f"{text}T00:00:00Z" for text in texts]),
            pd.Series([f"{day.day}.{day.month}.{day.year}" for day in days]),
            pd.Series([datetime.timedelta(days=(day - days[0]).days) for day in days]),
        ):
            found = pooled(x[:2], x[2:], "none")
            assert found.made[0].kind == "date"
            np.testing.assert_allclose(np.diff(found.values[:, 0]), [2, 306])

    def test_dates_and_other_things_do_not_mix(self):
        with pytest.raises(TypeError, match="holds dates in one sample and number in the other"):
            pooled(pd.to_datetime(pd.Series(["2024-01-01"])), [1.0])
        with pytest.raises(TypeError, match="holds dates in one sample and text in the other"):
            pooled(pd.to_datetime(pd.Series(["2024-01-01"])), ["soon"])
        mixed = pooled(pd.to_datetime(pd.Series(["2024-01-01"])), ["2024-01-03"], "none")
        np.testing.assert_allclose(np.diff(mixed.values[:, 0]), [2])

    def test_slashes_are_not_guessed(self):
        assert pooled(["1/2/2024"], ["2/1/2024"]).made[0].kind == "category"
        assert pooled(["13/2/2024", "2/13/2024"], ["1/2/2024"]).made[0].kind == "category"

    @pytest.mark.parametrize(
        ("x", "y", "days"),
        [
            ("1/11/2024", "13/11/2024", 12),  # one day above 12 is enough, in either sample
            ("1/11/2024", "11/13/2024", 307),
            ("31-12-2023", "1-2-2024", 32),
            ("31.12.2023", "1.2.2024", 32),
            ("1.2.2024", "2.1.2024", -30),  # the day comes first between points
            ("12.31.2023", "1.2.2024", 2),
            ("2024/1/31", "2024.2.1", 1),
            ("31/12/2023 23:30", "1/1/2024 11:30:36.5 PM", 1 + 36.5 / 86400),
            ("12/31/2023 12:15 am", "12/31/2023 12:15pm", 0.5),
            ("2024-01-01T12:00", "31/12/2023", -1.5),
        ],
    )
    def test_the_order_of_a_date_is_told_by_all(self, x, y, days):
        for sign, (a, b) in ((1, (x, y)), (-1, (y, x))):
            found = pooled([a], [b], "none")
            assert found.made[0].kind == "date"
            np.testing.assert_allclose(np.diff(found.values[:, 0]), [sign * days], atol=1e-9)

    @pytest.mark.parametrize(
        "text",
        [
            *("31.02.2024", "0.1.2024", "31/12/23", "1.2.3", "31/12-2023", "3/31/2024 13:00 pm"),
            *("31/12/2023 25:00", "31/12/2023 1:00:61", "2024/31/12", "31/12/2023x", "32/1/2024"),
        ],
    )
    def test_what_is_no_date(self, text):
        assert pooled([text], ["31/12/2023"]).made[0].kind == "category"


class TestLeftOut:
    @pytest.mark.parametrize(
        ("x", "y", "treatment"),
        [
            ([7] * 20, [7] * 20, "left out: constant, 7"),
            (["u"] * 20, ["u"] * 20, "left out: constant, 'u'"),
            ([True] * 20, [True] * 20, "left out: constant, True"),
            ([None] * 20, [np.nan] * 20, "left out: no values"),
            (range(20), range(20), "left out: row numbers"),
            (range(1, 21), range(1, 21), "left out: row numbers"),
            (range(5, 25), range(25, 45), "left out: row numbers"),
            ([f"n{p}" for p in range(20)], [f"m{p}" for p in range(20)], "left out: a different"),
        ],
    )
    def test_columns_that_say_nothing(self, x, y, treatment):
        points = RNG.normal(size=(2, 20))
        tables = {"a": x, "b": points[0]}, {"a": y, "b": points[1]}
        found = pooled(*tables)
        assert found.columns == ("b",)
        assert found.made[0].treatment.startswith(treatment)
        (line,) = [line for line in found.cautions if "left out" in line]
        assert line.startswith("column 'a' is left out: ")
        with pytest.warns(UserWarning, match="column 'a' is left out"):
            ce.two_sample(*map(pd.DataFrame, tables), rng=0)
        known = identifiers(*map(pd.DataFrame, tables), ["a", "b"])
        assert bool(known) == (treatment[10:13] in ("row", "a d"))

    def test_integers_that_only_look_like_it(self):
        for values in (RNG.integers(0, 20, 40), [*range(40, 76), 50, 70, 80, 81], np.arange(40.0)):
            found = pooled(
                {"a": values[:20], "b": RNG.normal(size=20)},
                {"a": values[20:], "b": RNG.normal(size=20)},
            )
            assert found.columns == ("a", "b")

    @staticmethod
    def kept(values, name="a", more=None):
        """Whether a column stays, beside another one; `more` is that of the second table."""
        x, y = list(values), more
        if more is None:
            x, y = x[: len(x) // 2], x[len(x) // 2 :]
        rng = np.random.default_rng(0)
        tables = ({name: list(own), "b": rng.normal(size=len(own))} for own in (x, y))
        return name in [column.name for column in pooled(*tables).made if column.outputs]

    def test_identifiers(self):
        rng = np.random.default_rng(0)
        for rows in (
            rng.permutation(5000)[:700],  # thinned row numbers
            rng.permutation(10**5)[:3000],
            [*rng.permutation(1000)[:200], *rng.permutation(range(3000, 4000))[:200]],
        ):
            assert not self.kept(rows)
            assert self.kept([float(row) for row in rows])  # floats are measurements
        for rows in (rng.integers(10**6, 10**8, 400), rng.integers(10**9, 2**31, 400)):
            for name in ("customer", "Account No", "orderNumber"):
                assert not self.kept(rows, name)
                assert self.kept([float(row) for row in rows], name)
            assert self.kept(rows, "salary")
        # both tables are samples of the same numbered rows
        assert not self.kept(rng.permutation(900)[:500], more=rng.permutation(900)[:400])

    def test_measurements_that_are_whole_numbers(self):
        rng = np.random.default_rng(0)
        for n in (20, 100, 400, 3000):
            for values in (
                rng.lognormal(11, 0.7, n).astype(int),  # incomes
                rng.normal(3.5e6, 4e5, n).astype(int),
                rng.poisson(300, n),
                rng.integers(0, 86_400, n),  # seconds of the day
                rng.permutation(10**4)[:20],
                np.unique(rng.normal(3.5e9, 4e8, n).astype(int)),
            ):
                assert self.kept(values), (n, values[:3])

    def test_names_of_identifiers(self):
        rng = np.random.default_rng(0)
        incomes = rng.lognormal(11, 0.7, 100).astype(int)
        for name in ("id", "customer_id", "customerID", "Customer Id", "uuid", "key 1"):
            assert not self.kept(incomes, name), name
        for name in ("paid", "humidity", "width", "monkeys"):
            assert self.kept(incomes, name), name
        assert self.kept(rng.integers(0, 9, 100), "cluster_id")  # which repeats
        assert self.kept(incomes[:20], "id")
        for times, kept in ((5, False), (7, True)):  # 96 and 94 of 100 are distinct
            assert self.kept([*incomes[: 101 - times], *[incomes[0]] * (times - 1)], "id") == kept

    def test_texts_of_one_form(self):
        rng = np.random.default_rng(0)
        codes = [rng.bytes(6).hex() for _ in range(60)]
        for texts in (
            [*codes, *codes[:20]],
            [f"{code[:4]}-{code[4:]}" for code in codes] + [f"{codes[0][:4]}-{codes[0][4:]}"],
            [f"user_{place}" for place in range(90)] + ["user_7"],
        ):
            assert not self.kept(texts)
        words = [f"{rng.integers(99)} or {code}" for code in codes] + ["nothing", "nothing"]
        for texts in (words, [f"1/2/{place}" for place in range(60)] + ["1/2/0"]):
            with pytest.raises(ValueError, match="drop it"):
                self.kept(texts)
        with pytest.raises(ValueError, match="drop it"):  # each occurs five times
            self.kept(codes * 5)

    def test_each_sign_counts_alone(self):
        """The limits, one by one: repeats that chance would make, rows, digits, evenness."""
        rng = np.random.default_rng(3)
        n = 60
        for factor, kept in ((1.6, True), (1.2, False)):  # 6.3 and 8.3 expected repeats
            span = int(n * (n - 1) / 20 * factor)
            inner = rng.permutation(np.arange(1, span - 1))[: n - 2]
            assert self.kept(rng.permutation([0, span - 1, *inner])) == kept
        even = np.linspace(10**6, 9 * 10**6, 300).astype(int)
        assert not self.kept(rng.permutation(even), "number")
        assert self.kept(rng.permutation(even[:-1]), "number")
        assert self.kept(rng.permutation(even // 10), "number")
        assert self.kept(rng.permutation([*even[:-1], even[0]]), "number")

    def test_money_in_whole_numbers_is_compared(self):
        rng = np.random.default_rng(0)
        x, y = (
            pd.DataFrame({"salary": rng.integers(low, low + 10**6, 200), "v": rng.integers(9, 200)})
            for low in (10**6, 2 * 10**6)
        )
        assert ce.two_sample(x, y, rng=0).pvalue < 0.001

    def test_the_verdict_counts_columns_that_were_left_out(self):
        rng = np.random.default_rng(0)
        table = {"a": rng.normal(size=30), "b": ["same"] * 30}  # constant: it tells nothing
        found = pooled(table, table)
        assert share_compared(found.made) == ""
        with pytest.warns(UserWarning, match="left out"):
            result = ce.two_sample(
                pd.DataFrame(table | {"id": range(30)}),
                pd.DataFrame({"a": rng.normal(size=30), "b": "same", "id": range(30, 60)}),
                rng=0,
            )
        assert result.verdict.endswith("no proof that they are equal; 1 of 2 columns compared")
        assert replace(result, pvalue=0.001).verdict.endswith("; 1 of 2 columns compared")

    def test_leaving_out_depends_on_the_pooled_sample_only(self):
        rng = np.random.default_rng(0)
        values = rng.permutation(rng.permutation(3000)[:400])
        assert not self.kept(values)
        assert not self.kept(values[::-1])
        assert not self.kept(np.sort(values))

    def test_a_single_column_stays(self):
        assert pooled(range(20), range(20)).columns == ("a",)

    def test_nothing_is_left(self):
        with pytest.raises(ValueError, match=r"no column is left to compare .'a' is left out: con"):
            pooled([1, 1], [1])


class TestCautions:
    def look(self, x, y, **options):
        points = np.concatenate([x, y])
        in_x = np.arange(len(points)) < len(x)
        return look_out(points, in_x, [f"c{place}" for place in range(x.shape[1])], **options)

    def test_nothing_to_say(self):
        rng = np.random.default_rng(0)
        assert self.look(*rng.normal(size=(2, 500, 3)), unscaled=True) == ()
        assert self.look(*rng.integers(0, 4, (2, 500, 3)).astype(float)) == ()

    def test_rows_in_both_samples(self):
        x, y = np.random.default_rng(0).normal(size=(2, 50, 3))
        y[:7] = x[10:17]
        (line,) = self.look(x, y)
        assert line.startswith("7 of 50 rows of the first sample stand in the second, too")

    def test_tiny_samples(self):
        (line,) = self.look(*np.random.default_rng(0).normal(size=(2, 19, 3)))
        assert line.startswith("the samples have 19 and 19 rows")

    @pytest.mark.parametrize("sample", [0, 1])
    def test_sorted_or_clustered_rows(self, sample):
        both = np.random.default_rng(0).normal(size=(2, 60, 3))
        both[sample][:, 1] = np.sort(both[sample][:, 1])
        (line,) = self.look(*both)
        which = ["first", "second"][sample]
        assert line.startswith(f"the rows of the {which} sample are sorted or clustered by 'c1'")
        both[sample][:, 1] = np.repeat(np.random.default_rng(1).permutation(12), 5)
        assert "clustered by 'c1'" in self.look(*both)[0]

    def test_who_is_told_to_say_which_rows_belong_together(self, recwarn):
        rng = np.random.default_rng(0)
        x, y = (pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]) for _ in range(2))
        x["a"] = np.sort(x["a"])

        def said(verb, **given):
            recwarn.clear()
            verb(x, y, rng=0, **given)
            (line,) = {str(each.message) for each in recwarn if "clustered" in str(each.message)}
            return line.partition("too small")[2]

        advice = said(ce.two_sample, n_resamples=99)
        assert advice.startswith(": say which belong together by --pairs")
        assert said(ce.two_sample, n_resamples=99, blocks="pairs").startswith(", unless they are")
        assert said(ce.plan, n_subsamples=20) == ""  # which has no such options

    def test_a_column_that_drowns_the_others(self):
        x, y = np.random.default_rng(0).normal(size=(2, 50, 3)) * [1, 1, 1e200]
        assert self.look(x, y) == ()
        (line,) = self.look(x, y, unscaled=True)
        assert line.startswith("column 'c2' makes 100% of the squared distance")

    def test_a_column_with_far_values_drowns_the_energy_test(self, recwarn):
        rng = np.random.default_rng(0)

        def table(n, sigma=2.0, member=0.5):
            cells = {"income": rng.lognormal(10, sigma, n), "member": rng.random(n) < member}
            return pd.DataFrame(cells)

        x, y = table(100), table(100)
        with pytest.warns(UserWarning, match=r"'income' makes 9.*far values .*--scale rank"):
            ce.two_sample(x, y, ce.EnergyKernel(), rng=0, n_resamples=99)
        # ranks, nearest neighbours, usual tails and rare categories call for no warning
        for tables, weights, scale in (
            ((x, y), ce.EnergyKernel(), "rank"),
            ((x, y), ce.NearestNeighbours(3), None),
            ((x, y), None, None),
            ((table(100, 0.7), table(100, 0.7)), ce.EnergyKernel(), None),
            ((table(100, 0.3, 0.02), table(100, 0.3, 0.02)), ce.EnergyKernel(), None),
        ):
            ce.two_sample(*tables, weights, rng=0, n_resamples=99, scale=scale)
        assert not recwarn

    def test_frames_are_looked_at_and_arrays_are_not(self, recwarn):
        x, y = np.random.default_rng(0).normal(size=(2, 10, 2))
        ce.two_sample(x, y, rng=0)
        assert not recwarn
        with pytest.warns(UserWarning, match="only large differences") as found:
            ce.two_sample(pd.DataFrame(x), pd.DataFrame(y), rng=0)
        assert found[0].filename == __file__


def test_polars_and_pandas_agree():
    x, y = mixed(RNG, 40), mixed(RNG, 30)
    ours, theirs = pool(x, y), pool(pl.from_pandas(x), pl.from_pandas(y))
    np.testing.assert_allclose(ours.values, theirs.values)
    assert ours.columns == theirs.columns
    assert [column.kind for column in ours.made] == [column.kind for column in theirs.made]
    lists = {"list": [[1]] * 2, "struct": [{"a": 1}] * 2}
    for values in lists.values():
        with pytest.raises(TypeError, match="holds lists or dictionaries"):
            pool(pl.DataFrame({"a": values}), pl.DataFrame({"a": values}))


def test_points_do_not_depend_on_who_is_in_which_sample():
    table = mixed(RNG, 60)
    whole = pool(table[:25], table[25:]).values
    order = RNG.permutation(60)
    shuffled = table.iloc[order]
    np.testing.assert_allclose(pool(shuffled[:35], shuffled[35:]).values, whole[order])


def test_the_result_says_what_was_done():
    x, y = mixed(RNG, 40), mixed(RNG, 30)
    x["id"], y["id"] = range(40), range(30)
    with pytest.warns(UserWarning, match="row numbers"):
        found = ce.two_sample(x, y, rng=0)
    assert [column.name for column in found.columns] == list(x.columns)
    assert "2 numbers, 2 categories, 1 boolean, 1 date, as points in" in str(found)
    assert str(found).endswith("without id")
    assert show_columns(found.columns).count("\n") == 6
    facts = found.to_dict()
    assert facts["pvalue"] == found.pvalue
    assert facts["columns"][-1]["treatment"] == "left out: row numbers"
    assert "null_distribution" not in facts
    assert len(found.to_dict(null_distribution=True)["null_distribution"]) == 9999


@pytest.mark.parametrize("weights", [None, ce.SpanningTree(), ce.GaussianKernel()])
def test_facts_are_plain(weights):
    import json

    found = ce.two_sample(*RNG.normal(size=(2, 12, 2)), weights, rng=0, n_resamples=99)
    assert json.loads(found.to_json()) == found.to_dict()
    assert json.loads(found.to_json(True, 1))["null_distribution"] == list(found.null_distribution)


def test_other_verbs_take_frames_alike():
    x, y = (pd.DataFrame({"a": RNG.normal(size=30), "c": "same"}) for _ in range(2))
    with pytest.warns(UserWarning, match="column 'c' is left out: constant"):
        found = ce.divergence(x, y, ce.SpanningTree())
    assert found == ce.divergence(x[["a"]].to_numpy(), y[["a"]].to_numpy(), ce.SpanningTree())
    with pytest.warns(UserWarning, match="column 'c' is left out: constant"):
        assert ce.learn_map(x, y, steps=1, n_resamples=99, rng=0).columns == ("a",)


def test_missingness_itself_is_found():
    rng = np.random.default_rng(0)
    x, y = ({"a": rng.normal(size=100), "b": rng.normal(size=100)} for _ in range(2))
    y["a"][rng.random(100) < 0.4] = np.nan
    assert ce.two_sample(pd.DataFrame(x), pd.DataFrame(y), rng=0).pvalue < 0.001


def test_a_column_in_millions_does_not_drown_the_others():
    rng = np.random.default_rng(0)
    x, y = (
        pd.DataFrame({"age": rng.normal(40 + 8 * s, 10, 150), "income": rng.lognormal(13, 1, 150)})
        for s in (0, 1)
    )
    assert ce.two_sample(x, y, ce.EnergyKernel(), rng=0).pvalue < 0.001
    with pytest.warns(UserWarning, match="'income' makes 100% of the squared distance"):
        assert ce.two_sample(x, y, ce.EnergyKernel(), rng=0, scale="none").pvalue > 0.05


def test_the_level_holds_on_mixed_tables():
    """Rejections at 5% and 20% are binomial, and p-values are nowhere too small."""
    rng = np.random.default_rng(5)
    test = {"weights": ce.NearestNeighbours(3), "statistic": "weighted", "n_resamples": 199}
    pvalues = [
        ce.two_sample(mixed(rng, 25), mixed(rng, 30), **test, rng=rng).pvalue for _ in range(300)
    ]
    for level in (0.05, 0.2):
        assert (np.array(pvalues) <= level).sum() <= binom.isf(1e-3, 300, level)
    assert kstest(pvalues, "uniform", alternative="greater").pvalue > 1e-3
    different = [
        ce.two_sample(mixed(rng, 60), mixed(rng, 60, 2.0), **test, rng=rng).pvalue
        for _ in range(10)
    ]
    assert np.median(different) < 0.05


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_infinity=False),
    st.text(max_size=5),
    st.dates(),
)


@given(st.lists(CELLS, min_size=1, max_size=30), st.lists(CELLS, min_size=1, max_size=30))
def test_any_cells_make_finite_points_or_one_clear_line(x, y):
    try:
        found = pooled({"a": x, "b": np.arange(len(x)) % 2.0}, {"a": y, "b": np.full(len(y), 1.0)})
    except (ValueError, TypeError) as error:
        assert ": " in str(error) and "\n" not in str(error)  # noqa: PT017, PT018
    else:
        assert np.isfinite(found.values).all()
        assert len(found.columns) == found.values.shape[1]


class TestDatesInText:
    @staticmethod
    def dates(form, n=60, seed=0):
        rng = np.random.default_rng(seed)
        start = datetime.date(2024, 1, 1)
        return [
            (start + datetime.timedelta(int(d))).strftime(form) for d in rng.integers(360, size=n)
        ]

    def test_the_centre_is_a_date(self):
        x = self.dates("%Y-%m-%d")
        found = pooled(x, x).made[0]
        middle = np.median([datetime.date.fromisoformat(text).toordinal() for text in x])
        expected = datetime.date.fromordinal(int(middle)).isoformat()
        assert found.treatment.startswith(f"in days, centred at {expected}")
        spans = pd.to_timedelta(range(40), "h")
        assert (
            pooled(spans[:20], spans[20:]).made[0].treatment.startswith("in days, centred at 0.8")
        )

    def test_times_of_the_day(self):
        x, y = (
            ["0:02:54", "8:36:31", "12:35:02"] * 8,
            [datetime.time(19, 3), datetime.time(1, 2, 3)],
        )
        found = pooled(x, y, "none")
        assert found.made[0].kind == "date"
        seconds = found.values[[0, 1, 2, 24, 25], 0] * 86_400
        np.testing.assert_allclose(seconds, [174, 30_991, 45_302, 68_580, 3723])
        for odd in ("24:00", "8:60", "8:36:61", "8.36", "8:3"):
            assert pooled([*x, odd], x).made[0].kind == "category"

    def test_two_orders_of_day_and_month(self):
        day, month = self.dates("%d/%m/%Y"), self.dates("%m/%d/%Y", seed=1)
        with pytest.raises(ValueError, match="the day first in x and with the month first in y"):
            pooled(day, month)
        with pytest.raises(ValueError, match="the month first in x and with the day first in y"):
            pooled(month, day)
        assert pooled(month, month).made[0].kind == "date"


def test_hints_at_names_that_nearly_agree():
    x, y = pd.DataFrame({"Money": [1.0, 2], "v": 1}), pd.DataFrame({"money ": [1.0, 2], "v": 1})
    with pytest.raises(ValueError, match=r"'money ' that x lacks \(it has 'Money': case"):
        pool(x, y)
    with pytest.raises(ValueError, match="'v' that x lacks: both"):
        pool(x[["Money"]], x)


def test_a_series_of_text_belongs_in_a_frame():
    for library in (pd.Series, pl.Series):
        with pytest.raises(TypeError, match="x is text: put it in a DataFrame"):
            ce.two_sample(library(["a", "b"]), library(["b", "a"]))


def test_a_column_of_strata_that_is_none_is_answered_by_those_that_are():
    frame = pd.DataFrame({"site": [1, 2] * 9, "v": range(18)})
    with pytest.raises(ValueError, match=r"'sitee', which a sample lacks: it has site, v$"):
        ce.two_sample(frame, frame, blocks=ce.Strata("sitee"))
