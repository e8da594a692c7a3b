"""What a line says of time and side, over the full-size build of mode C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alpha_id_runtime.lexical_ranking import TWIN_SCORE
from alpha_id_runtime.understanding import understand

if TYPE_CHECKING:
    from alpha_id_runtime.pipeline import Suggester


def codes(full: Suggester, line: str) -> list[str]:
    """Return the codes for a line, best first."""
    return [each.icd_code for each in full.suggest(line).suggestions]


@pytest.mark.full
@pytest.mark.parametrize("line", ["Zustand nach Herzinfarkt", "Z.n. Schlaganfall", "Brustkrebs vor 4 Jahren"])
def test_what_lies_behind_stands_beside_the_disease_itself(full, line):
    """A code for what lies behind stands in the list where there is one, and the disease's own beside it."""
    found = codes(full, line)
    assert any(code.startswith(("I25.2", "I69", "Z85", "Z86")) for code in found)
    assert any(code.startswith(("I21", "I64", "C50")) for code in found)


@pytest.mark.full
def test_a_name_for_what_lies_behind_leads(full):
    """Where the corpus has a word for the old disease, it comes before the disease itself."""
    found = codes(full, "Zustand nach Herzinfarkt")
    assert found.index("I25.29") < found.index("I21.9")


@pytest.mark.full
def test_a_disease_without_such_a_code_keeps_its_own(full):
    """Nothing is invented: what has no code of history is found as it is."""
    assert codes(full, "Z.n. Hörsturz")[0] == codes(full, "Hörsturz")[0]


def test_long_known_is_not_past():
    """Since or before when a disease is known says nothing of its end."""
    for line in ("Asthma bronchiale vor 20 Jahren diagnostiziert", "Psoriasis seit 3 Jahren"):
        reading = understand(line)
        assert not reading.past
        assert "Jahren" not in reading.core
        assert "diagnostiziert" not in reading.core
    assert understand("Hirnblutung vor drei Monaten").past
    assert understand("Z.n. Hirnblutung").past


@pytest.mark.full
def test_the_sibling_of_the_side_said_leads(full):
    """Both sides said, both sides meant; one side said, the bilateral sibling steps back."""
    assert codes(full, "Leistenbruch bds.")[0] == "K40.20"
    assert codes(full, "Schenkelhernie beidseits")[0] == "K41.20"
    assert codes(full, "Leistenbruch rechts")[0] == "K40.90"


@pytest.mark.full
def test_a_degree_that_is_a_code_of_its_own_leads_its_siblings(full):
    """Named by itself, however inflected, the grade is the code."""
    found = codes(full, "hepatischen Enzephalopathie dritten Grades")
    assert next(code for code in found if code.startswith("K72.7")) == "K72.73"


def test_weeks_ago_and_long_words_are_not_past():
    """What was weeks ago is the disease itself; "vor allem" and "vor der Regel" say no time."""
    for line in (
        "Herzinfarkt vor 2 Wochen",
        "Bauchschmerzen vor der Regel monatlich",
        "Husten, vor allem nachts seit drei Monaten",
        "Sturz vor 3 Jahren auf die Hüfte, jetzt Hüftschmerz",
    ):
        assert not understand(line).past, line


@pytest.mark.full
def test_what_is_merely_alike_stays_below_what_is_the_same(full):
    """A history raises codes, but none to the score of an exact match."""
    scores = [each.score for each in full.suggest("Z.n. Nierentransplantation").suggestions]
    assert max(scores) <= TWIN_SCORE


@pytest.mark.full
def test_both_sides_said_never_change_the_disease(full):
    """The bilateral code of another disease in the category does not overtake the exact entry."""
    assert codes(full, "Hüftdysplasie bds.")[0] == "Q65.8"


@pytest.mark.full
def test_the_frame_alone_is_no_match(full):
    """Where the corpus knows nothing of what was had, what shares only "in the history" stays low."""
    assert all(each.score < 0.6 for each in full.suggest("Z.n. Zwrfk").suggestions)


@pytest.mark.full
def test_a_degree_said_comes_before_a_code_without_one(full):
    """The unspecified disease of another category steps back behind the stage that was said."""
    assert codes(full, "Niereninsuffizienz Stadium IV")[0] == "N18.4"
