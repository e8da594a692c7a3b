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

_BULLET = re.compile(r"^\s*(?:[-•*–—·]\s+|[•·]|\(?\d{1,2}[.)]\s+)+")
_CODE_TOKEN = re.compile(
    r"(?<![\w.,/-])[\[(]?(?:ICD(?:-10)?(?:-GM)?:?\s*)?"
    r"([A-Za-z]\d{2}(?:\.(?:\d{1,2}-?|-)|\d{0,2})?[+*!†]?)[\])]?(?![\w/]|\.\d|,\d|-\w)"
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

    A line that is nothing but a bullet is empty.
    """
    lines = (_BULLET.sub("", line).strip() for line in text.removeprefix("\ufeff").splitlines())
    return [Segment(index, line) for index, line in enumerate(line for line in lines if line)]


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
