"""A line that lists several diagnoses: "aHT, HLP, VHF, DM Typ 2, COPD".

Holds: telling such a list from one diagnosis with commas in it ("Diabetes mellitus, Typ 2, entgleist"), by
which of its pieces are entries of the corpus. Refuses: lines of one or two pieces, which are matched as they
are with their parts beside.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from alpha_id_runtime.text import normalise
from alpha_id_runtime.understanding import understand

if TYPE_CHECKING:
    from alpha_id_runtime.build import Build

_PIECES = re.compile(r"\s*[,;](?!\d)\s*(?![^(]*\))")
_LEAST = 3
_MOST = 12
_WORDS = 7
_SAME = "abbreviation"


def enumerated(build: Build, line: str) -> tuple[str, ...]:
    """Return the diagnoses that a line lists, in order; empty where it is one, or two.

    All but one of at least three pieces must be entries, abbreviations written out and certainty taken off;
    where only semicolons part them, two entries will do.
    """
    if line.count(",") + line.count(";") < _LEAST - 1:
        return ()
    pieces = [piece for piece in _PIECES.split(line) if piece]
    if not _LEAST <= len(pieces) <= _MOST or any(len(piece.split()) > _WORDS for piece in pieces):
        return ()
    needed = 2 if "," not in line else len(pieces) - 1
    found = sum(_is_entry(build, piece) for piece in pieces)
    if found < needed or len(build.lexical.twins(normalise(line))):
        return ()
    return tuple(pieces)


def _is_entry(build: Build, piece: str) -> bool:
    reading = understand(piece, build.abbreviations)
    if reading.no_diagnosis:
        return False
    written = [variant.text for variant in reading.variants if variant.how == _SAME][:1]
    return any(len(build.lexical.twins(normalise(text))) for text in (reading.core, *written))
