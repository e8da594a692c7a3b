"""A line parted where each part may be a diagnosis of its own: at "mit", "bei", "und", commas.

Holds: the seams and the writing out of shared word ends ("Leber- und Lungenmetastasen"). Refuses: deciding
which part is the diagnosis.
"""

from __future__ import annotations

import re
from functools import lru_cache

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import LazyPattern

_SEAM = LazyPattern(
    r"\s*(?:[;+]|,(?!\d)|(?<=[^\W\d_])\s?/\s?(?=[^\W\d_]{4})|\s[-–=>]+\s|(?<=[^\W\d_]{6})\.\s(?=\S{5})"
    r"|[(\[]|[)\]]"
    r"|(?<!\w)(?:mit|bei|und|u\.|m\.|b\.|sowie|wegen|infolge|aufgrund|bzw\.?|ieL|i\.e\.L\.|in erster linie"
    r"|im rahmen|im sinne|auf dem boden|i\.r\.)(?![^\W\d_])"
    r"|(?<=\s)(?=(?:dd|a\.\s?e\.|am ehesten|v\.\s?a\.|z\.\s?n\.|verdacht auf|zustand nach)[\s:]))"
    r"\s*(?:(?:eine[rsnm]?|einem|der|des|dem|den|die)\s+)?",
    re.IGNORECASE,
)
_SHARED = LazyPattern(r"([^\W\d_]{3,})-\s*(?:und|u\.|,|/|sowie|oder|bzw\.?)\s*([^\W\d_]{7,})")
_WORD = LazyPattern(r"[^\W\d_]{3,}")
# Word ends that are shared by "X- und Y..."; the longest that fits is taken.
_HEADS = (
    "metastasen", "karzinom", "karzinome", "fraktur", "frakturen", "arthrose", "insuffizienz", "stenose",
    "entzündung", "infektion", "infekt", "störung", "störungen", "schmerzen", "schmerz", "syndrom",
    "erkrankung", "krankheit", "krankheiten", "verletzung", "verletzungen", "prellung", "distorsion",
    "hernie", "hernien", "ruptur", "läsion", "zyste", "zysten", "polyp", "polypen", "tumor", "tumoren",
    "blutung", "abszess", "ödem", "ödeme", "embolie", "thrombose", "adenom", "versagen", "abusus",
    "abhängigkeit", "allergie", "unverträglichkeit", "mangel", "steine", "filiae", "kontusion", "wunde",
    "varizen", "ulkus", "ulzera", "dysplasie", "atrophie", "parese", "neuropathie",
)  # fmt: skip
MAX_PARTS = 6


@lru_cache(maxsize=64)
def split_parts(text: str) -> tuple[str, ...]:
    """Return the parts of ``text``, at most six, in order; empty where it is one piece.

    Parts without a word of three letters are left out, and attributes without a noun where the line is
    written with capitals.
    """
    whole = share_heads(text)
    pieces = [piece.strip(" .,;:-–") for piece in _SEAM().split(whole)]
    capital = any(char.isupper() for char in whole)
    parts = [
        piece
        for piece in pieces
        if _WORD().search(piece) and not (capital and not any(char.isupper() for char in piece))
    ]
    if len(pieces) < 2 and whole == text:  # noqa: PLR2004  # one piece: nothing was parted
        return ()
    return tuple(dict.fromkeys(part for part in parts if part != text))[:MAX_PARTS]


def share_heads(text: str) -> str:
    """Return ``text`` with "Leber- und Lungenmetastasen" written "Lebermetastasen und Lungenmetastasen"."""
    if "-" not in text:
        return text
    return _SHARED().sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    first, second = match.group(1), match.group(2)
    low = fold(second)
    heads = [head for head in _HEADS if low.endswith(fold(head)) and len(low) > len(head) + 2]
    if not heads:
        return match.group()
    head = max(heads, key=len)
    return f"{first}{head}, {second}"
