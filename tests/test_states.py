"""What a line says of time and side, over the full-size build of mode C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
