import numpy as np
import pytest

from crossedge.data.raw import Raw
from crossedge.witnesses.cells import cut, roundest


@pytest.mark.parametrize(
    ("low", "high", "round_one"),
    [(58.2, 61.9, 60), (0.123, 0.138, 0.13), (-3, 2, 0), (-1234, -1180, -1200), (7.5, 7.5, 7.5)],
)
def test_roundest(low, high, round_one):
    assert roundest(low, high) == pytest.approx(round_one)


def test_every_row_has_a_cell_whose_words_hold_its_value():
    values = np.random.default_rng(0).lognormal(10, 1, 500)
    missing = np.arange(500) % 7 == 0
    cells = cut("income", Raw("number", values, missing), "number", 8)
    assert cells.ordered == 8
    assert (cells.codes[missing] == 8).all()
    assert cells.words(8, 9) == "income missing"
    assert cells.words(0, 8) == "income not missing"
    for place in range(1, 8):
        low = float(cells.lows[place].replace(",", ""))
        assert (values[(cells.codes >= place) & ~missing] >= low).all()
        assert (values[(cells.codes < place) & ~missing] < low).all()


def test_whole_numbers_are_described_by_values_that_occur():
    cells = cut(
        "age", Raw("number", np.repeat(np.arange(20.0, 80), 3), np.zeros(180, bool)), "number", 6
    )
    assert cells.words(0, 1).startswith("age up to ")
    first, second = float(cells.highs[0]), float(cells.lows[1])
    assert second == first + 1


def test_categories_dates_and_durations():
    raw = Raw("text", np.array([1, 0, 1, -1]), np.array([0, 0, 0, 1], bool), texts=("Zug", "Bern"))
    cells = cut("city", raw, "category", 6)
    assert [cells.words(i, i + 1) for i in range(3)] == ["city Bern", "city Zug", "city missing"]
    assert cells.codes.tolist() == [0, 1, 0, 2]
    days = Raw("date", np.array([19723.0, 19724, 19730]), np.zeros(3, bool))
    assert cut("day", days, "date", 6).words(0, 2) == "day up to 2024-01-02"
    spans = Raw("date", np.array([0.25, 0.5, 2]), np.zeros(3, bool))
    assert cut("took", spans, "date", 6).words(1, 2) == "took 0.5 days"
