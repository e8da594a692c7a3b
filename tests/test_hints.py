"""Hints across lines: several complications of one diabetes, in words and never as a code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alpha_id_runtime.model import Filter

if TYPE_CHECKING:
    from alpha_id_runtime.pipeline import Suggester

NEPHROPATHY = "Diabetes mellitus Typ 2 mit Nephropathie"
RETINOPATHY = "Diabetes mellitus Typ 2 mit diabetischer Retinopathie"


def _hints(suggester: Suggester, *lines: str) -> tuple[str, ...]:
    return suggester.suggest("\n".join(lines)).diagnostics.hints


@pytest.mark.full
def test_different_complications_of_one_diabetes_give_a_hint(full: Suggester) -> None:
    """It names the lines, what they say, and the code for several, with its title; no list changes by it."""
    result = full.suggest(f"Hypertonie\n{NEPHROPATHY}\n{RETINOPATHY}")
    (hint,) = result.diagnostics.hints

    for part in ("1 and 2", "E11.2-", "E11.3-", "E11.7-", "multiplen Komplikationen"):
        assert part in hint
    assert not any(each.icd_code.startswith("E11.7") for each in result.suggestions)


@pytest.mark.full
@pytest.mark.parametrize(
    "lines",
    [
        ("E11.20", "E11.31"),  # derailed or not is another digit
        ("E11.21", "E11.31", "E11.40"),
        ("E10.50", "E10.60"),
        ("E14.30", "E14.40"),  # no type said in either
        (f"V. a. {NEPHROPATHY}", RETINOPATHY),  # suspected: a person decides
    ],
)
def test_what_counts(full: Suggester, lines: tuple[str, ...]) -> None:
    """Different fourth digits .2 to .6 of one category, whatever the fifth."""
    assert len(_hints(full, *lines)) == 1


@pytest.mark.full
@pytest.mark.parametrize(
    "lines",
    [
        (f"{NEPHROPATHY}, {RETINOPATHY}",),  # one line says it itself
        ("E11.20 E11.30",),
        ("E11.20", "E11.21"),  # the same complication
        ("E11.20", "E11.90"),  # no complication
        ("E11.20", "E11.01"),  # coma is no complication of the long course
        ("E11.20", "E14.30"),  # another line's type is not this one's
        ("E10.20", "E11.30"),
        (f"{NEPHROPATHY} ausgeschlossen", RETINOPATHY),
        ("E11.20", "E11.30", "E11.72"),  # a line names it already
        ("Gehirnschlag", "Pneumonie"),
        (),
    ],
)
def test_what_does_not_count(full: Suggester, lines: tuple[str, ...]) -> None:
    """No hint where lines say one thing, different diabetes, nothing of the kind, or the code itself."""
    assert _hints(full, *lines) == ()


@pytest.mark.full
def test_one_hint_a_category(full: Suggester) -> None:
    """In the order of the classification."""
    hints = _hints(full, "E11.20", "E10.30", "E11.40", "E10.50")

    assert [("E10.7-" in hint, "E11.7-" in hint) for hint in hints] == [(True, False), (False, True)]


@pytest.mark.full
def test_each_line_for_itself_gives_no_hint(full: Suggester) -> None:
    """A hint across lines needs one answer for all of them."""
    for _, result in full.suggest_each(f"{NEPHROPATHY}\n{RETINOPATHY}"):
        assert result.diagnostics.hints == ()


@pytest.mark.full
def test_a_hint_speaks_of_what_passes_the_filters(full: Suggester) -> None:
    """What a filter leaves out is nobody's best hit."""
    result = full.suggest("E11.20\nE11.30", wanted=Filter(prefix=("E11.2",)))
    assert result.diagnostics.hints == ()
