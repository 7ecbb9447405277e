"""The page: whole, escaped, the same each time, and as a browser sees it."""

import itertools
import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import crossedge as ce
from browser import CHROMIUM, Browser
from crossedge.cli.main import main
from crossedge.findings import find
from crossedge.reports import svg
from crossedge.reports.page import page
from crossedge.witnesses.verb import ratio_in_words

HOSTILE = (
    "</style></title><script>alert('1')</script>\"'&amp;{{ 7 * 7 }}<img src=x onerror=alert(1)>"
    "\x00\x1b[2J\u202egnp.exe"
)
HALF = "\ud800"  # of a pair, which no encoding can write: pandas refuses it, names may have it
DAY = date(2024, 2, 29)
VOID = {"meta", "link", "br", "img"}


class Reader(HTMLParser):
    """Tags that are closed in the right order, and the text outside of styles."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.ids, self.text, self.links = [], set(), [], "", []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href"):
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def mixed(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    score[rng.random(n) < 0.1 + 0.2 * shift] = np.nan
    return pd.DataFrame(
        {
            "age": rng.normal(40 + 10 * shift, 10, n).round(),
            "city": rng.choice(["Bern", "Basel", "Chur"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
            "member": rng.random(n) < 0.5,
            "score": score,
        }
    )


def hostile(n, seed, shift=0.0):
    frame = mixed(n, seed, shift)
    frame = frame.assign(city=np.where(frame["age"] > 40, HOSTILE, "x" * 300))
    return frame.rename(columns={"age": HOSTILE, "score": "s" * 5000})


def written(path, x, y, **options):
    options = {"rng": 0, "n_resamples": 199, "today": DAY} | options
    found = ce.report(x, y, path, **options)
    return found, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def differing(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    x, y = mixed(80, 0), mixed(60, 1, shift=1)
    return x, y, path, *written(path, x, y, names=("old", "new"))


@pytest.mark.filterwarnings("ignore:column 'city' of")
def text_of(found, **changes):
    """The text of a page, after changes of what was found."""
    choices = {"reproduce": "-", "seed": 0, "today": DAY}
    return " ".join(Reader(page(found._replace(**changes), ("old", "new"), **choices)).text.split())


@pytest.fixture(scope="module")
def findings():
    x, y = mixed(80, 0), mixed(60, 1, shift=1)
    x["city"], y["city"] = x["city"].mask(x["age"] > 50), y["city"].mask(y["age"] > 50)
    return find(x, y, rng=0, n_resamples=99, names=("old", "new"))


def test_missing_values_are_named_once(findings):
    text = text_of(findings)
    assert text.count("missing:") == 1  # under the number, whose figure does not show them
    assert "None →" not in text


def test_only_one_bound_on_a_classifier_is_a_fact(findings):
    least, most = findings.effect.classifier_error
    assert (
        f"errs for at most {most:.0%} of the rows, and for at least {least:.0%} if neighbours see"
    ) in text_of(findings)


def test_counts_of_nothing_read_well(findings):
    witness, points = findings.witness, findings.witness.points
    assert "lie where old is over-represented" in text_of(findings)
    none = replace(points, significant=np.zeros(140, np.bool_))
    text = text_of(findings, witness=replace(witness, points=none))
    assert "None of 140 points stands out alone." in text
    assert "Nor does a column" not in text
    quiet = tuple(replace(column, significant=False) for column in witness.columns)
    bare = replace(witness, points=none, columns=quiet, regions=())
    assert "the difference may be in how columns go together" in text_of(findings, witness=bare)
    assert "no single one stands out" in repr(bare)
    one = replace(points, significant=points.excess == points.excess.max())
    text = text_of(findings, witness=replace(witness, points=one))
    assert ", none lie where old is over-represented and" in text


def test_what_was_told_by_some_rows_says_so(findings):
    assert "after correction for their number," not in text_of(findings)
    text = text_of(findings, witness=replace(findings.witness, n_given=10**6))
    assert "after correction for their number, in 140 random rows" in text


def test_headlines_say_how_slight_and_whether_rows_are_the_same(findings):
    assert "Divergence" in text_of(findings)
    slight = replace(findings.effect, interval=(0.001, 0.012))
    text = text_of(findings, effect=slight)
    assert text.count("The samples differ, but very slightly") == 2
    assert "the samples differ, but very slightly: the divergence is below 0.012." in text
    quiet = replace(findings.test, pvalue=1.0)
    text = text_of(findings, test=quiet, effect=replace(findings.effect, same_rows=True))
    assert text.count("The samples have the same rows") == 2
    assert "Divergence" not in text


def test_ratios_in_words():
    assert [ratio_in_words(each) for each in (0.123, 1.96, 2.0, 9.96, 34.4, 1234.5)] == [
        *("0.12", "2", "2", "10", "34", "1,234")
    ]


def test_hostile_names_and_cells_stay_text(tmp_path):
    names = (HALF + HOSTILE, "y" + HOSTILE)
    found, page = written(
        tmp_path / "page.html", hostile(60, 0), hostile(60, 1, shift=1.5), names=names
    )
    assert found.witness.columns[0].significant
    seen = Reader(page)
    assert not seen.seen & {"script", "img", "iframe", "object"}
    shown = "</style></title><script>alert('1')</script>\"'&amp;{{ 7 * 7 }}"
    assert shown[:40] in seen.text
    assert page.replace("\n", "").isprintable()
    assert page.count("</style>") == 1


def test_the_headline_says_what_tells_something(findings):
    sentence = "nearest neighbour is of its own sample in"
    effect = findings.effect
    assert sentence in text_of(findings, effect=replace(effect, same_neighbour=0.6))
    chance = effect.same_neighbour_by_chance
    for same in (chance + 1e-4, chance, chance - 0.1):
        assert sentence not in text_of(findings, effect=replace(effect, same_neighbour=same))


def test_the_headline_names_a_column_that_carries_the_change_alone(findings):
    first, *rest = findings.witness.columns
    rest = [replace(column, significant=False) for column in rest]

    def said(column, *others):
        witness = replace(findings.witness, columns=(column, *others))
        return "One column carries the change" in text_of(findings, witness=witness)

    alone = replace(first, significant=True, pvalue_without=0.3)
    assert said(alone, *rest)
    text = text_of(findings, witness=replace(findings.witness, columns=(alone, *rest)))
    assert f"carries the change: {first.name}, {first.description.replace('->', '→')}." in text
    assert "Most of all" not in text
    assert not said(replace(alone, pvalue_without=0.01), *rest)
    assert not said(replace(alone, pvalue_without=float("nan")))
    assert not said(alone, replace(rest[0], significant=True), *rest[1:])


def test_parts_say_of_which_view_they_are_and_come_by_evidence(findings):
    page = text_of(findings).partition("Parts of the adaptive test")[2]
    ordered = sorted(findings.test.members, key=lambda member: -member.evidence)
    assert any(member.view for member in ordered)
    place = 0
    for member in ordered:
        line = f"{member.name}{member.statistic}{member.evidence:.3g}{member.pvalue:.3g}"
        found = page.replace(" ", "").find(line.replace(" ", ""), place)
        assert found >= place, line
        place = found + 1


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
def test_words_of_the_last_table_are_whole(tmp_path):
    rng = np.random.default_rng(0)
    x, y = (
        pd.DataFrame({"amount": rng.normal(5, 1, 60), "plan": rng.choice(["free", "pro"], 60)})
        for _ in range(2)
    )
    x.loc[::5, "amount"] = np.nan
    written(tmp_path / "page.html", x, y)
    with Browser() as browser:
        for width in (1200, 720):
            browser.open(tmp_path / "page.html", width)
            tall = browser.run(
                "Math.max(...[...document.querySelectorAll('.treatments tr > :not(.change)')]"
                ".map(cell => cell.querySelector('bdi') || cell)"
                ".map(cell => { const r = document.createRange(); r.selectNodeContents(cell);"
                " return r.getClientRects().length; }))"
            )
            assert tall == 1, width  # a word in one line


def test_page_is_whole_and_says_what_was_found(differing):
    *_, found, page = differing
    seen = Reader(page)
    assert len(set(seen.ids)) == len(seen.ids)
    assert seen.links == ["data:,"]  # nothing is fetched
    assert "The samples differ" in seen.text
    lead = found.witness.columns[0]
    for text in (
        f"{found.test.pvalue:.3g}",
        f"{found.effect.divergence:.3f}",
        lead.description.replace("->", "→"),
        *(column.name for column in found.test.columns),
        *(column.treatment for column in found.test.columns),
        "29 February 2024",
        f"crossedge {ce.__version__}",
    ):
        assert text in seen.text, text
    headings = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))
    assert len(page) < 300_000


def test_figures_are_well_formed_and_described(differing):
    page = differing[-1]
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) == 5 + 5  # five of the whole, one for each column
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        parts = {part.get("id") for part in root if part.tag in ("title", "desc")}
        assert set(root.get("aria-labelledby").split()) == parts
        assert all(part.text for part in root.iter() if part.tag in ("title", "desc", "text"))
        assert "nan" not in drawing
        assert "inf" not in drawing.replace("inference", "")


def test_answers_are_those_of_the_verbs(differing):
    x, y, _, found, _ = differing
    test = ce.two_sample(x, y, n_resamples=199, rng=0)
    effect = ce.effect_size(x, y, rng=0)
    witness = ce.witness(x, y, rng=0, names=("old", "new"))
    assert (found.test.pvalue, found.test.statistic) == (test.pvalue, test.statistic)
    assert found.effect.to_dict() == effect.to_dict()
    assert found.witness.to_dict() == witness.to_dict()


def test_repeating_the_lines_gives_the_same_page(differing, tmp_path, monkeypatch):
    x, y, _, _, page = differing
    options = {"n_resamples": 199, "names": ("old", "new")}
    assert written(tmp_path / "again.html", x, y, names=("old", "new"))[1] == page
    lines = Reader(page).text
    assert "ce.report(x, y, \"report.html\", n_resamples=199, names=('old', 'new'), rng=0)" in lines
    # a report without a seed names the one that it drew
    first = written(tmp_path / "first.html", x, y, rng=None, **options)[1]
    line = re.search(r"ce\.report\(.*\)", Reader(first).text).group()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1709164800")
    eval(line, {"ce": ce, "x": x, "y": y})
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == first


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((1, 1)), np.ones((1, 1))),
        (np.zeros((3, 2)), np.ones((3, 2))),
        (np.arange(30.0) * 1e300, np.arange(30.0) * 1e300 + 1e299),
        (np.eye(12, 40), np.eye(12, 40) * 2),
    ],
)
def test_odd_samples_have_a_page(tmp_path, x, y):
    _, page = written(tmp_path / "page.html", x, y, n_resamples=49)
    Reader(page)
    assert not re.search(r'="[^"]*(nan|inf)\b', page)


@pytest.mark.parametrize(
    "options",
    [
        {"weights": ce.SpanningTree()},
        {"weights": ce.NearestNeighbours(2), "null": "normal"},
        {"weights": [ce.SpanningTree(), ce.NearestNeighbours(3)], "tolerance": 0.9},
    ],
)
def test_other_tests_have_a_page(tmp_path, options):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    found, page = written(tmp_path / "page.html", x, y, **options)
    text = Reader(page).text
    assert ("Parts of the adaptive test" in text) == bool(found.test.members)
    assert ("was said to be tolerable" in text) == ("tolerance" in options)
    assert "ce." + repr(ce.NearestNeighbours(3)) in text or not found.test.members


def test_complaints_come_before_any_work(tmp_path, monkeypatch):
    x = np.zeros((5, 2))
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "page.html", "is no folder"),
    ):
        with pytest.raises(ValueError, match=message):
            ce.report("not read", x, path)
    with pytest.raises(ValueError, match="precomputed"):
        ce.report(np.zeros((5, 5)), 2, tmp_path / "page.html", distance="precomputed")
    with pytest.raises(TypeError, match="names="):
        ce.report(x, x, tmp_path / "page.html", names="xy")
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=r"a report needs jinja2: pip install 'crossedge\[tables\]'"
    ):
        ce.report(x, x, tmp_path / "page.html")


def test_command_writes_a_page_and_says_how(tmp_path, capsys):
    paths = [tmp_path / "a.csv", tmp_path / "b c.csv"]
    for path, shift in zip(paths, (0, 1), strict=True):
        mixed(50, int(shift), shift).to_csv(path, index=False)
    page, picture = tmp_path / "page.html", tmp_path / "null.svg"
    arguments = ["test", *map(str, paths), "--resamples", "99", "--report", str(page)]
    assert main([*arguments, "--where", "--json", "--plot", str(picture)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["witness"]["columns"][0]["name"] == "age"
    assert picture.read_text().startswith("<?xml")
    text = Reader(page.read_text(encoding="utf-8")).text
    assert f"crossedge test {paths[0]} '{paths[1]}' --resamples 99" in text
    assert "b c.csv" in text
    assert main([*arguments[:3], "--report", str(tmp_path)]) == 2


def test_numbers_of_a_drawing():
    assert svg.ticks(0, 10) == [0, 5, 10]
    assert svg.ticks(-0.02, 0.02, 4) == [-0.02, 0, 0.02]
    assert svg.ticks(3, 3) == [3]
    assert [svg.number(value) for value in (1, 1.26, -3.04)] == ["1", "1.3", "-3"]


CONTRAST = """
(() => {
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(c)) return c;
    }
    return "rgb(255, 255, 255)";
  };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType == 3 && n.textContent.trim());
    if (!own || ["title", "desc", "STYLE"].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(e.closest("svg") ? style.fill : style.color), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.tagName + "." + (e.getAttribute("class") || "")];
  }
  return worst;
})()
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
@pytest.mark.filterwarnings("ignore:column 'city' of")
def test_as_a_browser_sees_it(differing, tmp_path):
    pages = [differing[2], tmp_path / "hostile.html", tmp_path / "small.html"]
    written(pages[1], hostile(60, 0), hostile(60, 1, shift=1.5), names=("n" * 400, HOSTILE))
    written(pages[2], np.zeros((1, 1)), np.ones((1, 1)), n_resamples=9)
    with Browser() as browser:
        for page in pages:
            for width, dark in ((390, False), (390, True), (320, False), (1400, True)):
                assert browser.open(page, width, dark) == []
                assert browser.run("document.documentElement.scrollWidth") <= width
                ratio, where = browser.run(CONTRAST)
                assert ratio >= 4.5, (where, ratio)  # WCAG, level AA
            assert browser.paper().startswith(b"%PDF")
