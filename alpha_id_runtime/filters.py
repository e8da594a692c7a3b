"""What may be suggested: the verdict on one code under one ``Filter``, and how filter options are read.

Holds: pure decisions from ClaML's and Alpha-ID's own fields. Refuses: retrieval; the pools are cut after the
verdict, so a filter never empties a list that still has passing candidates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.model import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from alpha_id_runtime.codes import CodeTable
    from alpha_id_runtime.model import Tags

Conflict = Literal["sex", "age"]
_ROMAN_CHAPTERS = (
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV", "XVI",
    "XVII", "XVIII", "XIX", "XX", "XXI", "XXII",
)  # fmt: skip
_AGE = re.compile(r"^(\d{1,3})\s*([jy]|m|d|t)?$", re.IGNORECASE)
_GROUP = re.compile(r"^([A-Z]\d\d)(?:-([A-Z]\d\d))?$")
_PREFIX = re.compile(r"^[A-Z](?:\d(?:\d(?:\.\d{0,2})?)?)?$")
_DAYS_A_YEAR = 365.25
_DAYS_A_MONTH = _DAYS_A_YEAR / 12
_MONTHS_A_YEAR = 12
_OLDEST = 124


@dataclass(frozen=True)
class Verdict:
    """Whether a code passes, and what of the patient it is in conflict with where it does."""

    passes: bool
    conflict: tuple[Conflict, ...] = ()


_REJECTED, _PASSED = Verdict(passes=False), Verdict(passes=True)


class CodeFilter:
    """One ``Filter`` applied to the codes of one edition; verdicts are kept."""

    def __init__(self, codes: CodeTable, wanted: Filter) -> None:
        """Read the filter's values; a verdict is made when its code is first met.

        Raises:
            UsageError: a value of the filter cannot be meant.
        """
        self._codes = codes
        self.wanted = wanted
        self._chapters = parse_chapters(wanted.chapters)
        self._prefix = parse_prefix(wanted.prefix)
        self._groups = parse_groups(wanted.groups)
        self._age = None if wanted.age is None else parse_age(wanted.age)
        self._is_open = wanted == Filter()
        self._verdicts: dict[str, Verdict] = {}

    @property
    def valid_only(self) -> bool:
        """True where phrases of validity 0 are left out."""
        return self.wanted.valid_only

    def verdict(self, code: str) -> Verdict:
        """Return the verdict on a category of the edition."""
        found = self._verdicts.get(code)
        if found is None:
            found = self._verdicts[code] = self._judge(code)
        return found

    def _judge(self, code: str) -> Verdict:
        wanted = self.wanted
        if self._is_open:  # the usual case, asked of every code that is suggested
            return _PASSED if self._codes.has_content(code) and self._codes.is_terminal(code) else _REJECTED
        tags = self._codes.tags(code, valid=True)
        if not (tags.content and tags.terminal and self._passes_place(code, tags)):
            return _REJECTED
        if wanted.billable_only and not is_billable(tags, wanted):
            return _REJECTED
        if (wanted.exclude_exotic and tags.exotic) or (wanted.ifsg_only and not tags.ifsg):
            return _REJECTED
        return self._passes_patient(code, tags)

    def _passes_place(self, code: str, tags: Tags) -> bool:
        return (
            (not self._chapters or code[0] in self._chapters or f"#{tags.chapter}" in self._chapters)
            and (not self._prefix or code.startswith(self._prefix))
            and (not self._groups or any(_in_group(code[:3], group) for group in self._groups))
        )

    def _passes_patient(self, code: str, tags: Tags) -> Verdict:
        wanted = self.wanted
        sex_reject, age_reject = self._codes.rejects(code)
        conflicts: list[tuple[Conflict, str]] = []
        # divers (d) and unbestimmt (x) are never in conflict with what is said of men or women
        if wanted.sex in ("m", "w") and tags.sex not in (None, wanted.sex):
            conflicts.append(("sex", sex_reject))
        if self._age is not None and not age_within(tags.age_low, tags.age_high, *self._age):
            conflicts.append(("age", age_reject))
        if any(reject == "M" or (reject == "K" and wanted.strict) for _, reject in conflicts):
            return _REJECTED
        return Verdict(passes=True, conflict=tuple(kind for kind, reject in conflicts if reject == "K"))


def is_billable(tags: Tags, wanted: Filter) -> bool:
    """Tell whether a code is billable in the wanted sector. Source: coding.md, "May this code be used"."""
    if wanted.sector == "ambulant":
        return tags.billable_ambulant
    if wanted.sector == "stationaer":
        return tags.billable_stationaer
    return tags.billable


def age_within(low: str | None, high: str | None, days: int | None, years: int) -> bool:
    """Tell whether an age is within bounds as printed (``t028``, ``j124``), both inclusive.

    ``days`` None (only the completed years are known): a bound in days is held to be violated only where no
    day of that year could meet it.
    """
    first_day = days if days is not None else int(years * _DAYS_A_YEAR)
    last_day = days if days is not None else int((years + 1) * _DAYS_A_YEAR) - 1

    def below(bound: str) -> bool:
        value = int(bound[1:])
        return last_day < value if bound[0] == "t" else years < value

    def above(bound: str) -> bool:
        value = int(bound[1:])
        return first_day > value if bound[0] == "t" else years > value

    return not ((low is not None and below(low)) or (high is not None and above(high)))


def parse_age(text: str) -> tuple[int | None, int]:
    """Return (completed days or None, completed years) of ``45``, ``45j``, ``3d``, ``5m``.

    Raises:
        UsageError: no such age.
    """
    match = _AGE.match(text.strip())
    if match is None:
        raise UsageError("--age takes completed years (45), months (5m) or days (3d).")
    number, unit = int(match[1]), (match[2] or "j").lower()
    if unit in ("d", "t"):
        return number, int(number / _DAYS_A_YEAR)
    if unit == "m":
        return int(number * _DAYS_A_MONTH), number // _MONTHS_A_YEAR
    if number > _OLDEST:
        raise UsageError(f"--age {number}: the classification knows ages up to {_OLDEST} years.")
    return None, number


def parse_chapters(values: Iterable[str]) -> tuple[str, ...]:
    """Return chapters as kept in a ``Filter``: a first letter as it is, a chapter as ``#`` + Roman numeral.

    A single letter is the code's first letter (``I`` = circulation codes, not chapter I); 1-22 and Roman
    numerals of two letters or more are chapters.

    Raises:
        UsageError: neither.
    """
    chapters = []
    for value in values:
        plain = value.upper()
        if len(plain) == 1 and plain.isalpha() and plain.isascii():
            chapters.append(plain)
        elif plain.isdecimal() and 1 <= int(plain) <= len(_ROMAN_CHAPTERS):
            chapters.append(f"#{_ROMAN_CHAPTERS[int(plain) - 1]}")
        elif plain in _ROMAN_CHAPTERS:
            chapters.append(f"#{plain}")
        else:
            raise UsageError(
                f"--chapters {value}: neither a first letter (I), nor a chapter as 1-{len(_ROMAN_CHAPTERS)} "
                "or as a Roman numeral of two letters or more (IX). Chapter I is written 1."
            )
    return tuple(chapters)


def parse_groups(values: Iterable[str]) -> tuple[str, ...]:
    """Return groups (``I10-I15``, or one category ``I10``) as ``first-last``.

    Raises:
        UsageError: not a range of three-character codes, or one that runs backwards.
    """
    groups = []
    for value in values:
        match = _GROUP.match(value.upper())
        if match is None or (match[2] or match[1]) < match[1]:
            raise UsageError(f"--groups {value}: a group is a range of three-character codes, as in I10-I15.")
        groups.append(f"{match[1]}-{match[2] or match[1]}")
    return tuple(groups)


def parse_prefix(values: Iterable[str]) -> tuple[str, ...]:
    """Return code prefixes in plain form.

    Raises:
        UsageError: no code can start so.
    """
    prefixes = []
    for value in values:
        plain = value.upper().rstrip("-")
        if not _PREFIX.match(plain):
            raise UsageError(f"--prefix {value}: no code starts so; write it as in E11 or I2 or E11.7.")
        prefixes.append(plain)
    return tuple(prefixes)


def _in_group(category: str, group: str) -> bool:
    first, _, last = group.partition("-")
    return first <= category <= last
