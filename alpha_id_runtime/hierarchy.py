"""The order of sibling codes: which one stands for a diagnosis whose detail was not said.

Holds: the rule that finds the unspecified child, as a pure function of codes and titles. Refuses: reading the
code table, filtering it, and anything that would invent a degree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_UNSPECIFIED = re.compile(
    # "mit nicht näher bezeichneten Komplikationen" says that there are some
    r"(?<!\bmit )(?<!\bmit sonstigen und )(?<!\bmit sonstigen oder )nicht näher bezeichnet"
    r"|ungenau bezeichnet"
    r"|ohne (?:nähere )?\w*angabe"  # "ohne Angabe einer hypertensiven Krise", "ohne Seitenangabe"
    r"|\bo\.\s?n\.\s?a\."  # ohne nähere Angabe
    r"|nicht als [^:;]*?bezeichnet"
    r"|weder als [^:;]*?bezeichnet"
    r"|nicht angegeben"
    r"|nicht spezifiziert"
)
_OTHER = re.compile(r"\bsonstige")


def says_unspecified(title: str) -> bool:
    """Return whether a title says that a detail was not said."""
    return _UNSPECIFIED.search(title.lower()) is not None


def unspecified_first(children: Sequence[tuple[str, str]]) -> list[str]:
    """Return the codes of siblings, the one that says least first.

    Rule (``coding.md``, "Which child is the unspecified one"): first the sibling whose title says so ("nicht
    näher bezeichnet", "ohne Angabe", "nicht als ... bezeichnet"), then the one ending in 9, then "sonstige",
    then the one ending in 8, then the order of the codes. Words that every sibling's title has, because the
    parent's title runs through all of them, say nothing and are not counted. Among several that say it, the
    later steps of the same rule decide: I21.9 comes before I21.3 (unspecified site).

    Args:
        children: (code, title) of the siblings, in any order.
    """
    said = {code: len(_UNSPECIFIED.findall(title.lower())) for code, title in children}
    other = {code: len(_OTHER.findall(title.lower())) for code, title in children}
    least_said = min(said.values(), default=0)
    least_other = min(other.values(), default=0)
    nobody_says = max(said.values(), default=0) == least_said

    def rank(code: str) -> tuple[bool, bool, bool, bool, str]:
        says = said[code] > least_said
        return (
            not says,
            # Where a sibling says it, another one that ends in 9 is something else (S02.49, several parts).
            not (code.endswith("9") and (says or nobody_says)),
            other[code] == least_other,
            not code.endswith("8"),
            code,
        )

    return sorted(said, key=rank)


def leaves_unspecified_first(
    code: str, children: Mapping[str, Iterable[str]], title: Callable[[str], str]
) -> list[str]:
    """Return the descendants of ``code`` that have no children, the unspecified branch first at every level.

    Args:
        code: where to start; without children it is not part of the answer, which is then empty.
        children: the codes right below a code; leaves may be left out.
        title: title of a code.
    """
    leaves: list[str] = []
    for child in unspecified_first([(c, title(c)) for c in children.get(code, ())]):
        below = leaves_unspecified_first(child, children, title)
        leaves.extend(below or [child])
    return leaves
