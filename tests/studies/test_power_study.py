"""The numbers of power studies, and their tables and pictures."""

import numpy as np
import pytest
from scipy import stats

import crossedge as ce
from crossedge.runtime.randomness import random_key
from crossedge.studies.grid import seeds
from crossedge.studies.study import wilson
from study_cases import equal, tiny


class TestNumbers:
    def test_the_level_holds_and_power_grows(self):
        tests = {"nearest": ce.NearestNeighbours(3, 0.5), "energy": ce.EnergyKernel()}
        frame = tiny(tests=tests, grid={"shift": [0.0, 1.0, 3.0]}, repetitions=300).frame
        for test in tests:
            none, some, much = frame[frame.test == test].power
            assert none == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 300))
            assert none < some < much
            assert much > 0.9

    def test_standard_errors_and_intervals(self):
        """Of a test that rejects every fifth time."""
        turn = iter(range(50))
        fifth = {"fifth": lambda x, y, rng: 0.05 if next(turn) % 5 == 0 else 0.06}
        (row,) = tiny(tests=fifth, grid=None, repetitions=50).frame.to_dict("records")
        assert row["power"] == 0.2
        assert row["standard_error"] == pytest.approx(np.sqrt(0.2 * 0.8 / 50))
        assert (row["lower"], row["upper"]) == pytest.approx((0.11243, 0.33037), abs=1e-5)
        assert (row["repetitions"], row["level"]) == (50, 0.05)

    @pytest.mark.parametrize("rejected", [0, 1, 8, 10])
    def test_intervals_are_those_of_wilson(self, rejected):
        known = stats.binomtest(rejected, 10).proportion_ci(0.95, "wilson")
        assert wilson(rejected, 10, 0.95) == pytest.approx((known.low, known.high))

    def test_all_tests_see_the_same_samples_and_labellings(self):
        def first(x, y, rng):
            return float((abs(x).sum() + abs(y).sum()) % 1)

        def second(x, y, rng):
            return float(rng.random())

        found = tiny(tests={"a": first, "b": first, "c": second, "d": second}).pvalues
        assert np.array_equal(found["a"], found["b"])
        assert np.array_equal(found["c"], found["d"])
        assert len(np.unique(found["a"])) == len(np.unique(found["c"])) == 80
        found = tiny(tests={"a": ce.SpanningTree(), "b": {"weights": ce.SpanningTree()}}).pvalues
        assert np.array_equal(found["a"], found["b"])

    def test_pvalues_are_those_of_two_sample(self):
        seen = []
        tests = {
            "tree": ce.SpanningTree(),
            "energy": ce.EnergyKernel(),
            "adaptive": None,
            "l1": {"weights": ce.NearestNeighbours(3, 0.5), "distance": 1},
            "watch": lambda x, y, rng: seen.append((x, y)) or 1.0,
        }
        found = tiny(tests=tests, grid={"shift": [0.5]}, repetitions=5, n_resamples=99).pvalues
        for repetition, (x, y) in enumerate(seen):
            _, rng = seeds(int(random_key(0)), {"shift": 0.5}, repetition)
            options = {"n_resamples": 99, "rng": rng}
            for name in ("tree", "energy", "adaptive"):
                expected = ce.two_sample(x, y, tests[name], **options).pvalue
                assert found[name][0, repetition] == expected
            expected = ce.two_sample(x, y, **tests["l1"], **options).pvalue
            assert found["l1"][0, repetition] == expected

    def test_weights_and_tests_as_functions_of_the_grid(self):
        def same(x, y, rng, k):
            return ce.two_sample(x, y, ce.NearestNeighbours(k, k / 2), null="pearson3")

        tests = {
            "function": {"weights": lambda k: ce.NearestNeighbours(k, k / 2), "null": "pearson3"},
            "test": same,
        }
        found = tiny(tests=tests, grid=[{"shift": 1, "k": 1}, {"shift": 1, "k": 3}], repetitions=9)
        assert found.pvalues["function"] == pytest.approx(found.pvalues["test"])

    def test_two_samplers_and_no_grid(self):
        pair = (lambda rng: rng.normal(size=(15, 1)), lambda rng: rng.normal(size=(19, 1)) + 9)
        frame = tiny(pair, grid=None).frame
        assert list(frame.power) == [1, 1]

    def test_differences_are_paired(self):
        tests = {
            "x": lambda x, y, rng: float(x[0, 0] > 0),
            "more": lambda x, y, rng: float(x[0, 0] > 0.5),
            "far": lambda x, y, rng: float(y[0, 0] > 0),
        }
        study = tiny(tests=tests, grid=None, repetitions=200)
        close, far = study.difference("more", "x"), study.difference("more", "far")
        known = study.frame.set_index("test").power
        assert close.difference[0] == pytest.approx(known["more"] - known["x"])
        assert close.standard_error[0] < 0.7 * far.standard_error[0]

    def test_a_point_has_its_numbers_whatever_else_is_in_the_grid(self):
        one = tiny(grid={"shift": [1.0]})
        more = tiny(grid=[{"shift": 0.0}, {"shift": 1}], repetitions=50)
        assert np.array_equal(one.pvalues["tree"][0], more.pvalues["tree"][1, :40])

    def test_the_source_of_randomness(self):
        assert not equal(tiny(), tiny(rng=1))
        assert equal(tiny(rng=1), tiny(rng=1))


class TestPlot:
    def test_a_panel_for_each_other_point(self):
        import matplotlib.pyplot as plt

        study = tiny(grid={"shift": [0, 1, 2], "n": [5, 8]}, repetitions=5)
        figure = study.plot()
        assert [ax.get_title() for ax in figure.axes] == ["n = 5", "n = 8"]
        curves = {line.get_label(): line for line in figure.axes[1].lines[:2]}
        rows = study.frame[(study.frame.n == 8) & (study.frame.test == "tree")]
        assert list(curves["tree"].get_ydata()) == list(rows.power)
        assert list(curves["tree"].get_xdata()) == [0, 1, 2]
        plt.close(figure)
        plt.close(study.plot("n", ["energy"]))
        for arguments, message in (
            (("d",), "x='d' is not in the grid, which has shift, n"),
            ((None, ["wood"]), "'wood' is no test of this study"),
        ):
            with pytest.raises(ValueError, match=message):
                study.plot(*arguments)

    def test_without_a_grid(self):
        with pytest.raises(ValueError, match="no grid, and so no axis"):
            tiny(grid=None, repetitions=2).plot()


def test_a_study_prints_as_its_table():
    shown = repr(tiny(repetitions=4)).splitlines()
    assert shown[0] == "power at level 0.05, 4 repetitions"
    assert shown[1].split() == ["shift", "test", "power", "standard_error", "lower", "upper"]
    assert len(shown) == 6


def test_the_bar_is_for_terminals(capsys):
    tiny(repetitions=2)
    assert capsys.readouterr().err == ""
