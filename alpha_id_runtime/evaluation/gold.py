"""Gold lists: phrases with the codes a coder would give, and the dictation they were drawn from.

Holds: the shapes, reading (JSONL as described in ``data/gold/README.md``, or a TSV of phrase and code), the
checker and the extraction ceiling. Refuses: phrases in messages (they are named by list and index), and every
look at what the system answers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.errors import UsageError, list_problems
from alpha_id_runtime.text import canonical, normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

# What a phrase is like: the slices of the evaluation. "plain" stands alone, the others combine.
KINDS = (
    "plain", "abbreviation", "typo", "dictation", "laterality", "certainty", "lay", "degree", "two_codes",
    "no_diagnosis",
)  # fmt: skip

_LIST_KEYS = {"id", "specialty", "edition", "dictation", "phrases"}
_PHRASE_KEYS = {"text", "codes", "accept", "context", "kinds"}
_MARK = re.compile(r"\[\[(\d+)(~?)\|([^\[\]]+)\]\]")
_CODE = re.compile(r"[A-Z]\d\d(?:\.\d{1,2})?")
_TSV_CODE = re.compile(rf"({_CODE.pattern})(?:\.?-)?[+*!†#]?")
_TSV_PHRASE_NAMES = ("phrase", "text")
_TSV_CODE_NAMES = ("code", "codes", "icd_code", "icd", "gold", "gold_code", "gold_codes")


@dataclass(frozen=True)
class GoldPhrase:
    """One line as an extractor would hand it over, with what a coder would make of it.

    Attributes:
        text: the line.
        codes: the gold codes, without mark, right together; empty where the line holds no diagnosis.
        accept: as long as ``codes``: for each gold code the codes that are as right in its place.
        context: the phrase alone cannot tell the code; it takes the rest of the case.
        kinds: members of ``KINDS``; empty from a TSV.
    """

    text: str
    codes: tuple[str, ...]
    accept: tuple[tuple[str, ...], ...]
    context: bool = False
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class GoldList:
    """The phrases of one case. ``place`` is "file:line".

    Attributes:
        id: unique among the lists that are read together.
        specialty: of the physician; from a TSV its column ``kind``, "" without one.
        edition: year of the ICD-10-GM that the codes are of; None from a TSV.
        dictation: the source text with the phrases marked; None from a TSV.
        phrases: the lines in the order of the dictation.
        place: where the list was read, as "file:line".
    """

    id: str
    specialty: str
    edition: int | None
    dictation: str | None
    phrases: tuple[GoldPhrase, ...]
    place: str


@dataclass(frozen=True)
class Mark:
    """A marked span, evidence for phrase ``phrase``; ``extractable``: it can be taken as a line."""

    phrase: int
    text: str
    extractable: bool


@dataclass(frozen=True)
class ExtractionCeiling:
    """What a generous extractor could find at best, before any matching.

    Attributes:
        diagnoses: gold phrases with a code, in lists with a dictation.
        found: those of them that stand in the dictation as one contiguous span.
        missed: list id and phrase index of the others (implied, or scattered over the text).
        without_dictation: lists that say nothing about extraction.
    """

    diagnoses: int
    found: int
    missed: tuple[tuple[str, int], ...]
    without_dictation: int

    @property
    def share(self) -> float | None:
        """``found / diagnoses`` in [0, 1]; None where there is no diagnosis to find."""
        return self.found / self.diagnoses if self.diagnoses else None


def load_gold(path: Path) -> list[GoldList]:
    """Return the gold lists of a ``.jsonl`` file, of all ``*.jsonl`` in a folder, or of a ``.tsv``.

    A TSV holds a phrase, a tab and its code or codes (blank, comma or semicolon between them; none or "-": no
    diagnosis); each row is a list of one phrase. With a header, the columns go by name (phrase, code, kind).

    Raises:
        UsageError: nothing to read, or lines that do not hold what they must; names each file and line.
    """
    lists: list[GoldList] = []
    problems: list[str] = []
    for file in _files(path):
        read = _read_tsv if file.suffix == ".tsv" else _read_jsonl
        found, wrong = read(file.name, _lines(file))
        lists.extend(found)
        problems.extend(wrong)
    if problems:
        raise UsageError(
            f"The gold lists at {path} cannot be read as data/gold/README.md says:{list_problems(problems)}. "
            "Correct these lines; nothing was evaluated."
        )
    if not lists:
        raise UsageError(f"No gold list in {path}: give a .jsonl or .tsv file with at least one line.")
    return lists


def check_gold(
    lists: Sequence[GoldList],
    is_terminal: Callable[[str], bool] | None = None,
    *,
    edition: int | None = None,
) -> list[str]:
    """Return every fault of the lists, each naming place, list, and phrase by index; none: an empty list.

    Args:
        lists: what ``load_gold`` returned.
        is_terminal: whether a code is terminal and has content in the edition; None: codes are not checked.
        edition: the year that ``is_terminal`` speaks for; lists of another edition are a fault.
    """
    problems = [f"list id {i!r} is used {n} times" for i, n in Counter(g.id for g in lists).items() if n > 1]
    for gold in lists:
        faults = [*_list_faults(gold, edition), *mark_faults(gold)]
        for index, phrase in enumerate(gold.phrases):
            said = [*_phrase_faults(phrase), *_code_faults(phrase, is_terminal)]
            if gold.dictation is not None:
                said.extend(_kind_faults(phrase))
            faults.extend(f"phrase {index}: {fault}" for fault in said)
        problems.extend(f"{gold.place}: {gold.id}: {fault}" for fault in faults)
    return problems


def extraction_ceiling(lists: Iterable[GoldList]) -> ExtractionCeiling:
    """Return the share of gold diagnoses that a generous extractor finds as a line.

    Found is a phrase with a code whose mark says that the span can be taken as it stands.
    """
    diagnoses, without = 0, 0
    missed: list[tuple[str, int]] = []
    for gold in lists:
        if gold.dictation is None:
            without += 1
            continue
        extractable = {mark.phrase for mark in marks(gold.dictation) if mark.extractable}
        coded = [i for i, phrase in enumerate(gold.phrases) if phrase.codes]
        diagnoses += len(coded)
        missed.extend((gold.id, i) for i in coded if i not in extractable)
    return ExtractionCeiling(diagnoses, diagnoses - len(missed), tuple(missed), without)


def marks(dictation: str) -> tuple[Mark, ...]:
    """Return the marks of a dictation in order; what does not parse as a mark is no mark."""
    return tuple(Mark(int(m[1]), m[3], m[2] == "") for m in _MARK.finditer(dictation))


def plain_dictation(dictation: str) -> str:
    """Return the dictation as spoken, without its marks."""
    return _MARK.sub(lambda m: m[3], dictation)


def mark_faults(gold: GoldList) -> list[str]:
    """Return what is wrong with the marks of a list: see ``check_gold``."""
    if gold.dictation is None:
        return []
    plain = plain_dictation(gold.dictation)
    faults = ["the dictation holds a mark that does not parse"] if "[[" in plain or "]]" in plain else []
    found = marks(gold.dictation)
    spoken = f" {normalise(plain)} "
    for mark in found:
        if mark.phrase >= len(gold.phrases):
            faults.append(f"a mark names phrase {mark.phrase}, which is not there")
        elif mark.extractable and canonical(mark.text) != canonical(gold.phrases[mark.phrase].text):
            faults.append(f"phrase {mark.phrase}: its text is not the marked span")
    plainly = {mark.phrase for mark in found if mark.extractable}
    implied = {mark.phrase for mark in found if not mark.extractable}
    for index, phrase in enumerate(gold.phrases):
        if index not in plainly | implied:
            faults.append(f"phrase {index}: not marked in the dictation")
        elif index in plainly & implied:
            faults.append(f"phrase {index}: marked both as a line and as none")
        elif index in implied and f" {normalise(phrase.text)} " in spoken:
            # Otherwise the ceiling would be lower than the text is.
            faults.append(f"phrase {index}: marked as no line, yet its text stands in the dictation")
    return faults


def _list_faults(gold: GoldList, edition: int | None) -> list[str]:
    faults = [] if gold.phrases else ["no phrases"]
    if edition is not None and gold.edition is not None and gold.edition != edition:
        faults.append(f"of edition {gold.edition}, the codes are checked against {edition}")
    return faults


def _phrase_faults(phrase: GoldPhrase) -> list[str]:
    faults = [] if phrase.text.strip() else ["empty text"]
    if len(phrase.text.splitlines()) > 1:
        faults.append("more than one line")
    if phrase.context and not phrase.codes:
        faults.append("context without a code")
    return faults


def _code_faults(phrase: GoldPhrase, is_terminal: Callable[[str], bool] | None) -> list[str]:
    named = [*phrase.codes, *(code for others in phrase.accept for code in others)]
    faults = [f"{code} is named {n} times" for code, n in Counter(named).items() if n > 1]
    if is_terminal is not None:
        faults.extend(
            f"{code} is not a valid terminal code" for code in dict.fromkeys(named) if not is_terminal(code)
        )
    return faults


def _kind_faults(phrase: GoldPhrase) -> list[str]:
    faults = [f"unknown kind {kind!r}" for kind in phrase.kinds if kind not in KINDS]
    if not phrase.kinds:
        faults.append("no kind")
    if ("two_codes" in phrase.kinds) != (len(phrase.codes) > 1):
        faults.append("kind two_codes and the number of codes disagree")
    if ("no_diagnosis" in phrase.kinds) != (not phrase.codes):
        faults.append("kind no_diagnosis and the number of codes disagree")
    if "plain" in phrase.kinds and len(phrase.kinds) > 1:
        faults.append("kind plain beside another")
    return faults


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise UsageError(
                f"No *.jsonl in the folder {path}: name a folder of gold lists, or a .jsonl or .tsv file."
            )
        return files
    if not path.is_file():
        raise UsageError(
            f"The gold lists {path} are not there: name a .jsonl or .tsv file or a folder of *.jsonl."
        )
    if path.suffix not in {".jsonl", ".tsv"}:
        raise UsageError(f"{path} is neither .jsonl nor .tsv: gold lists are read from these two only.")
    return [path]


def _lines(file: Path) -> list[tuple[int, str]]:
    """Return the non-empty lines with their numbers from 1; only line feeds part them, as in the formats."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read as UTF-8 text ({type(error).__name__}): save it anew."
        ) from error
    return [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _read_jsonl(name: str, lines: list[tuple[int, str]]) -> tuple[list[GoldList], list[str]]:
    lists, problems = [], []
    for number, line in lines:
        place = f"{name}:{number}"
        try:
            lists.append(_list_of(json.loads(line), place))
        except json.JSONDecodeError as error:
            problems.append(f"{place}: not JSON ({error.msg}, column {error.colno})")
        except ValueError as error:
            problems.append(f"{place}: {error}")
    return lists, problems


def _list_of(row: Any, place: str) -> GoldList:
    """Return one list; a ValueError says in words what is wrong."""
    _require(isinstance(row, dict), "not a JSON object")
    _no_other_keys(row, _LIST_KEYS, "the list")
    edition, phrases, dictation = row.get("edition"), row.get("phrases"), row.get("dictation")
    _require(type(edition) is int, "edition is not a year")
    _require(isinstance(phrases, list), "phrases is not a list")
    _require(dictation is None or isinstance(dictation, str), "dictation is not a text")
    return GoldList(
        id=_text(row, "id", "the list"),
        specialty=_text(row, "specialty", "the list"),
        edition=edition,
        dictation=dictation,
        phrases=tuple(_phrase_of(phrase, f"phrase {i}") for i, phrase in enumerate(phrases)),
        place=place,
    )


def _phrase_of(row: Any, where: str) -> GoldPhrase:
    _require(isinstance(row, dict), f"{where} is not an object")
    _no_other_keys(row, _PHRASE_KEYS, where)
    codes = _codes(row.get("codes"), f"{where}, codes")
    accept = row.get("accept", {})
    _require(isinstance(accept, dict) and set(accept) <= set(codes), f"{where}, accept names no gold code")
    context = row.get("context", False)
    _require(isinstance(context, bool), f"{where}, context is not true or false")
    kinds = row.get("kinds")
    _require(
        isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds),
        f"{where}, kinds are no texts",
    )
    return GoldPhrase(
        text=_text(row, "text", where),
        codes=codes,
        accept=tuple(_codes(accept.get(code, []), f"{where}, accept") for code in codes),
        context=context,
        kinds=tuple(kinds),
    )


def _codes(value: Any, where: str) -> tuple[str, ...]:
    _require(isinstance(value, list), f"{where} is not a list")
    _require(
        all(isinstance(code, str) and _CODE.fullmatch(code) for code in value),
        f"{where} holds something that is not spelled like a code without mark",
    )
    return tuple(value)


def _text(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    _require(isinstance(value, str) and bool(value.strip()), f"{where}: {key} is not a text")
    return str(value)


def _no_other_keys(row: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(row) - known)
    _require(not unknown, f"{where} has unknown keys {', '.join(unknown)}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _read_tsv(name: str, lines: list[tuple[int, str]]) -> tuple[list[GoldList], list[str]]:
    phrase_at, code_at, kind_at, body = _tsv_columns(lines)
    lists, problems = [], []
    for number, line in body:
        cells = [cell.strip() for cell in line.split("\t")]
        place = f"{name}:{number}"
        codes = _tsv_codes(cells[code_at]) if code_at < len(cells) else None
        if codes is None or phrase_at >= len(cells) or not cells[phrase_at]:
            problems.append(f"{place}: not a phrase, a tab and a code")
            continue
        kind = cells[kind_at] if kind_at is not None and kind_at < len(cells) else ""
        phrase = GoldPhrase(cells[phrase_at], codes, ((),) * len(codes))
        lists.append(GoldList(f"{name}-{number}", kind, None, None, (phrase,), place))
    return lists, problems


def _tsv_columns(lines: list[tuple[int, str]]) -> tuple[int, int, int | None, list[tuple[int, str]]]:
    """Return the columns of phrase, code and kind, and the lines that are not the header."""
    header = [cell.strip().lower() for cell in lines[0][1].split("\t")] if lines else []
    phrase_at = next((header.index(name) for name in _TSV_PHRASE_NAMES if name in header), None)
    code_at = next((header.index(name) for name in _TSV_CODE_NAMES if name in header), None)
    if phrase_at is None or code_at is None:
        return 0, 1, None, lines
    return phrase_at, code_at, header.index("kind") if "kind" in header else None, lines[1:]


def _tsv_codes(cell: str) -> tuple[str, ...] | None:
    """Return the codes of a cell without marks, () for none, None where it is not spelled like codes."""
    parts = [part for part in re.split(r"[\s,;]+", re.sub(r"(?<=[+*!†#])(?=[A-Z])", " ", cell)) if part]
    if parts in ([], ["-"]):
        return ()
    found = [_TSV_CODE.fullmatch(part) for part in parts]
    return tuple(dict.fromkeys(m[1] for m in found if m)) if all(found) else None
