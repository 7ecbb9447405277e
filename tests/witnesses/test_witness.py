import json
import warnings

import numpy as np
import pytest

import crossedge as ce

pd = pytest.importorskip("pandas")

# small tables share rows by chance, which is a caution
pytestmark = pytest.mark.filterwarnings("ignore:.*stand in the second")


def people(rng, n, older=0.0, zug=0.0, missing=0.1):
    table = pd.DataFrame(
        {
            "age": rng.normal(40 + older, 12, n).round(),
            "income": rng.lognormal(11, 1, n),
            "city": rng.choice(["Bern", "Basel", "Zug", None], n, p=[0.5, 0.3, 0.15, 0.05]),
            "member": rng.random(n) < 0.3,
        }
    )
    table.loc[rng.random(n) < missing, "income"] = np.nan
    some = rng.random(n) < zug
    table.loc[some, "age"] = rng.uniform(60, 75, some.sum()).round()
    table.loc[some, "city"] = "Zug"
    return table


def reports(found):
    columns = [column for column in found.columns if column.significant]
    return bool(columns or found.regions or found.points.significant.any())


def count_reports(repetitions):
    count = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        x, y = people(rng, 50), people(rng, 40)
        found = ce.witness(x, y, n_resamples=99, rng=seed)
        assert found.pvalue <= 0.05 or not reports(found)
        count += reports(found)
    return count


def test_nothing_is_reported_if_the_distributions_are_equal():
    assert count_reports(30) <= 5  # 6 or more have probability 0.3%


@pytest.mark.slow
def test_nothing_is_reported_in_95_of_100_cases():
    assert count_reports(400) <= 33  # 20 are expected; 34 or more have probability 0.2%


def test_a_column_is_found_and_described():
    rng = np.random.default_rng(1)
    found = ce.witness(people(rng, 300), people(rng, 250, older=8), n_resamples=199, rng=0)
    first = found.columns[0]
    assert (first.name, first.kind, first.significant) == ("age", "number", True)
    assert first.description.startswith("mean 3")
    assert [column.significant for column in found.columns[1:]] == [False] * 3
    assert first.pvalue_without > 0.05
    assert first.share > 0.5 > max(column.share for column in found.columns[1:])
    assert "age" in found.regions[0].description


def test_missing_values_and_categories_are_described():
    rng = np.random.default_rng(1)
    found = ce.witness(people(rng, 300), people(rng, 300, missing=0.4), n_resamples=199, rng=0)
    assert found.columns[0].name == "income"
    assert found.columns[0].description.startswith("missing ")
    x, y = people(rng, 300), people(rng, 300)
    y["city"] = rng.choice(["Bern", "Zug"], 300)
    (city, *_) = ce.witness(x, y, n_resamples=199, rng=0).columns
    assert city.name == "city"
    assert city.description.split()[0] in ("Basel", "Zug")


def test_a_region_in_two_columns_is_found_in_their_terms():
    rng = np.random.default_rng(0)

    def table(old_in_zug, young_in_zug):
        age = rng.uniform(20, 80, 500).round()
        zug = rng.random(500) < np.where(age > 60, old_in_zug, young_in_zug)
        return pd.DataFrame({"age": age, "city": np.where(zug, "Zug", "Bern")})

    # both columns alone have equal distributions
    found = ce.witness(table(0.4, 0.4), table(0.9, 0.15), n_resamples=199, rng=0)
    assert not any(column.significant for column in found.columns)
    first, second, *_ = found.regions
    assert first.description.startswith("age 60 and above and city Bern: ")
    assert second.description.startswith("age ")
    assert " and city Zug: " in second.description
    assert first.description.endswith(f" {first.ratio:.2g} times as many in y")
    assert first.share_y == first.n_y / 500
    assert first.ratio < 0.3


def test_points_are_found_where_the_change_is():
    found_near, found_far = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(size=(400, 2)), rng.uniform(size=(400, 2))
        left = y[:, 0] < 0.3  # elsewhere the densities are equal
        y[left, 1] = rng.uniform(0, 0.4, left.sum())
        found = ce.witness(x, y, ce.NearestNeighbours(32), n_resamples=199, rng=seed).points
        at = np.concatenate([x, y])
        near, far = at[:, 0] < 0.3, at[:, 0] > 0.5
        chosen = found.significant
        found_near.append(chosen[near].mean())
        assert (found.excess[chosen & near & (at[:, 1] > 0.5)] < 0).all()
        found_far.append((chosen & far).sum() / chosen.sum())
    assert np.mean(found_near) > 0.4
    assert np.mean(found_far) < 0.05


def points_moved_into_a_square(rng, n, share):
    """Uniform points, and a share of y in a square of 1%, outside of which y is rarer than x."""
    x, y = rng.uniform(size=(n, 2)), rng.uniform(size=(n, 2))
    moved = rng.random(n) < share
    y[moved] = 0.45 + 0.1 * rng.uniform(size=(moved.sum(), 2))
    return x, y, (np.abs(np.concatenate([x, y]) - 0.5) <= 0.05).all(1)


def test_points_whose_neighbourhoods_reach_into_the_change_are_taken_out():
    outside, without, found = [], [], []
    for seed in range(3):
        x, y, inside = points_moved_into_a_square(np.random.default_rng(seed), 500, 0.1)
        points = ce.witness(x, y, n_resamples=99, rng=seed).points
        more = points.significant & (points.excess > 0)
        reached = (points.adjusted <= 0.05) & (points.excess > 0)
        outside.append((more & ~inside).sum() / more.sum())
        without.append((reached & ~inside).sum() / reached.sum())
        found.append((more & inside).sum() / inside.sum())
    assert np.mean(outside) < 0.3 < 0.38 < np.mean(without)
    assert np.mean(found) > 0.95


def test_points_of_a_weak_and_broad_change_stay():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + np.array([0.5, 0])
    points = ce.witness(x, y, n_resamples=99, rng=0).points
    assert (points.adjusted <= 0.05).sum() > 200
    assert points.significant.sum() > 0.8 * (points.adjusted <= 0.05).sum()


def test_arrays_lists_and_tensors_are_taken_alike():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + np.array([0, 1.5])
    found = ce.witness(x, y, n_resamples=99, rng=0)
    assert found.columns[0].name == "column 1"
    assert ce.witness(x.tolist(), y.tolist(), n_resamples=99, rng=0).to_dict() == found.to_dict()
    scaled = ce.witness(x, y, n_resamples=99, rng=0, scale="std")
    assert {column.name for column in scaled.columns} == {"column 0", "column 1"}


def test_distances_have_points_only():
    rng = np.random.default_rng(0)
    at = np.concatenate([rng.normal(size=40), rng.normal(size=40) + 3])
    matrix = np.abs(at[:, None] - at)
    found = ce.witness(matrix, 40, n_resamples=99, rng=0, distance="precomputed")
    assert found.columns == found.regions == ()
    assert found.points.significant.any()


def test_thinning_keeps_rows_and_says_so():
    rng = np.random.default_rng(0)
    x, y = people(rng, 300), people(rng, 200, older=15)
    found = ce.witness(x, y, n_resamples=99, rng=0, max_points=100)
    assert (found.n_x, found.n_y, found.n_given) == (60, 40, 500)
    assert "drawn from 500" in repr(found)
    assert (found.rows[found.in_x] < 300).all()
    assert (found.rows[~found.in_x] >= 300).all()
    assert len(found.points.excess) == 100


def test_answers_in_all_forms():
    rng = np.random.default_rng(0)
    x, y = people(rng, 200), people(rng, 200, older=10)
    x, y = (each.rename(columns={"age": "<b>age</b>"}) for each in (x, y))
    found = ce.witness(x, y, n_resamples=99, rng=0)
    facts = json.loads(found.to_json())
    assert facts["pvalue"] == found.pvalue
    assert len(facts["points"]["excess"]) == 400
    assert facts["columns"][0]["name"] == "<b>age</b>"
    assert "<b>" not in found._repr_html_()
    assert "over-represented" in repr(found)
    same = ce.witness(x, people(rng, 200).set_axis(x.columns, axis=1), n_resamples=99, rng=0)
    assert "nothing at level 0.05" in repr(same)


def test_a_map_is_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    found = ce.witness(
        rng.normal(size=(50, 3)), rng.normal(size=(50, 3)) + 2, n_resamples=99, rng=0
    )
    _, ax = plt.subplots()
    drawn = found.plot(ax=ax).collections
    assert sum(len(each.get_offsets()) for each in drawn) == 100
    plt.close("all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 0}, "level=0 is not between 0 and 1"),
        ({"n_resamples": 0}, "n_resamples=0 is too small"),
        ({"max_points": 1}, "max_points=1 is too small"),
        ({"weights": []}, "weights is an empty list"),
        ({"scale": "big"}, "scale='big' is unknown"),
    ],
)
def test_bad_arguments_get_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        ce.witness([1.0, 2.0, 3.0], [2.0, 3.0], **arguments)


def test_tiny_and_constant_samples_have_an_answer():
    assert ce.witness([1.0, 2.0], [3.0], n_resamples=99, rng=0).pvalue > 0.3
    assert ce.witness([[1.0, 1.0]] * 3, [[1.0, 1.0]] * 3, n_resamples=99, rng=0).pvalue == 1


def test_cautions_are_warnings():
    rng = np.random.default_rng(0)
    x, y = people(rng, 50), people(rng, 50)
    x["same"] = y["same"] = 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = ce.witness(x, y, n_resamples=19, rng=0)
    assert any("'same'" in str(each.message) for each in said)
    assert "same" not in {column.name for column in found.columns}
