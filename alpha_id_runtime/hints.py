"""What several lines say together, in words and never as a code. Pure.

Holds: multiple complications of diabetes (E10-E14). Refuses: deriving a code from several lines; a line's own
words stand for its codes, whether two lines belong together a person decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_runtime.assembly import PhraseHits
    from alpha_id_runtime.codes import CodeTable

_DIABETES = ("E10", "E11", "E12", "E13", "E14")
# Fourth digits that name one complication of the long course: kidney, eye, nerve, vessels, other.
_SINGLE = "23456"
_MULTIPLE = "7"


def hints_of(phrases: Sequence[PhraseHits], codes: CodeTable) -> tuple[str, ...]:
    """Return what a coder should look at, a sentence or two each, in the order of the categories.

    Where the best hits of different lines name different single complications of one category, the
    classification has a code for several (E1x.7-). What a line says to be excluded does not count. Different
    categories are different types of diabetes and are not joined: E14 says that the type was not said, not
    that it is the other line's. Nothing is said where a line names E1x.7- itself.

    Source: ICD-10-GM, fourth digits of E10-E14.
    """
    found: dict[str, dict[str, set[int]]] = {}
    for phrase in phrases:
        best = phrase.hits[0]
        category, digit = best.code[:3], best.code[4:5]
        if category in _DIABETES and best.certainty != "A" and digit in (*_SINGLE, _MULTIPLE):
            found.setdefault(category, {}).setdefault(digit, set()).add(phrase.segment.index)
    return tuple(
        _multiple(category, digits, codes)
        for category, digits in sorted(found.items())
        if len(digits) > 1 and _MULTIPLE not in digits and f"{category}.{_MULTIPLE}" in codes
    )


def _multiple(category: str, digits: dict[str, set[int]], codes: CodeTable) -> str:
    """Return the hint; the last digit, for foot syndrome and derailment, is left to who reads it."""
    lines = sorted(set().union(*digits.values()))
    named = ", ".join(f"{category}.{digit}-" for digit in sorted(digits))
    multiple = f"{category}.{_MULTIPLE}"
    return (
        f"Lines {_listed(lines)} name different complications of one kind of diabetes ({named}). Where they "
        f"are one patient's, {multiple}- ({codes.title(multiple)}) may take their place; its last digit says "
        "whether there is a diabetic foot syndrome and whether the diabetes is derailed. No code was derived "
        "from several lines."
    )


def _listed(lines: Sequence[int]) -> str:
    *first, last = map(str, lines)
    return f"{', '.join(first)} and {last}"
