"""Degrees said in a phrase: which scale, which value, which codes it decides.

Holds: reading ``scales.tsv`` (what a value decides) and ``scale_patterns.tsv`` (how it is said), finding the
degrees of a line, and checking every row against the titles of an edition. Refuses: choosing a code. A degree
that is not said is never invented; a value that no row knows is no degree.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, cast

from alpha_id_runtime.text import canonical, fold
from alpha_id_runtime.understanding.reading import Decides, Degree
from alpha_id_runtime.understanding.tables import Finder, LazyPattern, Row, RowPattern, folded, read_table

if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from pathlib import Path

VALUE_COLUMNS = ("scale", "value", "low", "high", "codes", "decides", "title")
PATTERN_COLUMNS = ("scale", "trigger", "context", "unless", "said", "offset", "base", "without", "as")

_DEGREE = r"(?:iii|iv|ii|i|v|[1-5]|eins|zwei|drei|vier)(?:\s?[abc](?![a-z]))?"
_AFTER = r"(?![\w%+]|[.,]\d)"
_RANGE = r"\s?[°.]?\s?(?:-|–|/|bis|auf)\s?"
_TAKEN = rf"(?P<v>{_DEGREE}){_AFTER}(?:{_RANGE}(?P<v2>{_DEGREE}){_AFTER})?"
_TAKEN_TOO = _TAKEN.replace("<v", "<w")
_BEFORE = (
    rf"(?<![\w.,])(?P<w>{_DEGREE})[.°]?(?:\s?(?:-|–|/|bis)\s?(?P<w2>{_DEGREE}))?\s?[.°]?[\s-]*"
    r"(?:grad\w*|stadi\w*|°)"
)
_SPOKEN = r"(?P<x>erst|zweit|dritt|viert)(?:gradig|e[mnrs]?[\s-]+(?:grad|stadi))"
_WORDED = (
    rf"\b(?:grad(?:es)?|stadium|stad\.?|gr\.|st\.|kategorie|kat\.|klasse)[\s:.]*{_TAKEN}|{_BEFORE}|{_SPOKEN}"
)
_NUMBER = r"(?P<op><=|>=|[<>≤≥]|unter|ueber)?\s*(?P<n>\d+(?:[.,]\d+)?)"
_MACROS = (("{V}", _TAKEN), ("{W}", _TAKEN_TOO), ("{G}", _WORDED), ("{N}", _NUMBER))

_SPELLED_DEGREES = {"eins": "1", "zwei": "2", "drei": "3", "vier": "4"}
_ROMAN = {"iii": "3", "iv": "4", "ii": "2", "i": "1", "v": "5"}
_ROMAN_VALUE = LazyPattern(r"(iii|iv|ii|i|v)([abc]?)")
_ORDINALS = {"erst": "1", "zweit": "2", "dritt": "3", "viert": "4"}
_UNIT_DAYS = {
    "min": 1 / 1440,
    "std": 1 / 24,
    "h": 1 / 24,
    "stunde": 1 / 24,
    "tag": 1.0,
    "woche": 7.0,
    "monat": 30.44,
    "jahr": 365.25,
}
_SPELLED = {
    "einem": 1.0, "einer": 1.0, "zwei": 2.0, "drei": 3.0, "vier": 4.0, "fuenf": 5.0, "sechs": 6.0,
    "sieben": 7.0, "acht": 8.0, "neun": 9.0,
    "zehn": 10.0, "elf": 11.0, "zwoelf": 12.0, "eineinhalb": 1.5, "anderthalb": 1.5,
    "einem halben": 0.5, "einigen": 2.0, "mehreren": 2.0, "vielen": 2.0,
}  # fmt: skip
_LEAST = 1e-6
_WORD_TAIL = LazyPattern(r"[^\W\d_]*(?:-[^\W\d_]+)?")
_DEGREE_WORDS = LazyPattern(
    r"(?:\b(?:grad(?:es)?|stadium|stad\.?|klasse|kategorie|kat\.|gr\.|st\.|typ|gold|nyha|ccs|fontaine|nach"
    r"|hoehn|und|yahr|h&y|hy|who|child|pugh|score|kdigo|akin|bmi|e?gfr|fev\s?-?1|von|ca\.?|bei|vor|im|ssw|g|mmse|mmst|gleason)[\s:,(=-]*)+$"
)


class ScaleValue(NamedTuple):
    """One row of ``scales.tsv``."""

    row: Row
    names: tuple[str, ...]
    low: float | None
    high: float | None
    codes: tuple[str, ...]
    decides: Decides
    titles: tuple[str, ...]


class ScalePattern(NamedTuple):
    """One row of ``scale_patterns.tsv``, with the values of its scale."""

    row: Row
    scale: str
    family: str
    triggers: tuple[str, ...]
    context: RowPattern | None
    unless: RowPattern | None
    said: RowPattern
    offset: float
    base: tuple[str, ...]
    without: tuple[str, ...]
    as_complement: bool
    values: tuple[ScaleValue, ...]


@lru_cache(maxsize=4)
def load_scales(folder: Path | None = None) -> tuple[ScalePattern, ...]:
    """Return the scales in the order of their pattern rows.

    Raises:
        ConfigError: a row is broken, or a scale stands in one of the two tables only.
    """
    values: dict[str, list[ScaleValue]] = {}
    for row in read_table("scales.tsv", VALUE_COLUMNS, folder):
        value = _scale_value(row)
        values.setdefault(row.filled("scale"), []).append(value)
    patterns = [
        _scale_pattern(row, values) for row in read_table("scale_patterns.tsv", PATTERN_COLUMNS, folder)
    ]
    unsaid = sorted(set(values) - {pattern.scale for pattern in patterns})
    if unsaid:
        raise values[unsaid[0]][0].row.fail(f"scale {unsaid[0]!r} has no row in scale_patterns.tsv.")
    return tuple(patterns)


def _scale_value(row: Row) -> ScaleValue:
    decides = cast("Decides", row.one_of("decides", ("one", "several", "none")))
    codes = row.many("codes")
    if bool(codes) == (decides == "none"):
        raise row.fail("codes must be given unless the value decides none.")
    low, high = row.number("low"), row.number("high")
    if low is not None and high is not None and low >= high:
        raise row.fail("column 'low' must be below 'high'.")
    row.filled("value")
    return ScaleValue(row, row.stems("value"), low, high, codes, decides, row.many("title"))


def _scale_pattern(row: Row, values: dict[str, list[ScaleValue]]) -> ScalePattern:
    scale = row.filled("scale")
    if scale not in values:
        raise row.fail(f"scale {scale!r} has no row in scales.tsv.")
    said = row.filled("said")
    for macro, meaning in _MACROS:
        said = said.replace(macro, meaning)
    return ScalePattern(
        row=row,
        scale=scale,
        family=scale.split("/")[0],
        triggers=_triggers(row),
        context=row.pattern("context") if row["context"] else None,
        unless=row.pattern("unless") if row["unless"] else None,
        said=row.pattern("said", said),
        offset=row.number("offset") or 0.0,
        base=row.many("base"),
        without=row.many("without"),
        as_complement=row.one_of("as", ("digit", "complement")) == "complement",
        values=tuple(values[scale]),
    )


def _triggers(row: Row) -> tuple[str, ...]:
    """Return the cell split at ``|``, blanks kept: they are part of a trigger."""
    return tuple(fold(trigger) for trigger in row.filled("trigger").split("|"))


@lru_cache(maxsize=4)
def _by_trigger(folder: Path | None) -> tuple[Finder, dict[str, set[int]]]:
    """Return the triggers, and the places of the patterns of each; most lines hold none."""
    places: dict[str, set[int]] = {}
    for place, pattern in enumerate(load_scales(folder)):
        for trigger in pattern.triggers:
            places.setdefault(trigger, set()).add(place)
    return Finder(places), places


def find_degrees(text: str, folder: Path | None = None) -> tuple[tuple[Degree, tuple[int, int]], ...]:
    """Return the degrees said in ``text``, each with the place (start, end) of its words.

    The first pattern of a family that finds a value known to its scale counts.
    """
    whole = folded(text)
    lowered = whole.low
    tried: set[int] = set()
    triggers, places = _by_trigger(folder)
    for trigger in triggers.all_in(lowered):
        tried |= places[trigger]
    if not tried:
        return ()
    found: list[tuple[Degree, tuple[int, int]]] = []
    families: set[str] = set()
    patterns = load_scales(folder)
    for pattern in (patterns[place] for place in sorted(tried)):
        if pattern.family in families:
            continue
        if pattern.context is not None and not pattern.context().search(lowered):
            continue
        if pattern.unless is not None and pattern.unless().search(lowered):
            continue
        for match in pattern.said().finditer(lowered):
            degree = _degree(pattern, match)
            if degree is not None:
                families.add(pattern.family)
                found.append((degree, whole.span(*_words_of(lowered, match))))
                break
    return tuple(found)


def _words_of(lowered: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the place of the words that say the degree, to the end of the last word.

    Those of group ``off``, where the pattern has one. Empty where the value is itself a word of the diagnosis
    (group ``k``: "Hauptstamm").
    """
    if "off" in match.re.groupindex:
        return match.span("off")
    start, end = match.span()
    if "k" in match.re.groupindex and match["k"]:
        return end, end
    value = min(match.start(g) for g in match.re.groupindex if match[g])
    before = _DEGREE_WORDS().search(lowered[start:value])
    tail = _WORD_TAIL().match(lowered, end) if lowered[end - 1].isalpha() else None
    return start + before.start() if before else value, tail.end() if tail else end


def _degree(pattern: ScalePattern, match: re.Match[str]) -> Degree | None:
    groups = match.groupdict()
    number = _number(groups, pattern.offset)
    if number is not None:
        hits = [value for value in pattern.values if _within(number, value)]
        counted = groups.get("n") or groups.get("m") or f"{groups.get('first')}-{groups.get('last')}"
        names = [" ".join(filter(None, (counted, groups.get("u"))))]
    else:
        said = [_canonical(groups[g]) for g in ("v", "v2", "w", "w2", "x", "y", "k") if groups.get(g)]
        hits = [value for name in said for value in _named(name, pattern.values)]
        names = said
    if not hits:
        return None
    codes = tuple(dict.fromkeys(code for hit in hits for code in hit.codes))
    decides: Decides = hits[0].decides if len(set(map(id, hits))) == 1 else "several" if codes else "none"
    return Degree(
        scale=pattern.scale,
        value="-".join(dict.fromkeys(names)),
        codes=codes,
        decides=decides,
        as_complement=pattern.as_complement,
        base=pattern.base,
        without_degree=pattern.without,
    )


def _named(name: str, values: tuple[ScaleValue, ...]) -> list[ScaleValue]:
    """Return the values called ``name``; of a scale without letters ("NYHA IIIb") those of its number."""
    found = [value for value in values if name in value.names]
    if not found and name[:1].isdecimal() and name[1:] in ("a", "b", "c"):
        found = [value for value in values if name[0] in value.names]
    return found


def _within(number: float, value: ScaleValue) -> bool:
    if value.low is None and value.high is None:
        return False
    return (value.low is None or value.low <= number) and (value.high is None or number < value.high)


def _number(groups: dict[str, str | None], offset: float) -> float | None:
    first, last = groups.get("first"), groups.get("last")
    if first and last:  # "4.-8. Rippe": how many
        return float(last) - float(first) + 1
    raw = groups.get("n") or groups.get("m")
    if raw is None:
        return None
    if raw.endswith("1/2"):
        number = float(raw[:-3].strip().replace(",", ".")) + 0.5
    elif raw[0].isdecimal() and raw.isascii():
        number = float(raw.replace(",", "."))
    elif raw in _SPELLED:
        number = _SPELLED[raw]
    else:
        return None
    number += offset
    operator = groups.get("op")
    if operator in ("<", "unter"):
        number -= _LEAST
    elif operator in (">", "ueber"):
        number += _LEAST
    unit = groups.get("u")
    return number * _UNIT_DAYS[unit] if unit else number


def _canonical(said: str) -> str:
    compact = said.replace(" ", "") if len(said) <= len("iii a") else said
    roman = _ROMAN_VALUE().fullmatch(compact)
    if roman:
        return _ROMAN[roman.group(1)] + roman.group(2)
    if compact[:1].isdecimal():
        return compact
    return _ORDINALS.get(said) or _SPELLED_DEGREES.get(said, " ".join(said.split()))


def check_scales(title_of: Callable[[str], str | None], folder: Path | None = None) -> list[str]:
    """Return what in the scales disagrees with an edition, one sentence a problem; empty when all is well.

    Args:
        title_of: full title of a code of the edition (combined codes included), None where it has none.
        folder: where the two tables are; by default those of the package.
    """
    problems: list[str] = []
    checked: set[int] = set()
    for pattern in load_scales(folder):
        problems.extend(
            f"{_place(pattern.row)}: the edition has no code {code} (without degree)."
            for code in pattern.without
            if not _titles(code, title_of)
        )
        for value in pattern.values:
            if id(value) not in checked:
                checked.add(id(value))
                problems.extend(_check_value(value, title_of))
    return problems


def _check_value(value: ScaleValue, title_of: Callable[[str], str | None]) -> list[str]:
    problems = []
    for code in value.codes:
        titles = _titles(code, title_of)
        if not titles:
            problems.append(f"{_place(value.row)}: the edition has no code {code}.")
        for concrete, title in titles:
            said = fold(canonical(title))  # titles hold no-break spaces
            if value.titles and not any(fold(part) in said for part in value.titles):
                problems.append(
                    f"{_place(value.row)}: {concrete} is titled {title!r}, which does not say "
                    f"{' or '.join(map(repr, value.titles))}."
                )
    return problems


def _titles(code: str, title_of: Callable[[str], str | None]) -> list[tuple[str, str]]:
    """Return (code, title) of every code of the edition that ``code`` with its ``?`` stands for."""
    slots = [("0123456789" if char == "?" else char) for char in code]
    found = []
    for letters in product(*slots):
        concrete = "".join(letters)
        title = title_of(concrete)
        if title is not None and "nicht belegt" not in title.lower():
            found.append((concrete, title))
    return found


def _place(row: Row) -> str:
    return f"{row.file}, line {row.line}"
