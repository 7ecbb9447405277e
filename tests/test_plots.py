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
