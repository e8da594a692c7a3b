"""What is related to a suggestion: siblings, parent, other wordings, labelled as not mentioned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from alpha_id_runtime.model import Filter
from alpha_id_runtime.pipeline import Request
from alpha_id_runtime.text import normalise
from tests.command import alpha_id, answer

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import Related
    from alpha_id_runtime.pipeline import Suggester

TEXT = "Diabetes mellitus Typ 2\nGehirnschlag\nPneumonie\nLinksherzinsuffizienz"


def _related(suggester: Suggester, text: str, code: str, most: int = 3, **wanted: Any) -> list[Related]:
    found = suggester.suggest(text, related=most, wanted=Filter(**wanted)).suggestions
    (suggestion,) = [each for each in found if each.icd_code == code]
    assert suggestion.related is not None
    return list(suggestion.related)


def _codes(related: list[Related], relation: str) -> list[str]:
    return [each.icd_code for each in related if each.relation == relation]


def test_related_changes_nothing_and_stands_only_where_asked_for(sample: Suggester) -> None:
    """The same list and scores, with one more field a suggestion."""
    asked, unasked = (json.loads(json.dumps(sample.suggest(TEXT, related=n).to_dict())) for n in (2, 0))

    assert all("related" not in each for each in unasked["suggestions"])
    for each in asked["suggestions"]:
        for related in each.pop("related"):
            assert related["mentioned"] is False
            assert related["relation"] in ("sibling", "parent", "wording")
    assert asked["suggestions"] == unasked["suggestions"]


@pytest.mark.full
def test_the_nearest_siblings_that_are_not_in_the_list(full: Suggester) -> None:
    """Terminal and assigned, N of them, nearest in the classification first."""
    result = full.suggest("I50.13", related=2, top=1).suggestions[0]
    assert _codes(list(result.related or ()), "sibling") == ["I50.12", "I50.14"]

    both = full.suggest("I50.13\nI50.12", related=2).suggestions
    for each in both:
        assert not {"I50.12", "I50.13"} & set(_codes(list(each.related or ()), "sibling"))


@pytest.mark.full
def test_no_sibling_is_a_placeholder_or_subdivided(full: Suggester) -> None:
    """Whatever the code: a sibling is a code that could be suggested itself."""
    result = full.suggest("U07.1\nU13.1\nE11.90\nI50.13\nA09.0\nJ18.9", related=50)

    for each in result.suggestions:
        for sibling in _codes(list(each.related or ()), "sibling"):
            assert full.build.codes.is_terminal(sibling)
            assert full.build.codes.has_content(sibling)
            assert full.build.codes.parent(sibling) == full.build.codes.parent(each.icd_code)


@pytest.mark.full
def test_the_parent_is_the_class_right_above(full: Suggester) -> None:
    """A subdivided code, or the block of a category."""
    for code, parent in (("I50.13", "I50.1"), ("J18.9", "J18"), ("I64", "I60-I69")):
        (related,) = [each for each in _related(full, code, code) if each.relation == "parent"]
        assert (related.icd_code, related.description) == (parent, full.build.codes.title(parent))


@pytest.mark.full
def test_other_wordings_are_phrases_of_the_code(full: Suggester) -> None:
    """Up to N, none that is shown already, none twice however it is spelled, each with its Alpha-ID."""
    suggestion = full.suggest("Gehirnschlag", related=5).suggestions[0]
    wordings = [each for each in suggestion.related or () if each.relation == "wording"]

    assert len(wordings) == 5
    spelled = [normalise(each.description) for each in wordings]
    assert len({*spelled, normalise(suggestion.matched_phrase), normalise(suggestion.description)}) == 7
    texts = full.build.phrases.texts(full.build.phrases.rows_of(suggestion.icd_code).tolist())
    assert {each.description for each in wordings} <= set(texts)
    assert all(each.icd_code == suggestion.icd_code for each in wordings)


@pytest.mark.full
@pytest.mark.parametrize(
    "wanted",
    [
        {"billable_only": True, "sector": "ambulant"},
        {"prefix": ("E11.9", "I64", "J18.9", "I50.1")},
        {"exclude_exotic": True},
        {"sex": "m", "age": "45"},
    ],
)
def test_filters_hold_for_what_is_related(full: Suggester, wanted: dict[str, Any]) -> None:
    """What would not pass is no impulse either; nor is what is in conflict with the patient."""
    result = full.suggest(TEXT, related=20, top=4, wanted=Filter(**wanted))
    siblings = [
        r.icd_code for each in result.suggestions for r in each.related or () if r.relation == "sibling"
    ]

    assert siblings
    for code in siblings:
        tags = full.build.codes.tags(code, valid=True)
        assert tags.billable_ambulant or not wanted.get("billable_only")
        assert code.startswith(wanted.get("prefix", ""))
        assert not (tags.exotic and wanted.get("exclude_exotic"))
        assert not (tags.sex == "w" and wanted.get("sex"))


@pytest.mark.full
def test_no_parent_where_only_billable_codes_are_wanted(full: Suggester) -> None:
    """A parent is never billable."""
    assert _codes(_related(full, "I50.13", "I50.13", billable_only=True), "parent") == []


@pytest.mark.full
def test_rows_that_must_not_be_seen_are_not_shown(full: Suggester) -> None:
    """What an evaluation holds out is no wording either."""
    rows = full.build.phrases.rows_of("I64")
    held_out = frozenset(rows[5:].tolist())
    (result,) = full.suggest_many([Request("I64", excluded_rows=held_out, related=1000)])
    shown = {each.description for each in result.suggestions[0].related or () if each.relation == "wording"}

    assert shown
    assert not shown - set(full.build.phrases.texts(rows[:5].tolist()))


def test_related_on_the_command_line(sample_storage: Path) -> None:
    """A field of the JSON; in the table under a label that says what it is."""
    place = ["suggest", "--storage", sample_storage, "--mode", "c", "--related", "2"]
    plain = answer(*place, "--each", stdin="Gehirnschlag\nPneumonie")
    assert all(each["related"] for one in plain for each in one["suggestions"][:1])

    table = alpha_id(*place, "--table", stdin=b"Pneumonie").stdout.decode()
    assert "related, not mentioned:" in table
    assert alpha_id("suggest", "--related", "-1").returncode == 2
