"""Which phrases are asked and what would be right: drawn from the corpus by seed, or given as gold.

Holds: the shapes of cases, the stratified draw and the JSON form that is stored with every result. Refuses:
asking anything, and every look at an answer. A draw depends on the seed and on the entries, never on their
order.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.evaluation.lexicon import build_lexicon
from alpha_id_runtime.evaluation.noise import NoiseRates, add_noise
from alpha_id_runtime.evaluation.paraphrase import paraphrase
from alpha_id_runtime.text import is_calibration, twin_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

CaseKind = Literal["noise", "paraphrase", "held_out", "self", "gold"]
CONTEXT = "context"  # in ``Case.done``: the phrase alone cannot tell the code

_Changed = tuple[str, tuple[str, ...], frozenset[int]]

# A chapter gets at least this part of an equal share, so that a small one can be read at all.
FLOOR_SHARE = 0.25


class Corpus(Protocol):
    """The corpus as equally long columns, row by row as in every index."""

    @property
    def text(self) -> Sequence[str]:
        """The phrases."""

    @property
    def norm(self) -> Sequence[str]:
        """``normalise`` of each phrase."""

    @property
    def origin(self) -> Sequence[str]:
        """``alpha_id``, ``title`` or ``inclusion``."""

    @property
    def valid(self) -> Sequence[bool]:
        """Whether the phrase is valid."""

    @property
    def icd_code(self) -> Sequence[str]:
        """The code that the phrase stands for, without mark."""

    @property
    def billable(self) -> Sequence[bool]:
        """Whether that code is billable in at least one sector."""

    @property
    def chapter(self) -> Sequence[str]:
        """The chapter of that code (Roman numeral)."""


@dataclass(frozen=True)
class Case:
    """One phrase that is asked, with what would be right.

    Args:
        id: unique within a run.
        kind: where it comes from.
        text: what is asked.
        gold: the codes that are right, all of them; empty for a line that holds no diagnosis.
        accept: as long as ``gold``: for each gold code the codes that are as right in its place; or empty.
        source_row: row of the corpus that it was made of; None for gold.
        done: what was done to the text (``homophone:ph>f``, ``word order:compound``).
        chapter: chapter of the first gold code; "" where there is none.
        excluded_rows: rows that must not be candidates (held out: the entry and its twins).
    """

    id: str
    kind: CaseKind
    text: str
    gold: tuple[str, ...]
    accept: tuple[tuple[str, ...], ...] = ()
    source_row: int | None = None
    done: tuple[str, ...] = ()
    chapter: str = ""
    excluded_rows: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ListCase:
    """A list of phrases that is asked as one input. ``lines`` are gold cases, in order."""

    id: str
    lines: tuple[Case, ...]


def draw_cases(
    corpus: Corpus,
    kind: CaseKind,
    n: int,
    seed: int,
    *,
    rates: NoiseRates | None = None,
    abbreviations: Mapping[str, str] | None = None,
    calibration: bool = False,
) -> list[Case]:
    """Return up to ``n`` cases of a kind, drawn by ``seed``, in order of their id.

    Drawn from the valid, billable Alpha-ID phrases that no ranking is calibrated on (``is_calibration``),
    stratified by chapter: in proportion to the chapter's phrases, but at least a quarter of an equal share
    (or all there are). Within a chapter the order is that of a hash of seed, kind and phrase; an entry that
    no case can be made of makes room for the next. Rows with one normalised text are one entry; the codes of
    its other valid rows count as equally right.

    Args:
        corpus: see ``Corpus``.
        kind: ``gold`` cannot be drawn.
        n: cases wanted; fewer where the corpus holds fewer.
        seed: any integer.
        rates: of noise; the defaults of ``NoiseRates`` otherwise.
        abbreviations: abbreviation -> long form, for paraphrases.
        calibration: draw from the calibration quarter instead, to train a ranking on: never to evaluate.

    Raises:
        UsageError: ``kind`` is ``gold`` or ``n`` is negative.
    """
    if kind == "gold" or n < 0:
        raise UsageError(
            f"Cannot draw {n} cases of kind {kind!r}: gold cases are read from a file, others from 0 up."
        )
    make = _maker(corpus, kind, seed, rates or NoiseRates(), abbreviations or {})
    strata: dict[str, list[int]] = defaultdict(list)
    for row in _entries(corpus, calibration=calibration):
        strata[corpus.chapter[row]].append(row)
    quota = allocate({chapter: len(rows) for chapter, rows in strata.items()}, n)
    cases: list[Case] = []
    spare: list[int] = []
    for chapter, rows in sorted(strata.items()):
        rows.sort(key=lambda row: _digest(seed, kind, corpus.norm[row]))
        spare += _take(rows, make, quota[chapter], cases)
    # What a chapter could not give comes from the others.
    spare.sort(key=lambda row: _digest(seed, kind, corpus.norm[row]))
    _take(spare, make, min(n, sum(quota.values())) - len(cases), cases)
    return sorted(cases, key=lambda case: case.id)


def _take(rows: list[int], make: Callable[[int], Case | None], wanted: int, cases: list[Case]) -> list[int]:
    """Append ``wanted`` cases made of ``rows``, in order, as far as they go; return the rest of them."""
    end = len(cases) + wanted
    for at, row in enumerate(rows):
        if len(cases) >= end:
            return rows[at:]
        if (case := make(row)) is not None:
            cases.append(case)
    return []


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return how many of ``n`` cases each stratum gives: its proportion, or the floor where that is more.

    Never more than a stratum holds; the parts add up to ``min(n, sum of sizes)``.
    """
    n = min(n, sum(sizes.values()))
    floor = int(n * FLOOR_SHARE / len(sizes)) if sizes else 0
    quota: dict[str, int] = {}
    while True:
        rest, open_ = n - sum(quota.values()), {k: v for k, v in sizes.items() if k not in quota}
        share = {k: rest * v / sum(open_.values()) for k, v in open_.items()}
        raised = {k: min(floor, sizes[k]) for k, exact in share.items() if exact < min(floor, sizes[k])}
        if not raised:
            break
        quota |= raised
    # Largest remainders take what rounding leaves over.
    over = rest - sum(int(exact) for exact in share.values())
    for k in sorted(share, key=lambda k: (int(share[k]) - share[k], k)):
        quota[k] = int(share[k]) + (over > 0)
        over -= 1
    return {k: quota[k] for k in sizes}


def held_out_rows(cases: Iterable[Case]) -> frozenset[int]:
    """Return all rows that the cases keep out of the candidates: what no trained part may have seen."""
    return frozenset(row for case in cases for row in case.excluded_rows)


def case_rng(seed: int, *entry: str) -> random.Random:
    """Return a generator of its own for one entry: what happens to it depends on no other entry."""
    return random.Random(_digest(seed, *entry))  # noqa: S311 (repeatable draws, nothing secret)


def cases_to_json(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return the cases as plain dictionaries, sets sorted, ready for ``json.dumps``."""
    return [{**asdict(case), "excluded_rows": sorted(case.excluded_rows)} for case in cases]


def cases_from_json(rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Return the cases that ``cases_to_json`` wrote.

    Raises:
        UsageError: a field is missing or unknown, or the kind is none of ``CaseKind``.
    """
    names = {f.name for f in fields(Case)}
    cases = []
    for at, row in enumerate(rows):
        if set(row) != names or row["kind"] not in get_args(CaseKind):
            raise UsageError(
                f"Stored case {at} is not of this version: expected a known kind and the fields "
                f"{', '.join(sorted(names))}. Evaluate again to write the cases anew."
            )
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, (list, tuple)) else v for k, v in row.items()}
        plain["accept"] = tuple(tuple(codes) for codes in row["accept"])
        plain["excluded_rows"] = frozenset(row["excluded_rows"])
        cases.append(Case(**plain))
    return cases


def cases_digest(cases: Iterable[Case]) -> str:
    """Return 16 hex digits that two runs share only if they asked the same cases."""
    plain = json.dumps(cases_to_json(cases), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def _entries(corpus: Corpus, *, calibration: bool) -> list[int]:
    """Return the rows that may be drawn of one side of the split, the first of each normalised text."""
    first: dict[str, int] = {}
    for row, norm in enumerate(corpus.norm):
        if norm and corpus.origin[row] == "alpha_id" and corpus.valid[row] and corpus.billable[row]:
            first.setdefault(norm, row)
    return [row for norm, row in first.items() if is_calibration(twin_key(norm)) is calibration]


def _maker(
    corpus: Corpus, kind: CaseKind, seed: int, rates: NoiseRates, abbreviations: Mapping[str, str]
) -> Callable[[int], Case | None]:
    """Return the function that makes a case of one row, or None where it cannot."""
    codes: dict[str, list[str]] = defaultdict(list)
    for norm, code, valid in zip(corpus.norm, corpus.icd_code, corpus.valid, strict=True):
        if valid and code not in codes[norm]:
            codes[norm].append(code)
    change = _changer(corpus, kind, seed, rates, abbreviations)

    def make(row: int) -> Case | None:
        changed = change(row)
        if changed is None:
            return None
        text, done, excluded = changed
        norm, gold = corpus.norm[row], corpus.icd_code[row]
        return Case(
            id=f"{kind}-{_digest(seed, kind, norm)[:12]}",
            kind=kind,
            text=text,
            gold=(gold,),
            accept=(tuple(sorted(code for code in codes[norm] if code != gold)),),
            source_row=row,
            done=done,
            chapter=corpus.chapter[row],
            excluded_rows=excluded,
        )

    return make


def _changer(
    corpus: Corpus, kind: CaseKind, seed: int, rates: NoiseRates, abbreviations: Mapping[str, str]
) -> Callable[[int], _Changed | None]:
    """Return the function from a row to the text asked, what was done to it, and the rows to exclude."""
    if kind == "noise":
        taken = frozenset(corpus.norm)

        def noisy(row: int) -> _Changed | None:
            made = add_noise(corpus.text[row], case_rng(seed, kind, corpus.norm[row]), rates, taken)
            return (*made, frozenset()) if made else None

        return noisy
    if kind == "paraphrase":
        lexicon = build_lexicon(corpus.text, corpus.norm, corpus.icd_code, abbreviations)

        def reworded(row: int) -> _Changed | None:
            rng = case_rng(seed, kind, corpus.norm[row])
            made = paraphrase(corpus.text[row], corpus.icd_code[row], lexicon, rng)
            return (*made, frozenset()) if made else None

        return reworded
    if kind == "held_out":
        twins: dict[str, list[int]] = defaultdict(list)
        keys = [twin_key(norm) for norm in corpus.norm]
        for row, key in enumerate(keys):
            twins[key].append(row)
        phrases = Counter(corpus.icd_code)

        def held_out(row: int) -> _Changed | None:
            gone, code = twins[keys[row]], corpus.icd_code[row]
            if phrases[code] <= sum(corpus.icd_code[twin] == code for twin in gone):
                return None  # the code would keep no phrase, and nothing could find it
            return corpus.text[row], (), frozenset(gone)

        return held_out
    return lambda row: (corpus.text[row], (), frozenset())


def _digest(seed: int, *parts: str) -> str:
    return hashlib.sha256("\x1f".join((str(seed), *parts)).encode()).hexdigest()
