"""Where the classification itself puts a disease that lies behind, by the ranges its inclusion terms name.

Holds: "Zustände, klassifizierbar unter J00-J99" under Z87.0 and "Folgen einer Verletzung, die unter S72.-
klassifizierbar ist" under T93.1, read from the corpus of a build. Refuses: histories of the family (Z80-Z84),
and telling whether something lies behind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from alpha_id_runtime.corpus import PhraseTable

_SAYS = "klassifizierbar"
_OWN = ("Z85", "Z86", "Z87", *(f"T{number}" for number in range(90, 99)))
_RANGE = re.compile(r"\b([A-Z]\d{2}(?:\.\d)?)(?:\.?-(?![A-Z]))?(?:-([A-Z]\d{2}(?:\.\d)?))?")


class _Range(NamedTuple):
    """Codes from ``low`` to the last below ``high``, and the code of their history or sequel."""

    low: str
    high: str
    code: str


class Histories:
    """The ranges of one build; a corpus without such inclusion terms has none."""

    def __init__(self, phrases: PhraseTable) -> None:
        """Read the ranges from the phrases that name one."""
        rows = phrases.rows_saying(_SAYS)
        self._ranges = tuple(
            _Range(match[1], match[2] or match[1], code)
            for text, code in zip(phrases.texts(rows.tolist()), phrases.codes_of(rows), strict=True)
            if code.startswith(_OWN)
            for match in _RANGE.finditer(text)
        )

    def of(self, code: str) -> tuple[str, ...]:
        """Return the codes for what lies behind when ``code`` does, in the order of the corpus."""
        return tuple(
            dict.fromkeys(
                each.code for each in self._ranges if each.low <= code and code[: len(each.high)] <= each.high
            )
        )
