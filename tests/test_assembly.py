"""The one list: places, those left without, order, ties, origins."""

from __future__ import annotations

from typing import Any

from alpha_id_runtime.assembly import CodeHit, PhraseHits, assemble
from alpha_id_runtime.model import Complement, Entry, Segment, Suggestion
from tests.code_table import code_table

CODES = code_table(
    {f"E{number}.9": {} for number in range(10, 40)}
    | {"B96.2": {"usage": "optional"}, "G63.2": {"usage": "aster"}, "A01.0": {}, "A02.0": {}}
)


def _phrase(index: int, *hits: tuple[str, float] | tuple[str, float, tuple[str, ...]]) -> PhraseHits:
    """Return a phrase with (code, score, conflict) by score; each hit has a row of its own."""
    made = [
        CodeHit(code, 1000 * index + row, score, *conflict)  # type: ignore[arg-type]
        for row, (code, score, *conflict) in enumerate(hits)
    ]
    return PhraseHits(Segment(index, f"Zeile {index}"), tuple(made))


def _assemble(
    *phrases: PhraseHits, top: int = 10, **of_entries: Any
) -> tuple[tuple[Suggestion, ...], tuple[int, ...]]:
    plain = {
        "origin": "alpha_id",
        "valid": True,
        "orpha": None,
        "secondary_only": False,
        "edition_gap": False,
        "gap_rank": 0,
        "complements": (),
    } | of_entries
    entries = {
        hit.row: Entry(
            row=hit.row, text=f"Text {hit.row}", alpha_id=f"I{hit.row}", icd_code=hit.code, **plain
        )
        for phrase in phrases
        for hit in phrase.hits
    }
    return assemble(phrases, top, CODES, entries)


def _codes(suggestions: tuple[Suggestion, ...]) -> list[str]:
    return [each.icd_code for each in suggestions]


def test_every_phrase_has_its_best_code_in_the_list_before_any_has_a_second() -> None:
    """A phrase of ten strong candidates does not crowd out a phrase of one weak one."""
    strong = _phrase(0, *[(f"E{10 + n}.9", 0.9 - n / 100) for n in range(10)])
    weak = _phrase(1, ("A01.0", 0.1))
    suggestions, unrepresented = _assemble(strong, weak)

    assert _codes(suggestions) == [f"E{10 + n}.9" for n in range(9)] + ["A01.0"]
    assert unrepresented == ()


def test_more_phrases_than_places_leave_the_worst_ones_named() -> None:
    """The better scored win, then the earlier; the others are told, not lost in silence."""
    phrases = [_phrase(n, (f"E{10 + n}.9", 0.5 + n / 100), ("A01.0", 0.4)) for n in range(13)]
    suggestions, unrepresented = _assemble(*phrases)

    assert _codes(suggestions) == [f"E{10 + n}.9" for n in range(12, 2, -1)]
    assert unrepresented == (0, 1, 2)

    equal = [_phrase(n, (f"E{10 + n}.9", 0.5)) for n in range(4)]
    assert _assemble(*equal, top=3)[1] == (3,)


def test_a_phrase_is_without_a_place_though_a_lesser_code_of_its_own_is_listed() -> None:
    """Its diagnosis is not in the list: a weak candidate shared with another line is no stand-in."""
    suggestions, unrepresented = _assemble(
        _phrase(0, ("E10.9", 0.9)), _phrase(1, ("E11.9", 0.5), ("E10.9", 0.2)), top=1
    )

    assert _codes(suggestions) == ["E10.9"]
    assert unrepresented == (1,)


def test_one_code_is_one_entry_with_all_lines_it_came_from() -> None:
    """The best line's entry wins; each origin keeps its own phrase, text and score."""
    [suggestion], unrepresented = _assemble(
        _phrase(0, ("E10.9", 0.5)), _phrase(2, ("E10.9", 0.75)), _phrase(3, ("E10.9", 0.5))
    )

    assert (suggestion.score, suggestion.matched_phrase, suggestion.alpha_id) == (0.75, "Text 2000", "I2000")
    assert suggestion.source_segments == (0, 2, 3)
    assert [(o.segment, o.phrase, o.matched_phrase, o.score) for o in suggestion.origins] == [
        (2, "Zeile 2", "Text 2000", 0.75),
        (0, "Zeile 0", "Text 0", 0.5),
        (3, "Zeile 3", "Text 3000", 0.5),
    ]
    assert unrepresented == ()


def test_a_code_already_placed_takes_no_second_place() -> None:
    """Two lines of one diagnosis leave nine places to others."""
    first = _phrase(0, *[(f"E{10 + n}.9", 0.9 - n / 100) for n in range(10)])
    again = _phrase(1, *[(f"E{10 + n}.9", 0.8 - n / 100) for n in range(10)])

    assert len(_assemble(first, again)[0]) == 10


def test_the_list_goes_by_score_then_number_of_phrases_then_code() -> None:
    """The score of a code is the best over its phrases."""
    suggestions, _ = _assemble(
        _phrase(0, ("E12.9", 0.7), ("A02.0", 0.5), ("A01.0", 0.5)),
        _phrase(1, ("E11.9", 0.9), ("E13.9", 0.7)),
        _phrase(2, ("E13.9", 0.6), ("E12.9", 0.6)),
        _phrase(3, ("E13.9", 0.6)),
    )

    assert _codes(suggestions) == ["E11.9", "E13.9", "E12.9", "A01.0", "A02.0"]


def test_what_is_in_conflict_stands_below_all_that_is_not() -> None:
    """Whatever its score; it keeps its place and its mark."""
    suggestions, unrepresented = _assemble(
        _phrase(0, ("E10.9", 1.0, ("sex",)), ("E11.9", 0.3)), _phrase(1, ("E12.9", 0.1)), top=3
    )

    assert [(each.icd_code, each.conflict) for each in suggestions] == [
        ("E11.9", ()),
        ("E12.9", ()),
        ("E10.9", ("sex",)),
    ]
    assert unrepresented == ()


def test_complements_are_named_and_take_no_place() -> None:
    """Of the winning phrase, with the titles of their codes."""
    partners = (
        Complement("G63.2", "aster"),
        Complement("B96.2", "optional"),
        Complement("A01.0", "second_primary"),
    )
    [suggestion], _ = _assemble(_phrase(0, ("E10.9", 0.5)), top=1, complements=partners)

    assert [(each.icd_code, each.usage, each.description) for each in suggestion.complements] == [
        ("G63.2", "aster", "Titel von G63.2"),
        ("B96.2", "optional", "Titel von B96.2"),
        ("A01.0", "second_primary", "Titel von A01.0"),
    ]


def test_a_code_that_never_stands_alone_says_so() -> None:
    """Aster and addon codes, whatever the entry."""
    suggestions, _ = _assemble(_phrase(0, ("G63.2", 0.9), ("B96.2", 0.8), ("E10.9", 0.7)))

    assert [(each.icd_code, each.secondary_only) for each in suggestions] == [
        ("G63.2", True),
        ("B96.2", True),
        ("E10.9", False),
    ]


def test_no_phrase_gives_an_empty_list() -> None:
    """And nobody is left out."""
    assert _assemble() == ((), ())
    assert _assemble(PhraseHits(Segment(0, "x"), ())) == ((), ())


def test_a_code_far_down_anothers_candidates_is_not_said_to_come_from_there():
    """Only the phrase that speaks for a code is named as its source, not one that it merely resembles."""
    suggestions, _ = _assemble(_phrase(0, ("E11.9", 0.9)), _phrase(1, ("E13.9", 0.9), ("E11.9", 0.3)), top=10)
    assert {each.icd_code: each.source_segments for each in suggestions} == {"E11.9": (0,), "E13.9": (1,)}
