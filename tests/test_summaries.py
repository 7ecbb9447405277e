"""What all results have in common is written once."""

import json

import pytest

import crossedge as ce
from crossedge.effects import EffectSize
from crossedge.k_samples.result import KSampleResult
from crossedge.monitoring.state import MonitorState
from crossedge.planning import Plan
from crossedge.result import TwoSampleResult
from crossedge.summaries import Shown, Summary, plain_values
from crossedge.witnesses import Witness


class Found(Summary):
    _title = "what <b>was</b> found"

    def _facts(self):
        return [("size", "3"), ("a long name", "<script>")]

    def to_dict(self):
        return plain_values({"size": 3, "far": float("inf"), "word": "é"})


def test_a_summary_prints_and_escapes_and_turns_into_json():
    found = Found()
    assert repr(found).split("\n") == [
        "what <b>was</b> found",
        "  size       3",
        "  a long name <script>",
    ]
    assert "<script>" not in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert json.loads(found.to_json()) == {"size": 3, "far": None, "word": "é"}
    assert "é" in found.to_json()
    assert found.to_json(indent=2).startswith('{\n  "size"')


@pytest.mark.parametrize(
    "result",
    [TwoSampleResult, KSampleResult, EffectSize, Plan, Witness, MonitorState, ce.Monitor],
)
def test_no_result_has_its_own_way(result):
    assert issubclass(result, Shown)
    assert not {"__repr__", "_repr_html_", "to_json"} & set(vars(result))
