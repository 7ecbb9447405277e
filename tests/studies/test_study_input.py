"""What power studies refuse: wrong arguments, errors of samplers and tests, missing packages."""

import subprocess
import sys

import numpy as np
import pytest

import crossedge as ce
from study_cases import shifted, tiny

WRONG = {
    "no sampler": ({"samplers": 3}, "samplers is 3: give a function of"),
    "three samplers": ({"samplers": [shifted] * 3}, "two that return a sample each"),
    "one sample": ({"samplers": lambda rng, shift: rng.normal(size=3)}, "sampler returned a ndarr"),
    "a list of tests": ({"tests": [ce.SpanningTree()]}, "tests is of type list: give a dictionary"),
    "a class": ({"tests": {"a": ce.SpanningTree}}, "test 'a' is a class: give an instance"),
    "text": ({"tests": {"a": "tree"}}, "test 'a' is 'tree': give weights, None"),
    "a number for a name": ({"tests": {1: None}}, "the name 1: give text"),
    "rng of a test": (
        {"tests": {"a": {"rng": 1}}},
        "has the argument 'rng': choose from dist",
    ),
    "statistic": ({"tests": {"a": {"statistic": "best"}}}, "test 'a': statistic='best'"),
    "no p-value": ({"tests": {"a": lambda x, y, rng: 2.0}}, "'a' at shift=0.0: it returned 2.0: g"),
    "NaN": ({"tests": {"a": lambda x, y, rng: np.nan}}, "it returned nan: give a p-value"),
    "points of two kinds": ({"grid": [{"shift": 1}, {"n": 1}]}, "give all the same names"),
    "twice": ({"grid": {"shift": [1, 1.0]}}, "twice: once is enough"),
    "not a grid": ({"grid": 3}, "grid is of type int: give a dictionary of lists"),
    "not a list": ({"grid": {"shift": 3}}, "grid has 3 for 'shift': give a list"),
    "no values": ({"grid": {"shift": []}}, "no values for 'shift'"),
    "no points": ({"grid": []}, "grid is empty"),
    "an array": ({"grid": {"shift": [np.zeros(2)]}}, "of type ndarray: give numbers, text"),
    "a column": ({"grid": {"power": [1]}}, "'power', which the study itself uses"),
    "nobody looks": ({"grid": {"shift": [1], "m": [1]}}, "'m', which no sampler and no test takes"),
    "level": ({"level": 5}, "level=5 is not between 0 and 1"),
    "repetitions": ({"repetitions": 0}, "repetitions=0 is too small"),
    "half a repetition": ({"repetitions": 1.5}, "repetitions=1.5 is not an integer"),
    "jobs": ({"jobs": 0}, "jobs=0 is no number of processes"),
    "both": ({"jobs": 2, "dask": "tcp://x:1"}, "jobs=2 does not go with dask"),
    "rng": ({"rng": -1}, "rng=-1 is negative"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_input(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tiny(**options)


def test_an_error_of_the_user_says_where():
    def broken(x, y, rng):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as caught:
        tiny(tests={"broken": broken})
    assert caught.value.__notes__ == ["in test 'broken' at shift=0.0"]


class TestPackages:
    def test_the_core_needs_none_of_them(self):
        code = "import sys, crossedge; crossedge.power_study; print(*sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        loaded = set(found.stdout.split())
        assert "crossedge.studies" in loaded
        optional = {"pandas", "joblib", "dask", "distributed", "pyarrow", "rich", "matplotlib"}
        assert not loaded & optional

    @pytest.mark.parametrize(
        ("package", "options", "extra"),
        [
            ("pandas", {}, "studies"),
            ("joblib", {"jobs": 2}, "studies"),
            ("distributed", {"dask": "tcp://x:1"}, "cluster"),
        ],
    )
    def test_what_is_missing(self, package, options, extra, monkeypatch):
        monkeypatch.setitem(sys.modules, package, None)
        message = rf"power_study needs {package}: pip install 'crossedge\[{extra}\]'"
        with pytest.raises(ModuleNotFoundError, match=message):
            tiny(**options)
