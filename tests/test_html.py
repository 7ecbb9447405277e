"""Tables for notebooks: well formed, and nothing in them but text."""

import warnings
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import crossedge as ce
from crossedge.html import html_table

HOSTILE = "</td><script>alert('1')</script>&amp;\"<img src=x onerror=alert(1)>\x00\x1b[2J"


def _cells(table):
    return ["".join(cell.itertext()) for cell in ElementTree.fromstring(table).iter("td")]


def test_text_is_escaped_everywhere():
    table = html_table(HOSTILE, [(HOSTILE, HOSTILE), ("size", 3)])
    root = ElementTree.fromstring(table)  # fails if anything is left open
    assert {each.tag for each in root.iter()} == {"table", "caption", "tr", "th", "td"}
    shown = HOSTILE.replace("\x00", "�").replace("\x1b", "�")
    assert root.find("caption").text == shown
    assert root.find("tr/th").text == shown
    assert _cells(table) == [shown, "3"]


def test_no_colours_that_would_vanish_in_the_dark():
    table = html_table("title", [("name", "value")])
    assert "color" not in table
    assert "#" not in table


def test_result_of_a_test_shows_its_summary():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    for weights in (None, ce.SpanningTree()):
        found = ce.two_sample(x, y, weights, n_resamples=99, rng=0)
        table = found._repr_html_()
        root = ElementTree.fromstring(table)
        assert root.find("caption").text == repr(found).splitlines()[0]
        assert _cells(table) == [line[13:] for line in repr(found).splitlines()[1:]]


def test_names_of_columns_are_escaped():
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"a": rng.normal(size=30), "<script>": np.ones(30)}) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ce.two_sample(*frames, n_resamples=99, rng=0)
    table = found._repr_html_()
    assert "<script" not in table
    assert "without <script>" in "".join(_cells(table))


def test_result_of_a_test_plots_its_null():
    rng = np.random.default_rng(0)
    found = ce.two_sample(rng.normal(size=30), rng.normal(size=20), n_resamples=99, rng=0)
    plt.figure()
    axes = found.plot()
    assert axes.get_title() == f"z = {found.zscore:.2f},  p = {found.pvalue:.3g}"
    assert found.plot(ax=axes) is axes
    plt.close("all")
