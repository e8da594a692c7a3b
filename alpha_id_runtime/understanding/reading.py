"""What was understood of one phrase: frozen dataclasses, nothing else.

Holds: ``Reading`` and its parts. Refuses: reading a text, knowing a table, knowing an edition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from alpha_id_runtime.text import fold

if TYPE_CHECKING:
    from alpha_id_runtime.model import Certainty, Laterality

Decides = Literal["one", "several", "none"]
How = Literal[
    "abbreviation",
    "synonym",
    "spelling",
    "part",
    "without degree",
    "state",
    "state synonym",
    "combination",
    "side",
    "original",
]


@dataclass(frozen=True)
class Variant:
    """A further text to try for a phrase.

    ``weight`` (0 to 1) is what its score counts for beside the core's own 1; ``how`` names what was done.
    ``certainty`` is the part's own, where the words before it say one; None otherwise.
    """

    text: str
    weight: float
    how: How
    certainty: Certainty | None = None

    @property
    def is_part(self) -> bool:
        """True where the text is one of several diagnoses in the line and may have a code of its own."""
        return self.how == "part"


@dataclass(frozen=True)
class Degree:
    """A degree said in a phrase and what it decides; source of the scales: ``tables/scales.tsv``.

    ``codes`` and ``without_degree`` may hold ``?`` for any one character (a site or a complication that the
    words decide). ``base`` are the prefixes under which the degree means something; ``without_degree`` the
    codes of the same base that say no degree: under ``several`` they lead, under ``one`` they give way.
    """

    scale: str
    value: str
    codes: tuple[str, ...]
    decides: Decides
    as_complement: bool
    base: tuple[str, ...] = ()
    without_degree: tuple[str, ...] = ()

    def applies_to(self, code: str) -> bool:
        """Return whether ``code`` lies in a category that this degree can say something about."""
        return code.startswith(self.base) if self.base else False

    @property
    def stands_alone(self) -> bool:
        """Return whether its codes are diagnoses by themselves (a Barthel index), beside no other code."""
        return self.as_complement and all(self.applies_to(code) for code in self.codes)

    def fits(self, code: str) -> bool:
        """Return whether ``code`` is one of the codes that the degree stands for."""
        return any(_glob(pattern).fullmatch(code) for pattern in self.codes)

    def is_unsaid(self, code: str) -> bool:
        """Return whether ``code`` is the sibling without a degree."""
        return any(_glob(pattern).fullmatch(code) for pattern in self.without_degree)


@dataclass(frozen=True)
class Site:
    """A body site said in a phrase, as titles of ``base`` name it behind their last colon (``label``).

    Source of the labels: ``tables/sites.tsv``, checked against titles. A site decides the last digit of a
    code whose siblings differ by site; one that is not said is never invented.
    """

    family: str
    label: str
    base: tuple[str, ...]

    def applies_to(self, code: str) -> bool:
        """Return whether ``code`` lies where this family of sites is the last digit."""
        return code.startswith(self.base)

    def fits(self, title: str) -> bool:
        """Return whether a code of this ``title`` is at the site."""
        return label_of(title) == fold(self.label)


@dataclass(frozen=True)
class Reading:
    """One phrase as understood.

    ``core`` is the text to match, never empty for a text that holds a letter; ``core_weight`` (0 to 1) what
    its score counts for: less than 1 where a variant says more of what the line said. ``certainty`` and
    ``laterality`` hold for the whole phrase; what holds for a part only stands at its variant. ``past``: the
    disease is said to lie behind ("Zustand nach", "vor drei Jahren"). ``alone``: codes of a degree that is
    all the line says ("Barthel-Index 35"). ``no_diagnosis`` says in words why the line yields no code;
    ``removed`` what was taken off or expanded.
    """

    original: str
    core: str
    variants: tuple[Variant, ...] = ()
    certainty: Certainty | None = None
    laterality: Laterality | None = None
    degrees: tuple[Degree, ...] = ()
    sites: tuple[Site, ...] = ()
    codes_given: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    no_diagnosis: str | None = None
    core_weight: float = 1.0
    past: bool = False
    alone: tuple[str, ...] = ()


def label_of(title: str) -> str:
    """Return, folded, what ``title`` says behind its last colon, brackets left out; "" without a colon."""
    _, colon, tail = title.rpartition(": ")
    return fold(tail.partition(" [")[0].strip()) if colon else ""


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\?", "."))
