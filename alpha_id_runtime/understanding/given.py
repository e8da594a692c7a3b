"""ICD codes that stand in a line already, with the letters for certainty and side behind them.

Holds: finding and taking off such codes. Refuses: whether a code exists (that is the code table's business).
Vitamin B12, vertebrae (C5/C6, L4/5, Th12, S1), TNM (T2) and HbA1c look alike and are left alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, cast

from alpha_id_runtime.understanding.tables import LazyPattern

if TYPE_CHECKING:
    from alpha_id_runtime.model import Certainty, Laterality

_CODE = LazyPattern(
    r"(?<![\w./+-])(?:ICD(?:[\s-]?10)?(?:[\s-]?GM)?\s*:?\s*)?"
    r"(?P<category>[A-Za-z]\d{2})(?P<rest>\.(?:\d{1,2}|\d?[-–x])|\.(?=\s*(?:$|[),;])))?(?P<mark>[+*!†#])?"
    r"(?:\s?(?P<first>[GVAZRLB])(?:\s?(?P<second>[GVAZRLB]))?(?![\w.:-]))?"
    r"(?![\w/-])"
)
_NOT_BEFORE = LazyPattern(
    r"(?:vitamin|vit\.?|coenzym|virus|viren|hla|cd|typ|stadium|gruppe|faktor|komponente|serotyp|genotyp|protein"
    r"|zimmer|station|bett|mutation|exon|[hbl]wk|segment|höhe|th|ebene|nr\.?|ca|position)[\s:.-]*$",
    re.IGNORECASE,
)
_SPINE = LazyPattern(
    r"wirbel|bandscheib|prolaps|protrus|bsv|npp|radikul|spinal|listhes|segment|[hbl]wk|[hbl]ws|fraktur",
    re.IGNORECASE,
)
_VITAMIN = LazyPattern(r"^[\s-]*(?:mangel|hypovit|defizit|substitution|spritze|infektion)", re.IGNORECASE)
_CHROMOSOME = LazyPattern(r"\b(?:t|del|inv|dup)\s?\(\d")
_SEPARATED = LazyPattern(r"(?:^|[,;:()\[\]|=–-])\s*$")
_ENDED = LazyPattern(r"^\s*(?:$|[,;:.()\[\]|])")
_DIGIT = LazyPattern(r"\d")


class Given(NamedTuple):
    """Codes found and the text without them. A letter is None where none stood behind a code."""

    codes: tuple[str, ...]
    text: str
    certainty: Certainty | None
    laterality: Laterality | None


def take_codes(text: str) -> Given:
    """Return the ICD codes in ``text``, in capitals, without mark and ``.-``, and the text without them."""
    if not _DIGIT().search(text):
        return Given((), text, None, None)
    codes: list[str] = []
    kept: list[str] = []
    certainty: str | None = None
    side: str | None = None
    last = 0
    for match in _CODE().finditer(text):
        if not _is_code(text, match):
            continue
        rest = (match["rest"] or "").strip(".-–x")
        codes.append(match["category"].upper() + (f".{rest}" if rest else ""))
        for letter in filter(None, (match["first"], match["second"])):
            certainty = certainty or (letter if letter in "GVAZ" else None)
            side = side or (letter if letter in "RLB" else None)
        kept.append(text[last : match.start()])
        last = match.end()
    kept.append(text[last:])
    return Given(
        tuple(dict.fromkeys(codes)),
        " ".join(kept) if codes else text,
        cast("Certainty | None", certainty),
        cast("Laterality | None", side),
    )


def _is_code(text: str, match: re.Match[str]) -> bool:
    before, after = text[: match.start()], text[match.end() :]
    chromosome = match["category"][0] in "pq" and _CHROMOSOME().search(text)
    if chromosome or _NOT_BEFORE().search(before) or _VITAMIN().match(after):
        return False
    if match["rest"]:
        return True
    separated = _SEPARATED().search(before) is not None
    if not match["category"][0].isupper():
        return separated and _ENDED().match(after) is not None
    if separated and (before.strip() or _ENDED().match(after) or match["mark"]):
        return True
    if match["category"][0] in "CLST" and _SPINE().search(text):
        return False
    return separated or _ENDED().match(after) is not None
