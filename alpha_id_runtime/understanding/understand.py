"""One phrase read as a good coder reads it: the only place that knows the order of the steps.

Holds: ``understand``. Refuses: looking anything up in a corpus or an edition, and any clock, file or network
beyond the tables, which are read once.

Order: codes given, numbering and headings, certainty and side, degrees, then doses, dates and measured values
off; what is left is the core. Variants come from the core: abbreviations, synonyms, parts, states.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from alpha_id_runtime.text import canonical, fold
from alpha_id_runtime.understanding.abbreviations import Expansion, expand, is_short
from alpha_id_runtime.understanding.cues import (
    cut,
    may_say_certainty,
    take_certainty,
    take_heading,
    take_off,
    take_side,
)
from alpha_id_runtime.understanding.fillers import take_fillers
from alpha_id_runtime.understanding.given import take_codes
from alpha_id_runtime.understanding.no_diagnosis import why_no_diagnosis, without_empty_parts
from alpha_id_runtime.understanding.parts import split_parts
from alpha_id_runtime.understanding.reading import Degree, How, Reading, Variant
from alpha_id_runtime.understanding.scales import find_degrees
from alpha_id_runtime.understanding.sites import find_sites
from alpha_id_runtime.understanding.synonyms import REVERSED, rewrite
from alpha_id_runtime.understanding.tables import LazyPattern
from alpha_id_runtime.understanding.wordings import what_is_one, what_remains

if TYPE_CHECKING:
    from collections.abc import Mapping

    from alpha_id_runtime.model import Certainty, Laterality

MAX_VARIANTS = 12
MAX_PHRASE = 2000  # a longer line is no phrase; only its start is understood
_EMPTY_BRACKETS = LazyPattern(r"[(\[]\s*[,;:.–-]*\s*[)\]]")
_LOOSE = LazyPattern(r"\s+(?=[,;.)\]])|(?<=[(\[])\s+|(?:[,;]\s*)+(?=[,;)])")
_TIDY = LazyPattern(r"[^\W_]+(?:[ -][^\W_]+)*")
_EDGES = " \t,;:.–—-=/+|&"
_WORD = LazyPattern(r"[^\W\d_]{2,}")
_LETTER = LazyPattern(r"[^\W\d_]")
_SPELLED = LazyPattern(r"(?i)\b((?:typ|grad|stadium|klasse)\s)(eins|zwei|drei|vier|fünf)\b")
_FIGURES = {"eins": "1", "zwei": "2", "drei": "3", "vier": "4", "fünf": "5"}
_HALF = LazyPattern(r"(?:(\d+)\s*)?½")
# What a line of nothing but a measured value says beside it.
_SCALE_WORDS = LazyPattern(
    r"(?i)\b(?:barthel|erweiterter|index|mms[et]|mini-?mental\w*|score|test|punkten?|pkt|bei|aufnahme|entlassung|aktuell"
    r"|von|ssw|schwangerschaftswoche)\b"
)
_SUSPECTED = LazyPattern(r"([^\W\d_]{5,}?)s?verdacht(?![^\W\d_])")
_SIDE_WORDS: dict[Laterality, str] = {"B": "beidseitig", "R": "einseitig", "L": "einseitig"}
_PARTS = (0.66, 0.58)  # what the first and any other part of a line count for
# Where both sides are said, the wording that says them leads, as siblings may differ by it.
_BOTH, _ONE_SIDE, _BESIDE_BOTH = 1.0, 0.9, 0.97
# What codes for what lies behind are called, with what each counts for; where a history is said, it leads.
_STATES = (
    ("Zustand nach {}", 0.98, 0.85),
    ("{} in der Eigenanamnese", 0.85, 0.98),
    ("Alter {}", 0.84, 0.6),
    ("Folgezustand nach {}", 0.6, 0.6),
)
# What is left, in the words of the classification: the first wording, and a second.
_REMAINS = (0.985, 0.93)
# What is here is the rest of what was: "Resthemiparese nach Hirninfarkt".
_SEQUEL = LazyPattern(
    r"\b(?:spaet)?folge(?:n|zustand|zustaende)?\s(?:nach|von|ein)|\brest\w+\s(?:\w+\s){0,2}?(?:nach|bei)\b"
    r"|\bresidu\w+\s(?:\w+\s){0,2}?(?:nach|bei)\b|\bdefekt\w*\snach\b"
)
_CURED = LazyPattern(r"\b(?:rezidiv|tumor)frei\b")
# A year alone says when it was, unless it says since when or when it was found, or is a value.
_YEAR = LazyPattern(
    r"(?<![\d./])(?<!seit\s)(?<!ed\s)(?<!ed:\s)(?<!erstdiagnose\s)(?<!ck\s)(?<!max\s)(?<!max\.\s)(?<!bnp\s)(?<!ldh\s)"
    r"(?:19[5-9]\d|20[012]\d)(?![\d.])(?!\s?(?:u/|ie\b|i\.e|iu\b|mg|g\b|ng|ml|[µμ]g|pg|mm|cm|m\b|gy|kcal|einheiten|/))"
)
_GOING_ON = LazyPattern(r"akut|frisch|laufend|steigend|progred|aktuell|post-?covid|long-?covid")
_AT_ONCE = 0.95
# At the end of what is said; weeks ago is still the disease itself, and found out long ago is no end of it.
_AGO = LazyPattern(
    r"\bvor\s(?:(?:ca\.?|etwa|ueber|rund|gut|mehr als)\s)?"
    r"(?:[\d,./-]+|eine[mr]|zwei|drei|vier|fuenf|sechs|sieben|acht|zehn|zwoelf|anderthalb|eineinhalb|einigen|mehreren"
    r"|vielen)\s?(?:monat|jahr)\w*+\s*(?:[,;.)\]]|$)"
)


def understand(text: str, mined: Mapping[str, tuple[str, ...]] | None = None) -> Reading:
    """Return what ``text``, one line of a list of diagnoses, says. Never raises on any text.

    Args:
        text: the phrase as written.
        mined: abbreviations that the corpus explains itself, used where the curated table knows none.

    Raises:
        ConfigError: a table of the package is broken (on the first call only).
    """
    original = text
    removed: list[str] = []
    line = _in_figures(canonical(text)[:MAX_PHRASE])
    given = take_codes(line)
    line, notes = take_heading(_tidy(given.text))
    removed += [f"code {code}" for code in given.codes] + notes

    bare, certainty, words = take_certainty(line)
    bare, certainty, words = _suspected(bare, certainty, words)
    removed += [f"certainty: {word}" for word in words]
    certainty = given.certainty or certainty
    no_diagnosis = None if given.codes else why_no_diagnosis(bare, certainty)
    bare, side, sides = take_side(bare)
    removed += [f"side: {word}" for word in sides]
    side = given.laterality or side
    degrees = find_degrees(bare)
    if any(degree.stands_alone for degree, _ in degrees):  # a measured value that has a code
        no_diagnosis = None
    undegreed = _without_degree(bare, degrees)
    stripped, off = take_off(without_empty_parts(bare))
    full = _tidy(stripped)
    stripped, empty = take_fillers(stripped)
    removed += [*off, *empty]
    cued = _tidy(stripped)
    core, whole_certainty = _inner_certainty(cued, certainty, removed)
    core = _first_with_letter(core, cued, line, canonical(text), original)

    if not _WORD().search(cued):  # nothing but a code or a sign: there is no text to vary
        return Reading(
            original,
            core,
            (),
            certainty,
            side,
            tuple(d for d, _ in degrees),
            (),
            given.codes,
            tuple(removed),
            no_diagnosis,
            alone=_alone(degrees, undegreed),
        )
    expansions = expand(core, mined)
    removed += [f"expanded {note}" for note in (expansions[0].notes if expansions else ())]
    low = fold(line)
    past = whole_certainty == "Z" or bool(_AGO().search(fold(bare)) or _CURED().search(low))
    sequel = bool(_SEQUEL().search(low) or (_YEAR().search(low) and not _GOING_ON().search(low)))
    variants = [
        # An entry may say what fills most lines: "Massive Lungenembolie".
        *([Variant(full, 1.0, "original")] if empty else []),
        *_rewritings(core, expansions),
        *_parts(_written_out(cued, core, expansions, mined), core, whole_certainty),
        *_siblings(original, core, expansions, past, side, undegreed),
        *_worded(f"{line} = {expansions[0].text if expansions else core}", past=past, sequel=sequel),
    ]
    return Reading(
        original=original,
        core=core,
        variants=_best(variants, core),
        certainty=whole_certainty,
        laterality=side,
        degrees=tuple(degree for degree, _ in degrees),
        sites=find_sites(expansions[0].text if expansions else core),
        codes_given=given.codes,
        removed=tuple(removed),
        no_diagnosis=no_diagnosis,
        core_weight=_BESIDE_BOTH if side == "B" or empty else 1.0,
        past=past,
        alone=_alone(degrees, undegreed),
    )


def _in_figures(text: str) -> str:
    """Return ``text`` with "Typ zwei", as it is dictated, and "1 ½" in figures."""
    text = _HALF().sub(lambda match: f"{match[1] or 0},5", text) if "½" in text else text
    return _SPELLED().sub(lambda match: match[1] + _FIGURES[match[2].lower()], text)


def _without_degree(text: str, degrees: tuple[tuple[Degree, tuple[int, int]], ...]) -> str:
    """Return ``text`` without the words that say a degree, "" where none says one."""
    spans = [(start, end) for _, (start, end) in degrees if start < end]
    return _tidy(take_off(cut(text, spans))[0]) if spans else ""


def _alone(degrees: tuple[tuple[Degree, tuple[int, int]], ...], undegreed: str) -> tuple[str, ...]:
    """Return the codes of the degrees that are all the line says; mostly none."""
    if not degrees or _WORD().search(_SCALE_WORDS().sub(" ", undegreed)):
        return ()
    return tuple(
        code
        for degree, _ in degrees
        if degree.stands_alone and degree.decides == "one"
        for code in degree.codes
    )


def _suspected(
    text: str, certainty: Certainty | None, words: tuple[str, ...]
) -> tuple[str, Certainty | None, tuple[str, ...]]:
    """Read "Rezidivverdacht", where the suspicion stands in the word."""
    match = _SUSPECTED().search(text) if "verdacht" in text else None
    if not match:
        return text, certainty, words
    return text[: match.end(1)] + text[match.end() :], certainty or "V", (*words, match.group())


def _inner_certainty(
    text: str, certainty: Certainty | None, removed: list[str]
) -> tuple[str, Certainty | None]:
    """Return ``text`` without certainty words inside it, and the certainty of the whole.

    Words inside a line ("Dyspnoe bei V.a. Pneumonie") hold for their part, not for the whole.
    """
    if not may_say_certainty(text):
        return _tidy(text), certainty
    out = text
    for part in split_parts(text):
        bare, inner, words = take_certainty(part)
        if words and bare.strip(_EDGES) and part in out:
            excluded = inner == "A" and _WORD().search(out.replace(part, "", 1))
            out = out.replace(part, "" if excluded else bare.strip(_EDGES), 1)
            removed += [f"certainty of a part: {word}" for word in words]
    return _tidy(out), certainty


def _first_with_letter(*texts: str) -> str:
    for text in texts:
        if _LETTER().search(text):
            return text
    return texts[-1]


@lru_cache(maxsize=64)
def _tidy(text: str) -> str:
    """Return ``text`` without what taking off leaves behind: empty brackets, doubled commas, loose ends."""
    if _TIDY().fullmatch(text):
        return text
    text = _EMPTY_BRACKETS().sub(" ", text)
    text = " ".join(_LOOSE().sub("", " ".join(text.split())).split())
    text = text.lstrip(_EDGES).rstrip(_EDGES.replace(".", ""))
    return text if _ends_short(text) else text.rstrip(_EDGES)


def _ends_short(text: str) -> bool:
    """Return whether ``text`` ends in an abbreviation that keeps its dot ("Herzinsuff.")."""
    return text.endswith(".") and is_short(text.rsplit(" ", 1)[-1])


def _rewritings(core: str, expansions: tuple[Expansion, ...]) -> list[Variant]:
    variants = [Variant(e.text, e.weight, "abbreviation") for e in expansions]
    base, factor = (expansions[0].text, expansions[0].weight) if expansions else (core, 1.0)
    for found in rewrite(base):
        if found.weight == REVERSED:
            continue  # a plain word for a term of the field finds nothing that the term does not
        how: How = "spelling" if found.spelling else "synonym"
        variants.append(Variant(found.text, round(found.weight * factor, 3), how))
    return variants


def _written_out(
    cued: str,
    core: str,
    expansions: tuple[Expansion, ...],
    mined: Mapping[str, tuple[str, ...]] | None,
) -> str:
    """Return ``cued`` with its abbreviations written out; mostly it is the core, and that is done."""
    written = expansions if cued == core else expand(cued, mined)
    return written[0].text if written else cued


def _parts(line: str, core: str, whole: Certainty | None) -> list[Variant]:
    variants = []
    said = may_say_certainty(line)
    for index, part in enumerate(split_parts(line)):
        bare, certainty, _ = take_certainty(part) if said else (part, None, ())
        bare = _tidy(bare)
        if _WORD().search(bare) and bare != core and certainty != "A":
            weight = _PARTS[0 if index == 0 else 1]
            variants.append(Variant(bare, weight, "part", certainty or whole))
            if certainty == "Z" and whole != "Z":
                left = _remains(bare, weight, past=True, certainty=certainty)
                variants += left or [Variant(_STATES[0][0].format(bare), weight, "state", certainty)]
    return variants


def _worded(text: str, *, past: bool, sequel: bool) -> list[Variant]:
    """Return what ``text`` says in several words, or leaves behind, in the words of the classification."""
    at_once = [Variant(wording, _AT_ONCE, "combination") for wording in what_is_one(text)]
    return [*at_once, *_remains(text, 1.0, past=past, sequel=sequel)]


def _remains(
    text: str, weight: float, *, past: bool, sequel: bool = False, certainty: Certainty | None = None
) -> list[Variant]:
    """Return the wordings of what ``text`` leaves behind, which count for ``weight`` or a little less."""
    return [
        Variant(wording, round(weight * own, 3), "state synonym", certainty)
        for wording, own in zip(what_remains(text, past=past, sequel=sequel), _REMAINS, strict=False)
    ]


def _siblings(  # noqa: PLR0917  # what was read of one phrase, passed on once
    original: str,
    core: str,
    expansions: tuple[Expansion, ...],
    past: bool,
    side: Laterality | None,
    undegreed: str,
) -> list[Variant]:
    """Return the texts for codes that differ by state, side or degree only."""
    text = expansions[0].text if expansions else core
    variants = []
    if past:
        history = "eigenanamnese" in fold(original)
        variants += [
            Variant(frame.format(text), of_history if history else weight, "state")
            for frame, weight, of_history in _STATES
        ]
        renamed = rewrite(text)
        if renamed and not renamed[0].spelling:
            variants.append(Variant(f"Zustand nach {renamed[0].text}", 0.85, "state synonym"))
    if side:
        weight = _BOTH if side == "B" else _ONE_SIDE
        variants.append(Variant(f"{text}, {_SIDE_WORDS[side]}", weight, "side"))
    if _WORD().search(undegreed) and undegreed != core:
        written = expand(undegreed)
        variants.append(Variant(written[0].text if written else undegreed, 0.9, "without degree"))
    return variants


def _best(variants: list[Variant], core: str) -> tuple[Variant, ...]:
    """Return the variants without twins, heaviest first, at most twelve."""
    kept: dict[str, Variant] = {}
    for variant in sorted(variants, key=lambda v: -v.weight):
        key = variant.text.casefold()
        if key != core.casefold():
            kept.setdefault(key, variant)
    return tuple(kept.values())[:MAX_VARIANTS]


def degrees_of(text: str) -> tuple[Degree, ...]:
    """Return only the degrees said in ``text``."""
    return tuple(degree for degree, _ in find_degrees(canonical(text)))
