import matplotlib.pyplot as plt
import numpy as np
import pytest

import crossedge as ce
from crossedge.plots import plot_graph, plot_null


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 3)), rng.normal(size=(15, 3))


def test_the_graph_shows_every_point_and_edge(samples):
    ax = plot_graph(*samples, ce.SpanningTree(), ax=plt.figure().gca())
    inside, crossing, x, y = ax.collections
    assert len(inside.get_segments()) + len(crossing.get_segments()) == 34
    assert len(crossing.get_segments()) == ce.two_sample(*samples, ce.SpanningTree()).statistic
    assert (len(x.get_offsets()), len(y.get_offsets())) == (20, 15)
    plt.close("all")


@pytest.mark.parametrize(
    ("d", "along"), [(1, [-0.5, 0.5]), (2, [0.0, 1.0]), (3, [-(0.75**0.5), 0.75**0.5])]
)
def test_points_on_a_line_in_a_plane_and_in_space(d, along):
    """Those in a plane stay where they are; others have the axes of most variance, up to a sign."""
    ax = plot_graph(np.zeros((3, d)), np.ones((3, d)), ce.SpanningTree(), ax=plt.figure().gca())
    places = np.concatenate([part.get_offsets() for part in ax.collections[2:]])
    np.testing.assert_allclose(np.sort(places[:, 0]), np.repeat(along, 3), atol=1e-12)
    np.testing.assert_allclose(places[:, 1], places[:, 0] if d == 2 else 0, atol=1e-12)
    plt.close("all")


def test_a_layout_of_the_wrong_shape(samples):
    with pytest.raises(ValueError, match="layout has shape"):
        plot_graph(*samples, ce.SpanningTree(), layout=np.zeros((3, 2)))


@pytest.mark.parametrize("null", ["permutation", "normal"])
def test_the_null_shows_what_was_observed(samples, null):
    result = ce.two_sample(*samples, ce.SpanningTree(), null=null)
    ax = plot_null(result, ax=plt.figure().gca())
    assert result.statistic in [line.get_xdata()[0] for line in ax.lines]
    plt.close("all")


def test_the_graph_is_at_the_front(samples):
    assert ce.plot_graph is plot_graph
    assert "plot_graph" in ce.__all__


def test_a_plan_shows_subsamples_and_what_is_needed(samples):
    curve = ((10, 0.2), (20, 0.5))
    facts = {"power": 0.8, "level": 0.05, "pilot": (20, 20), "evidence": 3.0, "growth": 0.5}
    plan = ce.Plan(n_x=16, n_y=16, interval=(20, None), curve=curve, **facts)
    assert plan.power_at(0) == pytest.approx(0.05)
    assert plan.power_at(40) == pytest.approx(0.9123, abs=1e-4)  # Phi(3 - 1.645)
    assert plan.power_at(10) == pytest.approx(0.4424, abs=1e-4)  # Phi(3 / 2 - 1.645)
    ax = plan.plot(plt.figure().gca())
    inside, beyond, dots, *_, needed = ax.lines
    assert list(zip(*dots.get_data(), strict=True)) == [*curve]
    assert (inside.get_xdata() <= 40).all()
    assert (beyond.get_xdata() >= 40).all()
    assert needed.get_xdata()[0] == 32
    nothing = ce.Plan(n_x=None, n_y=None, interval=(50, None), curve=curve, **facts)
    assert len(nothing.plot(plt.figure().gca()).lines) == 4
    plt.close("all")


def test_an_alarm_shows_the_columns_that_changed():
    rng = np.random.default_rng(0)
    monitor = ce.Monitor(rng.normal(size=(300, 3)), rng=0)
    state = monitor.update(rng.normal(size=(50, 3)))
    with pytest.raises(ValueError, match=r"monitor.plot\(\) draws the evidence"):
        state.plot()
    while not state.alarm:
        state = monitor.update(rng.normal((0, 0, 3), size=(50, 3)))
    ax = state.plot(plt.figure().gca())
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "2"
    assert [bar.get_width() for bar in ax.patches] == [c.change for c in state.columns[::-1]]
    assert ax.patches[-1].get_facecolor() != ax.patches[0].get_facecolor()
    plt.close("all")


def test_no_picture_covers_another(samples):
    plt.close("all")
    first = ce.two_sample(*samples, ce.SpanningTree(), n_resamples=99, rng=0).plot()
    second = ce.effect_size(*samples).plot()
    third = plot_graph(*samples, ce.SpanningTree())
    assert len({first.figure, second.figure, third.figure}) == 3
    lines = len(first.lines)
    assert ce.effect_size(*samples).plot(first) is first  # unless somebody says so
    assert len(first.lines) > lines
    plt.close("all")
