"""What ClaML elements become before they are codes, and the report that collects what is wrong with a file.

Holds: plain tuples, the names of the metas and their values, ``Report``. Refuses: XML, rules of expansion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from alpha_id_runtime.errors import SourceError

META_COLUMNS = {
    "Para295": "para295",
    "Para301": "para301",
    "MortL1Code": "mort_l1",
    "MortL2Code": "mort_l2",
    "MortL3Code": "mort_l3",
    "MortL4Code": "mort_l4",
    "MorbLCode": "morb_l",
    "SexCode": "sex_code",
    "SexReject": "sex_reject",
    "AgeLow": "age_low",
    "AgeHigh": "age_high",
    "AgeReject": "age_reject",
    "Exotic": "exotic",
    "Content": "content",
    "Infectious": "infectious",
    "EBMLabor": "ebm_labor",
}
"""The 16 metas of a category in the order of the file, with their column in ``icd_meta``."""

META_NAMES = tuple(META_COLUMNS)
META_INDEX = {name: index for index, name in enumerate(META_NAMES)}

META_ALIASES = {"RareDisease": "Exotic", "MortBCode": "MorbLCode"}
"""Names of old editions (2009)."""

AGE_VARIANTS = {"AgeLowDiff": "AgeLow", "AgeHighDiff": "AgeHigh"}
"""Extra metas of old editions: the age limit in the notation of today (``t028``, ``j124``)."""

EXCLUDE = "excludeOnPrecedingModifier"
USAGES = frozenset({"dagger", "aster", "optional"})

_CODING = re.compile("[POZV]")
_FLAG = re.compile("[JN]")
_REJECT = re.compile("[9KM]")
_AGE = re.compile(r"9999|[tj]\d{3}")
_TEXT = re.compile(r".*\S.*", re.DOTALL)
META_PATTERNS = {
    "Para295": _CODING,
    "Para301": _CODING,
    "SexCode": re.compile("[9MW]"),
    "SexReject": _REJECT,
    "AgeLow": _AGE,
    "AgeHigh": _AGE,
    "AgeReject": _REJECT,
    "Exotic": _FLAG,
    "Content": _FLAG,
    "Infectious": _FLAG,
    "EBMLabor": _FLAG,
}
"""What a meta may hold; the others hold any text but none at all."""

Metas = tuple[str, ...]
"""Sixteen values in the order of ``META_NAMES``."""


def valid_meta(name: str, value: str) -> bool:
    """Return whether ``value`` is one that the meta ``name`` may have."""
    return META_PATTERNS.get(name, _TEXT).fullmatch(value) is not None


class Reference(NamedTuple):
    """A code that a rubric points to. ``code`` is None where the source gives only a printed text."""

    code: str | None
    usage: str | None
    text: str


class Rubric(NamedTuple):
    """One rubric of a class or modifier class, its label as one line of text."""

    kind: str
    text: str
    references: tuple[Reference, ...]


class ModifiedBy(NamedTuple):
    """One position of a modified class: the modifier and, if any are listed, the only codes it may take."""

    modifier: str
    valid: tuple[str, ...]
    line: int


class ClassElement(NamedTuple):
    """A ``Class`` as it stands in the file, or a code combined of one and its modifier classes.

    ``metas`` is None on chapters and blocks, and where a fault was reported. A combined code (``explicit``
    False) has the rubrics of its modifier class and the line of the class it is made of.
    """

    code: str
    kind: str
    usage: str | None
    title: str
    parent: str | None
    subclasses: tuple[str, ...]
    modified_by: tuple[ModifiedBy, ...]
    metas: Metas | None
    rubrics: tuple[Rubric, ...]
    line: int
    explicit: bool = True


class ModifierClassElement(NamedTuple):
    """A ``ModifierClass``: ``overrides`` maps the index of a meta to its value.

    ``excluded`` holds the pairs of modifier and code that it must not follow.
    """

    code: str
    modifier: str
    usage: str | None
    title: str
    overrides: dict[int, str]
    excluded: frozenset[tuple[str, str]]
    rubrics: tuple[Rubric, ...]
    line: int


class ModifierElement(NamedTuple):
    """A ``Modifier`` with the codes it lists."""

    code: str
    subclasses: tuple[str, ...]
    line: int


@dataclass
class Report:
    """Collects what is wrong with one file, so that a reader sees all of it at once.

    ``name`` is the file's name for messages. Errors stop the edition in ``stop``; warnings go with it.
    """

    name: str
    errors: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(self, line: int, element: str, what: str) -> None:
        """Note an error at ``line`` in ``element`` ("Class E11")."""
        self.errors.append((line, f"{self.name}:{line}, {element}: {what}"))

    def warn(self, line: int, element: str, what: str) -> None:
        """Note something odd that costs no code."""
        self.warnings.append(f"{self.name}:{line}, {element}: {what}")

    def stop(self) -> None:
        """Raise SourceError with all errors noted so far, by line, if there are any."""
        if self.errors:
            count = "one error" if len(self.errors) == 1 else f"{len(self.errors)} errors"
            raise SourceError(
                f"{self.name} is not a sound ClaML edition of ICD-10-GM ({count}), so nothing was taken from "
                "it; put the file in place again as BfArM publishes it, or mend:",
                [problem for _, problem in sorted(self.errors)],
            )
