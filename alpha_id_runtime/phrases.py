"""Input text to segments, and the codes already written in a line.

Holds: one non-empty line = one phrase. Refuses: extraction from prose; the caller does that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from alpha_id_runtime.codes import parse_code
from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.model import Segment

if TYPE_CHECKING:
    from collections.abc import Callable

_BULLET = re.compile(r"^\s*(?:[-•*–—·](?:\s+|$)|[•·])*")
_NUMBER = re.compile(r"^\(?(\d{1,2})(?:\.\)|[.)])(?:\s+|$|(?=[A-ZÄÖÜ]))")
_CODE_TOKEN = re.compile(
    r"(?<![\w./-])[\[(]?(?:ICD(?:-10)?(?:-GM)?:?\s*)?"
    r"([A-Za-z]\d{2}(?:\.(?:\d{1,2}-?|-)|\d{0,2})?[+*!†]?)(?:[GVAZRLB]{1,2}(?!\w))?[\])]?(?![\w/]|\.\d|,\d|-\w)"
)


def decode(data: bytes) -> str:
    """Return input bytes as text; a BOM is dropped.

    Raises:
        UsageError: not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The input is not UTF-8 (byte {error.start}). Convert it first, e.g. with: "
            "iconv -f CP1252 -t UTF-8 FILE"
        ) from error


def segments(text: str) -> list[Segment]:
    """Return the non-empty lines, numbered from 0, bullets and numbering taken off.

    A number is numbering where it is 1, goes on from the line numbered before, or to the one after: "34. SSW"
    and "2. Grades" keep theirs. A line that is nothing but a bullet is empty.
    """
    lines = [_BULLET.sub("", line) for line in text.removeprefix("\ufeff").splitlines()]
    for place in _numbered(lines):
        lines[place] = _BULLET.sub("", _NUMBER.sub("", lines[place]))
    return [Segment(index, line) for index, line in enumerate(line for line in map(str.strip, lines) if line)]


def _numbered(lines: list[str]) -> list[int]:
    """Return the places of the lines that begin with numbering."""
    found = [(place, int(match[1])) for place, line in enumerate(lines) if (match := _NUMBER.match(line))]
    following = [*(number for _, number in found[1:]), None]
    places: list[int] = []
    last = 0
    for (place, number), after in zip(found, following, strict=False):
        if number in (1, last + 1) or after == number + 1:
            places.append(place)
            last = number
    return places


def written_codes(text: str, known: Callable[[str], bool]) -> tuple[tuple[str, ...], str]:
    """Return (codes of the edition written in a line, the line without them).

    Only what ``known`` accepts is a code, so "Vitamin B12" stays text.
    """
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        code = parse_code(match[1])
        if code is None or not known(code):
            return match[0]
        found.append(code)
        return " "

    rest = _CODE_TOKEN.sub(take, text)
    return tuple(dict.fromkeys(found)), " ".join(rest.split()).strip(" ,;:-–") if found else text
