"""Which cases are drawn: eligibility, strata, exclusion of twins, repeatability, storage."""

import json
import random
from collections import Counter

import pytest
from evaluation_corpus import corpus, with_rows
from reference import SHARED, needs_shared

from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.evaluation.cases import (
    ListCase,
    allocate,
    cases_digest,
    cases_from_json,
    cases_to_json,
    draw_cases,
    held_out_rows,
)
from alpha_id_runtime.evaluation.gold import GoldList, GoldPhrase, load_gold
from alpha_id_runtime.evaluation.gold_cases import extraction_of, gold_cases, list_cases
from alpha_id_runtime.text import is_calibration, normalise, twin_key

KINDS = ("noise", "paraphrase", "held_out", "self")


@pytest.mark.parametrize("kind", KINDS)
def test_only_valid_billable_alpha_id_phrases_are_drawn(kind):
    """Titles, invalid phrases and phrases of codes that are not billable never become a case."""
    columns = corpus()
    cases = draw_cases(columns, kind, 10_000, 1)
    rows = [c.source_row for c in cases]
    assert len(rows) == len(set(rows)) > 100
    assert all(columns.origin[r] == "alpha_id" and columns.valid[r] and columns.billable[r] for r in rows)
    assert all(c.gold == (columns.icd_code[c.source_row],) for c in cases)


@pytest.mark.parametrize("kind", KINDS)
def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_entries(kind):
    """The same seed asks the same texts of a reordered corpus; another seed asks others."""
    columns = corpus()
    order = list(range(len(columns.text)))
    random.Random(0).shuffle(order)
    one, again, other = (
        [(c.id, c.text, c.gold, c.done) for c in draw_cases(view, kind, 40, seed)]
        for view, seed in ((columns, 1), (columns.reordered(order), 1), (columns, 2))
    )
    assert one == again
    assert one != other
    assert len(one) == 40


def test_an_added_entry_changes_no_other_case():
    """Errors of a case come from its own seed, so a new entry leaves those of the others as they are."""
    before = {c.id: c.text for c in draw_cases(corpus(), "noise", 10_000, 1)}
    more = with_rows(corpus(), ("Steinleiden der Galle", "alpha_id", "K80.2"))
    after = {c.id: c.text for c in draw_cases(more, "noise", 10_000, 1)}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_no_case_is_made_of_a_phrase_that_may_calibrate_a_ranking():
    """Whatever seed and kind, cases and calibration phrases share no set of words; a quarter calibrates."""
    columns = corpus()
    keys = {twin_key(norm) for norm in columns.norm}
    calibrating = {key for key in keys if is_calibration(key)}
    assert 0.15 < len(calibrating) / len(keys) < 0.35
    for seed in (1, 2):
        for kind in KINDS:
            drawn = {twin_key(columns.norm[c.source_row]) for c in draw_cases(columns, kind, 10_000, seed)}
            assert drawn
            assert not drawn & calibrating


def test_the_calibrating_quarter_is_frozen():
    """A ranking trained by one version is judged by the next: the partition must never move."""
    keys = ("fraktur klavikula", "arterielle hypertonie", "husten", "nstemi")
    assert [is_calibration(key) for key in keys] == [False, False, True, False]


def test_noise_and_paraphrase_never_ask_a_corpus_phrase():
    """Compared normalised, what is asked is new to the corpus; self-retrieval asks the phrase itself."""
    columns = corpus()
    norms = set(columns.norm)
    for kind in ("noise", "paraphrase"):
        cases = draw_cases(columns, kind, 100, 3)
        assert not norms & {normalise(c.text) for c in cases}
        assert all(c.done for c in cases)
    assert all(c.text == columns.text[c.source_row] for c in draw_cases(columns, "self", 50, 3))


def test_a_held_out_case_takes_its_twins_of_any_origin_along():
    """All rows with the same set of words are excluded, whatever their order, origin or code."""
    columns = with_rows(
        corpus(),
        ("Klavikula, Fraktur der", "inclusion", "S42.0"),
        ("Der Klavikula Fraktur", "title", "S42.1"),
    )
    cases = {c.text: c for c in draw_cases(columns, "held_out", 10_000, 1)}
    excluded = cases["Fraktur der Klavikula"].excluded_rows
    assert {columns.text[r] for r in excluded} == {
        "Fraktur der Klavikula",
        "Klavikula, Fraktur der",
        "Der Klavikula Fraktur",
    }
    for case in cases.values():
        key = twin_key(normalise(case.text))
        assert case.excluded_rows == {r for r, norm in enumerate(columns.norm) if twin_key(norm) == key}
    assert held_out_rows(cases.values()) >= excluded


def test_a_held_out_code_keeps_another_phrase():
    """An entry that is its code's only phrase, twins aside, cannot be held out."""
    columns = with_rows(corpus(), ("Schlüssels seines einziges Wort", "title", "B99"))
    cases = draw_cases(columns, "held_out", 10_000, 1)
    assert "B99" not in {c.gold[0] for c in cases}
    for case in cases:
        left = [r for r, code in enumerate(columns.icd_code) if code == case.gold[0]]
        assert set(left) - case.excluded_rows


def test_one_text_with_several_codes_is_one_case():
    """Rows with one normalised text are one entry, and every code of theirs is right."""
    columns = with_rows(corpus(), ("ARTERIELLE Hypertonie", "alpha_id", "I15.00"))
    cases = [
        c for c in draw_cases(columns, "self", 10_000, 1) if normalise(c.text) == "arterielle hypertonie"
    ]
    assert [(c.gold, c.accept) for c in cases] == [(("I10.90",), (("I15.00",),))]


def test_strata_get_their_share_with_a_floor():
    """A stratum gets its proportion, at least a quarter of an equal share, never more than it holds."""
    assert allocate({"a": 800, "b": 190, "c": 10}, 100) == {"a": 74, "b": 18, "c": 8}
    assert allocate({"a": 3, "b": 2}, 100) == {"a": 3, "b": 2}
    assert allocate({}, 5) == {}
    for n in range(0, 1010, 7):
        parts = allocate({"a": 700, "b": 250, "c": 30, "d": 1}, n)
        assert sum(parts.values()) == min(n, 981)
        assert parts["d"] <= 1


def test_cases_come_back_from_json_as_they_were():
    """The stored form keeps every field, and its digest tells one set of cases from another."""
    cases = [c for kind in KINDS for c in draw_cases(corpus(), kind, 20, 1)]
    again = cases_from_json(json.loads(json.dumps(cases_to_json(cases))))
    assert again == cases
    assert cases_digest(again) == cases_digest(cases) != cases_digest(cases[1:])


def test_a_stored_case_of_another_version_is_refused():
    """A missing field or an unknown kind is named, not guessed."""
    stored = cases_to_json(draw_cases(corpus(), "self", 1, 1))
    with pytest.raises(UsageError, match="Stored case 0"):
        cases_from_json([{**stored[0], "kind": "mystery"}])
    del stored[0]["done"]
    with pytest.raises(UsageError, match="done"):
        cases_from_json(stored)


def test_gold_cannot_be_drawn():
    """Gold is read from files; asking to draw it is wrong use."""
    with pytest.raises(UsageError, match="gold"):
        draw_cases(corpus(), "gold", 1, 1)


def test_a_gold_list_becomes_cases_line_by_line():
    """Codes, their equals, kinds and the mark of missing context reach the case."""
    phrases = (
        GoldPhrase("Arterielle Hypertonie", ("I10.90",), (("I10.00",),), context=True, kinds=("plain",)),
        GoldPhrase("ASS 100", (), (), kinds=("no_diagnosis",)),
    )
    (one,) = list_cases(
        [GoldList("gp-1", "gp", 2025, None, phrases, "gp.jsonl:1")], lambda code: f"of {code}"
    )
    assert isinstance(one, ListCase)
    first, second = gold_cases([one])
    assert (first.id, first.gold, first.accept) == ("gold-gp-1/0", ("I10.90",), (("I10.00",),))
    assert (first.done, first.chapter) == (("plain", "context"), "of I10.90")
    assert (second.gold, second.chapter) == ((), "")


def test_rows_of_a_tsv_with_one_phrase_are_one_case(tmp_path):
    """A phrase that a table names twice with two codes is asked once and has two gold codes."""
    table = tmp_path / "gold.tsv"
    table.write_text(
        "Fußulkus bei Diabetes\tE11.74\nFußulkus bei  Diabetes\tL97\nHusten\tR05\n", encoding="utf-8"
    )
    cases = gold_cases(list_cases(load_gold(table)))
    assert [(c.gold, c.accept) for c in cases] == [(("E11.74", "L97"), ((), ())), (("R05",), ((),))]
    assert extraction_of(load_gold(table)) is None


@pytest.mark.full
@needs_shared
def test_fifteen_hundred_cases_of_each_kind_come_from_a_full_edition():
    """A full alphabet yields 1,500 cases a kind, none of them a corpus phrase where it must not be."""
    lines = (SHARED / "full" / "icd10gm2023_alphaidse_edvtxt_20220930.txt").read_text("utf-8").splitlines()
    rows = [line.split("|") for line in lines]
    codes = [(r[2] or r[4]).rstrip("+!") for r in rows]
    texts = [r[7].strip() for r in rows]
    columns = type(corpus())(
        texts, [normalise(t) for t in texts], ["alpha_id"] * len(rows), [True] * len(rows), codes,
        [True] * len(rows), [c[0] for c in codes],
    )  # fmt: skip
    norms = set(columns.norm)
    for kind in KINDS:
        cases = draw_cases(columns, kind, 1500, 7)
        assert len({c.id for c in cases}) == 1500
        assert min(Counter(c.chapter for c in cases).values()) >= 6
        if kind in {"noise", "paraphrase"}:
            assert not norms & {normalise(c.text) for c in cases}
