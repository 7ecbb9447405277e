"""Text that spells numbers: frames are read like files, with units and signs of currency."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from crossedge.data.amounts import check_numbers
from crossedge.data.samples import pool
from crossedge.data.selection import read_pair
from crossedge.data.units import amount_of, is_known
from crossedge.monitoring import Monitor

RNG = np.random.default_rng(0)
MONEY = RNG.lognormal(7, 1, 60).round(2)
OTHER = RNG.lognormal(8, 1, 60).round(2)


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def frames(x, y, library=pd.DataFrame):
    x, y = list(x), list(y)
    plain = RNG.integers(5, size=len(x)), RNG.integers(5, size=len(y))
    return tuple(library({"a": a, "b": b}) for a, b in zip((x, y), plain, strict=True))


def column(x, y, library=pd.DataFrame):
    """The first column of two frames, pooled."""
    found = pool(*frames(x, y, library), "none")
    return found.made[0], found.raws[0]


SPELLINGS = {
    "points": lambda v: f"{v:.4f}",
    "german": german,
    "groups": lambda v: f"{v:,.2f}",
    "apostrophes": lambda v: f"{v:,.2f}".replace(",", "'"),
    "dollars": lambda v: f"${v:,.2f}",
    "minus dollars": lambda v: f"-${v:,.2f}",
    "euros": lambda v: f"€ {german(v)}",
    "behind": lambda v: f"{v:.2f} EUR",
    "unit": lambda v: f"{v:.2f}kg",
    "percent": lambda v: f"{v:.2f}%",
    "an unknown unit": lambda v: f"{v:.2f} parsec",
}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", SPELLINGS)
def test_text_of_frames_is_read_as_numbers(name, library):
    spell = SPELLINGS[name]
    made, raw = column(map(spell, MONEY), map(spell, OTHER), library)
    sign = -1 if name.startswith("minus") else 1
    assert made.kind == "number", made
    np.testing.assert_allclose(raw.values, sign * np.concatenate([MONEY, OTHER]))


def test_units_are_told():
    for text, unit in (("{}kg", "kg"), ("$ {}", "$"), ("{} %", "%"), ("CHF {}", "CHF")):
        made, _ = column([text.format(v) for v in MONEY], [text.format(v) for v in OTHER])
        assert made.treatment.startswith(f"in {unit}, ")


def test_frames_are_read_like_the_files_that_they_come_from(tmp_path):
    x, y = (pd.DataFrame({"money": map(german, v), "plan": "free"}) for v in (MONEY, OTHER))
    for name, table in zip("xy", (x, y), strict=True):
        table.to_csv(tmp_path / f"{name}.csv", sep=";", index=False)
    files = pool(*read_pair(tmp_path / "x.csv", tmp_path / "y.csv"))
    found = pool(*(pd.read_csv(tmp_path / f"{name}.csv", sep=";") for name in "xy"))
    assert found.made == files.made
    np.testing.assert_array_equal(found.values, files.values)


def test_parquet_with_text_is_read_as_numbers_and_categories_stay(tmp_path):
    for kind, expected in (("object", "number"), ("category", "category")):
        for name in "xy":
            frame = pd.DataFrame({"a": ["1,5", "2,5", "3,5"] * 9, "b": range(27)})
            frame.astype({"a": kind}).to_parquet(tmp_path / name)
        assert pool(*read_pair(tmp_path / "x", tmp_path / "y")).made[0].kind == expected


def test_who_tells_the_decimal_sign():
    open_ones = ["1.103", "2.450", "9.999"] * 10

    def value(x, y):
        return pool(pd.DataFrame(x), pd.DataFrame(y), "none").raws[0].values[0]

    same = {"a": open_ones}
    assert value(same, same) == 1.103  # nobody: the point
    comma, point = {"b": ["1,5"] * 30}, {"b": ["1.5"] * 30}
    assert value(same | comma, same | point) == 1103  # the table itself before the other one
    assert value(same | point, same | comma) == 1.103
    assert value(same, {"a": ["1,5"] * 30}) == 1103  # the other sample
    assert value({"a": ["1,5", "2"] * 9}, {"a": ["1.5"] * 30}) == 1.5  # each its own


def test_categories_stay_categories():
    codes = pd.Series(["1", "2", "3"] * 10, dtype="category")
    assert column(codes, codes)[0].kind == "number"  # a list of text
    found = pool(pd.DataFrame({"a": codes}), pd.DataFrame({"a": codes}))
    assert found.made[0].kind == "category"
    frame = pl.DataFrame({"a": ["1", "2", "3"] * 10}, schema={"a": pl.Categorical})
    assert pool(frame, frame).made[0].kind == "category"


def test_missing_words_among_numbers():
    made, raw = column(["n/a", *map(german, MONEY)], ["NA", *map(german, OTHER)])
    assert made.kind == "number"
    assert made.missing == 2
    np.testing.assert_array_equal(np.flatnonzero(raw.missing), [0, 61])


def test_whole_numbers_in_text_are_whole():
    assert column(map(str, range(1000, 1060)), map(str, range(1060, 1120)))[0].treatment == (
        "left out: row numbers"
    )


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ("{}kg", "{}lb", "'kg' in x and with 'lb' in y"),
        ("${}", "{}", "with '\\$' in x and with no unit in y"),
        ("{}", "{} %", "with no unit in x and with '%' in y"),
    ],
)
def test_two_units_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        column([x.format(v) for v in MONEY], [y.format(v) for v in OTHER])
    if "{}" in (x, y):  # also where the other sample has a type of numbers
        given = [[s.format(v) for v in w] if s != "{}" else w for s, w in ((x, MONEY), (y, OTHER))]
        with pytest.raises(ValueError, match=message):
            column(*given)


def test_two_units_in_one_sample_are_refused():
    mixed = [f"{v}{'kg' if i else 'lb'}" for i, v in enumerate(MONEY)]
    with pytest.raises(ValueError, match="of x has numbers with 'lb' and with 'kg'"):
        column(mixed, mixed)


def test_slips_among_numbers_are_named():
    spelt = [f"{v}kg" for v in MONEY]
    with pytest.raises(ValueError, match="holds numbers but also 'oops'"):
        column([*spelt, "oops"], spelt)
    with pytest.raises(ValueError, match="decimal points and decimal commas"):
        column([f"{v:.1f}" for v in MONEY] + [f"{v:.1f}".replace(".", ",") for v in OTHER], spelt)


@pytest.mark.parametrize("text", ["user_17", "12A3", "8f14e45f-ceea", "35.51.53.8", "1e", "", "kg"])
def test_codes_are_no_amounts(text):
    amount = amount_of(text)
    assert amount is None or not is_known(amount.unit) or text == "35.51.53.8"
    check_numbers([text] * 30, "a")  # and no slip


def test_few_amounts_may_be_categories():
    made, _ = column(["S 5kg", "5lb", "5kg"] * 10, ["5lb"] * 30)
    assert made.kind == "category"
    made, _ = column([f"{i % 20}{'AB'[i % 2]}" for i in range(60)], ["7A"] * 60)
    assert made.kind == "category"  # house numbers: two letters, and no known units


def test_a_monitor_reads_text_as_numbers(tmp_path):
    x, y = frames(map(german, MONEY), ["1.103"] * 30)
    monitor = Monitor(x, rng=0)
    monitor.save(tmp_path / "m.npz")
    for each in (monitor, Monitor.load(tmp_path / "m.npz")):
        each.update(frames(map(german, OTHER), [])[0].iloc[:40])
        each.save(tmp_path / "n.npz")
        again = Monitor.load(tmp_path / "n.npz")  # which knows the sign, once the text is gone
        again.update(y)
        assert again.columns[0].kind == "number"
        assert again._rows.table["a"].values[-1] == 1103
