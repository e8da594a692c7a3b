"""What is shown: the table, the JSON file, the page that stands alone, and the warning when figures fall."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from alpha_id_runtime.evaluation.cases import Case, ListCase, cases_from_json
from alpha_id_runtime.evaluation.measures import LEADING, MEASURES, Answer, Offered
from alpha_id_runtime.evaluation.page import render_page
from alpha_id_runtime.evaluation.report import fallen, interval, leading_figures, terminal_table, to_json
from alpha_id_runtime.evaluation.result import Extraction
from alpha_id_runtime.evaluation.runner import Knowledge, evaluate

HOSTILE = '<script src="http://example.org/x.js">alert(1)</script>'


def ranker(wrong: set[str]):
    """Return a ranker that is right but for the cases named."""

    def answers(requests):
        return [
            Answer(
                q.case_id,
                (
                    Offered("X99" if q.case_id in wrong else "A01.0", (), 0.8, "title"),
                    Offered("A01.1", (), 0.1, "alpha_id"),
                ),
                seconds=0.002,
            )
            for q in requests
        ]

    return answers


def run(wrong_c=frozenset({"held_out-1", "held_out-2", "noise-1"}), wrong_a=frozenset({"held_out-1"})):
    """Return a small evaluation of all kinds in both modes."""
    cases = [
        Case(
            f"{kind}-{i}",
            kind,
            HOSTILE if i == 1 else f"Phrase {i}",
            ("A01.0",),
            done=("homophone:f>v",),
            chapter="I",
        )
        for kind in ("held_out", "noise", "paraphrase", "self")
        for i in range(12)
    ]
    lines = (
        Case("gold-l/0", "gold", "Typhus", ("A01.0",), chapter="I"),
        Case("gold-l/1", "gold", "EKG o.B.", ()),
    )
    return evaluate(
        {"c": ranker(wrong_c), "a": ranker(wrong_a)},
        [*cases, *lines],
        seed=4,
        lists=[ListCase("gold-l", lines)],
        knowledge=Knowledge(phrases={"A01.0": 3}),
        extraction=Extraction(9, 10),
        provenance={
            "build": "b17d",
            "editions": {"alpha_id": "2026", "claml": "2026"},
            "configuration": HOSTILE,
        },
    )


@pytest.fixture(scope="module")
def result():
    """Return one evaluation for all tests that only read it."""
    return run()


def test_the_table_puts_modes_side_by_side_with_intervals(result):
    """Held out comes first, all measures stand with both modes and their difference, in 110 columns."""
    table = terminal_table(result)
    assert max(map(len, table.splitlines())) <= 110
    assert table.index("Held out") < table.index("Noise") < table.index("Self-retrieval (inflated")
    row = next(line for line in table.splitlines() if line.startswith(LEADING))
    assert row.split()[1] == "0.833"
    assert row.count("[") == 3
    assert "+0.083" in row
    assert all(measure in table for measure in MEASURES)
    assert "C 0.520, A 0.995" in table
    assert "Extraction ceiling: 9 of 10" in table


def test_json_holds_the_cases_and_every_figure(result):
    """The stored file gives the cases back and holds each block, difference, list and cost."""
    stored = json.loads(to_json(result))
    assert cases_from_json(stored["cases"]) == list(result.cases)
    assert {(b["kind"], b["mode"]) for b in stored["blocks"]} == {(b.kind, b.mode) for b in result.blocks}
    assert stored["seed"] == 4
    assert stored["extraction"] == {"found": 9, "total": 10}
    assert len(stored["differences"]) == 5 * len(MEASURES)
    assert stored["lists"][0]["omissions"]


class Outline(HTMLParser):
    """Collects tags, what they refer to, and the text."""

    def __init__(self, page: str) -> None:
        """Parse the page."""
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Note the tag, what it refers to, and that it is open."""
        self.tags.append(tag)
        if tag not in {"meta", "col", "br", "line", "rect", "circle", "polyline"}:
            self.open.append(tag)
        self.references += [v or "" for k, v in attrs if k in {"src", "href", "action", "data", "srcset"}]

    def handle_endtag(self, tag):
        """Close the innermost tag if it is this one."""
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        """Collect the text."""
        self.text += data


def test_the_page_stands_alone(result):
    """No script, no link, no outside file, and every tag is closed."""
    page = render_page(result)
    outline = Outline(page)
    assert not {"script", "link", "img", "iframe", "a", "object"} & set(outline.tags)
    assert not outline.references
    assert not re.search(
        r"url\(|@import|https?:", page.replace("http://example.org", "").replace("&quot;", "")
    )
    assert outline.open == []
    assert "svg" in outline.tags


def test_the_page_says_what_it_must(result):
    """All parts that a reader decides by are there, in words."""
    text = Outline(render_page(result)).text
    for words in (
        "A minus C", "C against A, all measures", "Extraction ceiling 0.900", "Matcher recall",
        "Expected calibration error", "What this does not measure", "The worst misses", "By chapter",
        "inflated", "By what was done", "By length", "By phrases of the code",
        "By origin of the winning phrase", "hub calls", "EUR", "degraded", "p95", "b17d", "2026", "seed 4",
        "Lines that an extractor forgets", "0.520", "X99 (0.80), A01.1 (0.10)", "without a diagnosis",
    ):  # fmt: skip
        assert words in text, words


def test_texts_are_shown_and_never_run(result):
    """A phrase or a setting that looks like markup is text."""
    page = render_page(result)
    assert "<script" not in page
    assert HOSTILE in Outline(page).text


def test_one_mode_alone_and_no_gold_make_a_page_too():
    """What was not run is left out, not shown as zero."""
    result = evaluate({"c": ranker(set())}, [Case("noise-1", "noise", "x", ("A01.0",))], seed=1)
    text = Outline(render_page(result)).text
    assert "A minus C" not in text
    assert "Extraction" not in text
    assert "A minus C" not in terminal_table(result)
    assert Outline(render_page(evaluate({}, [], seed=1))).text


def test_leading_figures_are_numbers_with_names(result):
    """What is plotted over time is flat, and holds each kind and mode."""
    figures = leading_figures(result)
    assert figures[f"held_out c {LEADING}"] == pytest.approx(10 / 12)
    assert figures["lists a recall in ten"] == 1
    assert all(isinstance(value, float) for value in figures.values())


def test_a_fall_below_the_last_interval_is_told():
    """Equal reports are silent; a mode that misses nearly all is named, the other is not."""
    before = run().to_dict()
    assert fallen(run(), before) == []
    worse = run(wrong_a=frozenset(f"held_out-{i}" for i in range(11)))
    (sentence,) = fallen(worse, before)
    assert "mode A on held_out" in sentence
    assert "0.917" in sentence


def test_reports_on_other_cases_are_not_compared():
    """Another draw or another schema says nothing about a fall."""
    worse = run(wrong_a=frozenset(f"held_out-{i}" for i in range(11)))
    before = run().to_dict()
    assert fallen(replace(worse, cases=worse.cases[1:]), before) == []
    assert fallen(worse, {**before, "schema": -1}) == []
    assert fallen(worse, {}) == []


def test_a_missing_figure_is_a_dash():
    """No cases, no number."""
    assert interval(None) == "-"
