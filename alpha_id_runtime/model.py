"""Frozen dataclasses of the domain: what is asked, what is found, what is answered.

Holds: shapes and their JSON form. The names of the JSON fields are a contract, frozen once shipped; additions
are allowed. Refuses: behaviour beyond turning itself into plain dictionaries.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Mode = Literal["c", "a"]
Sector = Literal["any", "ambulant", "stationaer"]
Sex = Literal["m", "w", "d", "x"]
OriginKind = Literal["alpha_id", "title", "inclusion"]
Certainty = Literal["V", "A", "Z", "G"]
Laterality = Literal["R", "L", "B"]
ComplementUsage = Literal["aster", "optional", "second_primary"]
Way = Literal["written code", "exact", "same words", "alike", "degree decided", "site decided"]
Relation = Literal["sibling", "parent", "wording"]


@dataclass(frozen=True)
class Complement:
    """A code that goes with a primary one: an aster or ``!`` partner, or the second primary of a phrase."""

    icd_code: str
    usage: ComplementUsage


@dataclass(frozen=True)
class Entry:
    """One row of the corpus: a phrase with the code it stands for. ``row`` is its place in every index."""

    row: int
    text: str
    origin: OriginKind
    valid: bool
    alpha_id: str | None
    orpha: str | None
    icd_code: str
    secondary_only: bool
    edition_gap: bool
    gap_rank: int
    complements: tuple[Complement, ...]


@dataclass(frozen=True)
class Segment:
    """One non-empty line of the input. ``index`` counts the non-empty lines from 0."""

    index: int
    text: str


@dataclass(frozen=True)
class Filter:
    """What may be suggested, in the user's own words. The defaults let everything pass but placeholders.

    Attributes:
        sector: where a code must be billable under ``billable_only``; any = in at least one.
        valid_only: leave out phrases of validity 0 (not codes).
        chapters: first letters (``I``), chapters 1-22 or Roman numerals of two letters or more (``IX``).
        prefix: beginnings of codes (``E11``).
        groups: ranges of three-character codes (``I10-I15``).
        age: completed years (``45``), months (``5m``) or days (``3d``).
        strict: leave out what is in conflict with sex or age by a can-reject, too.
    """

    billable_only: bool = False
    sector: Sector = "any"
    valid_only: bool = False
    chapters: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    exclude_exotic: bool = False
    ifsg_only: bool = False
    sex: Sex | None = None
    age: str | None = None
    strict: bool = False


@dataclass(frozen=True)
class Tags:
    """What the classification says of a code, read from ClaML; nothing is patched.

    ``age_low`` and ``age_high`` are printed as in the source (``t028``, ``j124``), None where unbounded.
    """

    billable: bool
    billable_ambulant: bool
    billable_stationaer: bool
    role: Literal["primary", "aster", "addon"] | None
    para295: str
    para301: str
    terminal: bool
    valid: bool
    chapter: str
    group: str
    usage: Literal["dagger", "aster", "optional"] | None
    exotic: bool
    sex: Literal["m", "w"] | None
    age_low: str | None
    age_high: str | None
    ifsg: bool
    content: bool


@dataclass(frozen=True)
class OriginHit:
    """Where a suggestion came from: one phrase of the input and the corpus entry it matched best."""

    segment: int
    phrase: str
    matched_phrase: str
    alpha_id: str | None
    orpha: str | None
    origin: OriginKind
    valid: bool
    score: float
    certainty: Certainty | None = None
    laterality: Laterality | None = None


@dataclass(frozen=True)
class NamedComplement:
    """A complement with the title of its code, as answered."""

    icd_code: str
    usage: ComplementUsage
    description: str


@dataclass(frozen=True)
class Related:
    """A neighbour of a suggestion, for the impulse it gives; no line mentions it.

    ``description`` is the title of a sibling or parent, and the phrase of another wording.
    """

    icd_code: str
    description: str
    relation: Relation
    alpha_id: str | None = None
    mentioned: Literal[False] = False


@dataclass(frozen=True)
class OriginExplanation:
    """How one line led to a code.

    Attributes:
        tried: the text that was matched, None for a code written in the line.
        how: ``core``, or what was done for this text (``abbreviation``, ``synonym``, ``part`` ...).
        removed: what was taken off the line or expanded in it, in words.
        way: how the entry was found.
        decided_by: the degrees and sites that name this code or another in its place.
        parts: the parts of the score by name. Before ``text_score``, what it is made of: ranks, cosines,
            shares. Then what it is multiplied by: ``query_weight`` (a variant counts for less),
            ``entry_factor`` (no longer valid, subdivided), ``said_factor`` (degree, site). ``reranked`` takes
            the place of all but the last where a reranker dealt scores out anew; ``of_sibling`` stands alone
            where a degree or site brought the code in at its best sibling's score.
    """

    segment: int
    tried: str | None
    how: str | None
    removed: tuple[str, ...]
    matched_phrase: str
    way: Way
    decided_by: tuple[str, ...]
    parts: dict[str, float]


@dataclass(frozen=True)
class Explanation:
    """Why a suggestion stands where it stands; ``origins`` as those of the suggestion, in their order."""

    origins: tuple[OriginExplanation, ...]
    outranks_next: str | None


@dataclass(frozen=True)
class Suggestion:
    """One code of the answer. Every suggestion traces to a corpus entry through ``origins``.

    ``explanation`` and ``related`` are None, and no fields of the JSON form, unless they were asked for.
    """

    icd_code: str
    description: str
    score: float
    matched_phrase: str
    alpha_id: str | None
    orpha: str | None
    origin: OriginKind
    source_segments: tuple[int, ...]
    origins: tuple[OriginHit, ...]
    secondary_only: bool
    edition_gap: bool
    conflict: tuple[Literal["sex", "age"], ...]
    tags: Tags
    complements: tuple[NamedComplement, ...]
    explanation: Explanation | None = None
    related: tuple[Related, ...] | None = None


@dataclass(frozen=True)
class Skipped:
    """A line that yields no code, with the reason in words."""

    segment: int
    reason: str


@dataclass(frozen=True)
class Diagnostics:
    """How an answer came about. Holds no input text."""

    mode: Mode
    degraded: bool
    degraded_reason: str | None
    reason: str | None
    timings: dict[str, float]
    segment_count: int
    skipped: tuple[Skipped, ...]
    unrepresented: tuple[int, ...]
    warnings: tuple[str, ...]
    hints: tuple[str, ...]
    ionos_calls: int
    editions: dict[str, int]
    system: str
    version: str
    build_id: str
    notice: str


@dataclass(frozen=True)
class SuggestResult:
    """The one ranked list and how it came about."""

    suggestions: tuple[Suggestion, ...]
    diagnostics: Diagnostics
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the output contract as plain dictionaries and lists, ready for ``json.dumps``."""
        plain = asdict(self)
        extra = plain.pop("extra")
        for suggestion in plain["suggestions"]:
            for name in ("explanation", "related"):
                if suggestion[name] is None:
                    del suggestion[name]
        return {**extra, **plain}
