"""One evaluation from a published build to a stored report: what the command and the asset both run.

Holds: which cases are asked of which Suggester, provenance, and the files of a report. Refuses: training (the
caller hands over vectors for held-out cases) and printing.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alpha_id_runtime import __version__
from alpha_id_runtime.errors import ArtefactsMissingError, UsageError, list_problems
from alpha_id_runtime.evaluation.adapter import (
    chapter_of,
    corpus_of,
    knowledge_of,
    ranker_of,
    routed,
    told,
)
from alpha_id_runtime.evaluation.cases import Case, CaseKind, cases_digest, draw_cases, held_out_rows
from alpha_id_runtime.evaluation.gold import GoldList, check_gold, load_gold
from alpha_id_runtime.evaluation.gold_cases import extraction_of, gold_cases, list_cases
from alpha_id_runtime.evaluation.page import render_page
from alpha_id_runtime.evaluation.report import to_json
from alpha_id_runtime.evaluation.result import SCHEMA, EvaluationResult
from alpha_id_runtime.evaluation.runner import evaluate
from alpha_id_runtime.files import write_atomically
from alpha_id_runtime.pipeline import Suggester
from alpha_id_runtime.semantic import Semantic, open_hub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.evaluation.adapter import Ranker
    from alpha_id_runtime.evaluation.result import Extraction
    from alpha_id_runtime.layout import StorageLayout
    from alpha_id_runtime.model import Mode

    HeldOut = Callable[[Sequence[Case]], Semantic]
    Progress = Callable[[str], None]

DEFAULT_CASES = 1500
DEFAULT_SEED = 1
# A batch of hundreds may take a hub longer than the one request that the configured budget is meant for.
_BATCH_BUDGET = 120.0
_WITHOUT_VECTORS = (
    "Mode A cannot be evaluated: the published build is lexical-only. Build it with: alpha-id index build "
    "--full (or evaluate mode C: alpha-id eval --mode c)"
)
# What says nothing about how answers come about, or names places of one machine.
_NOT_SHOWN = ("hub", "filter", "build")


@dataclass(frozen=True)
class Plan:
    """What is to be evaluated.

    Args:
        modes: ``c``, ``a`` or both.
        cases: to draw: two fifths noise, two fifths paraphrases, the rest self-retrieval.
        seed: of draw, noise, resampling and omissions.
        holdout: ask as many held-out entries besides.
        gold: lists to ask, None for none.
        hide_gold: leave the phrases of the lists out of all that is written: they are from outside.
    """

    modes: tuple[Mode, ...] = ("c",)
    cases: int = DEFAULT_CASES
    seed: int = DEFAULT_SEED
    holdout: bool = False
    gold: Path | None = None
    hide_gold: bool = False

    @property
    def drawn(self) -> dict[CaseKind, int]:
        """How many cases of each kind are drawn, at most."""
        part = round(self.cases * 2 / 5)
        counts: dict[CaseKind, int] = {"noise": part, "paraphrase": part, "self": self.cases - 2 * part}
        return {**counts, "held_out": self.cases} if self.holdout else counts


def shipped_gold() -> Path | None:
    """Return the gold lists of the checkout this package lies in, None where it is installed elsewhere."""
    folder = Path(__file__).resolve().parents[2] / "data" / "gold"
    return folder if any(folder.glob("*.jsonl")) else None


def run_plan(
    build: Build,
    config: Config,
    plan: Plan,
    *,
    held_out: HeldOut | None = None,
    progress: Progress | None = None,
) -> EvaluationResult:
    """Draw, ask and judge; every answer comes through ``Suggester.suggest_many``.

    Args:
        build: the published build.
        config: how to answer; its mode and filter do not count.
        plan: what to ask.
        held_out: returns vectors that saw none of the given cases' ``excluded_rows``; needed where mode A is
            asked held-out cases.
        progress: told what goes on, in a line.

    Raises:
        UsageError: nothing to ask, gold lists that cannot be read, or ir-measures is not installed.
        ArtefactsMissingError: mode A is asked for and the build holds no vectors.
        ProviderError: a hub is configured and there is no token.
    """
    tell = progress or (lambda _: None)
    if find_spec("ir_measures") is None:
        raise UsageError('Evaluation needs ir-measures: install it with pip install "alpha-id[eval]".')
    if "a" in plan.modes and build.manifest.lexical_only:
        raise ArtefactsMissingError(_WITHOUT_VECTORS)
    corpus = corpus_of(build)
    cases: list[Case] = []
    for kind, count in plan.drawn.items():
        drawn = draw_cases(corpus, kind, count, plan.seed)
        tell(f"{kind}: {len(drawn):,} cases drawn")
        cases += drawn
    gold = _read_gold(plan.gold) if plan.gold is not None else []
    lists = list_cases(gold, chapter_of(build))
    cases += gold_cases(lists)
    if not cases:
        raise UsageError("Nothing to evaluate: no cases are asked for and no gold lists are there.")
    rankers: dict[str, Ranker] = {}
    vectors: dict[str, str] = {}
    for mode in plan.modes:
        plain, apart = _suggesters(build, config, mode, cases, held_out)
        ranker = routed(ranker_of(plain), ranker_of(apart))
        rankers[mode] = told(ranker, _teller(tell, mode, len(cases)))
        if mode == "a":
            if config.provider == "hub":
                tell(_announced(config, cases, len(lists)))
            vectors = {"published": _fingerprint(plain), "held out": _fingerprint(apart)}
    extraction: Extraction | None = extraction_of(gold)
    return evaluate(
        rankers,
        cases,
        seed=plan.seed,
        lists=lists,
        knowledge=knowledge_of(build),
        extraction=extraction,
        provenance=_provenance(build, config, plan, vectors, gold),
        hide_gold=plan.hide_gold,
    )


@dataclass(frozen=True)
class StoredReport:
    """The files of one report: the page, and all figures with the cases as JSON."""

    page: Path
    figures: Path


def write_report(
    storage: StorageLayout, result: EvaluationResult, *, page: Path | None = None, name: str = "eval"
) -> StoredReport:
    """Write page and JSON under ``storage/reports`` (the page elsewhere where ``page`` says so).

    Raises:
        StorageError: a folder cannot be written.
    """
    moment = dt.datetime.now(tz=dt.UTC)
    stem = f"{name}-{moment:%Y%m%dT%H%M%S%f}Z-{''.join(result.modes)}-seed{result.seed}"
    stored = StoredReport(page or storage.reports / f"{stem}.html", storage.reports / f"{stem}.json")
    write_atomically(stored.figures, to_json(result).encode())
    write_atomically(stored.page, render_page(result).encode())
    return stored


def last_report(storage: StorageLayout, result: EvaluationResult) -> dict[str, Any] | None:
    """Return the newest stored report on the same cases and in the same form, None where there is none."""
    digest = cases_digest(result.cases)
    for file in sorted(storage.reports.glob("*.json"), key=lambda f: f.stat().st_mtime_ns, reverse=True):
        try:
            plain = json.loads(file.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(plain, dict) and (plain.get("schema"), plain.get("cases_digest")) == (SCHEMA, digest):
            return plain
    return None


def _read_gold(path: Path) -> list[GoldList]:
    lists = load_gold(path)
    faults = check_gold(lists)
    if faults:
        raise UsageError(
            f"The gold lists at {path} are not as data/gold/README.md says:{list_problems(faults)}. Correct "
            "them; nothing was evaluated."
        )
    return lists


def _suggesters(
    build: Build, config: Config, mode: Mode, cases: Sequence[Case], held_out: HeldOut | None
) -> tuple[Suggester, Suggester]:
    """Return the Suggester of users, and the one for held-out cases: another only where a part is trained."""
    settings = replace(config, mode=mode)
    if mode == "c":
        plain = Suggester(build, settings)
        return plain, plain
    if config.provider == "hub":
        budget = max(config.semantic.budget_seconds, _BATCH_BUDGET)
        settings = replace(settings, semantic=replace(config.semantic, budget_seconds=budget))
    # Opened here and not at the first request: what is missing must be said, not answered by mode C.
    hub = open_hub(config) if config.provider == "hub" else None
    plain = Suggester(build, settings, semantic=Semantic.open(build, hub))
    if not held_out_rows(cases):
        return plain, plain
    if held_out is None:
        raise UsageError("Held-out cases in mode A need vectors that never saw them; none were handed over.")
    asked = [case for case in cases if case.excluded_rows]
    return plain, Suggester(build, settings, semantic=held_out(asked))


def _fingerprint(suggester: Suggester) -> str:
    return suggester.semantic.provider.fingerprint if suggester.semantic else ""


def _announced(config: Config, cases: Sequence[Case], lists: int) -> str:
    """Return what the hub will be asked, before it is."""
    pricing = config.hub.pricing
    tokens = pricing.tokens(case.text for case in cases)
    euros = pricing.euros(tokens)
    price = "at a price that is not configured" if euros is None else f"about {euros:.4f} EUR"
    return f"mode A sends {len(cases):,} cases to the hub: about {tokens:,} tokens, {price}" + (
        f"; and {lists} gold lists five times" if lists else ""
    )


def _teller(tell: Progress, mode: str, cases: int) -> Callable[[int], None]:
    lists_told = False

    def asked(count: int) -> None:
        nonlocal lists_told
        if count <= cases:
            tell(f"mode {mode.upper()}: {count:,} of {cases:,} cases asked")
        elif not lists_told:
            lists_told = True
            tell(f"mode {mode.upper()}: all cases asked, now the gold lists")

    return asked


def _provenance(
    build: Build, config: Config, plan: Plan, vectors: dict[str, str], gold: Sequence[GoldList]
) -> dict[str, Any]:
    manifest = build.manifest
    sections = {
        each.name: asdict(getattr(config, each.name))
        for each in fields(config)
        if is_dataclass(getattr(config, each.name)) and each.name not in _NOT_SHOWN
    }
    provenance: dict[str, Any] = {
        "Alpha-ID": manifest.alpha_id.edition,
        "ICD-10-GM": manifest.claml.edition,
        "build": manifest.build_id,
        "alpha-id": __version__,
        "created": f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d %H:%M:%S} UTC",
        "sources": {"alpha_id": manifest.alpha_id.name, "claml": manifest.claml.name},
        "phrases": {
            name: manifest.counts[name] for name in ("phrases", "entries") if name in manifest.counts
        },
        "plan": {"modes": list(plan.modes), "cases": plan.drawn},
        "configuration": {"provider": config.provider, "reranker": config.reranker, **sections},
    }
    if vectors:
        provenance["vectors"] = vectors
    if gold:
        named = [code for each in gold for phrase in each.phrases for code in phrase.codes]
        provenance["gold"] = {
            "lists": len(gold),
            "phrases": sum(len(each.phrases) for each in gold),
            "editions": sorted({each.edition for each in gold if each.edition is not None}),
            "gold codes": len(named),
            "not terminal in this edition, counted as prefixes": sum(
                not build.codes.is_terminal(code) for code in named
            ),
        }
    return provenance
