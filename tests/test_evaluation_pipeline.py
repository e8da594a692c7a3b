"""The harness on the real pipeline: what is asked, what must not be seen, what is left behind."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from alpha_id_assets.encoding.settings import training_fingerprint
from alpha_id_assets.evaluating import KEPT_ENCODERS, holdout_semantic, training_rows
from alpha_id_runtime.build import Build, open_published
from alpha_id_runtime.errors import ArtefactsMissingError, UsageError
from alpha_id_runtime.evaluation.adapter import CorpusColumns, corpus_of, knowledge_of, ranker_of, routed
from alpha_id_runtime.evaluation.cases import Case, draw_cases, held_out_rows
from alpha_id_runtime.evaluation.gold import load_gold
from alpha_id_runtime.evaluation.report import leading_figures
from alpha_id_runtime.evaluation.runner import Request, ask
from alpha_id_runtime.evaluation.session import Plan, last_report, run_plan, shipped_gold, write_report
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.model import Filter
from alpha_id_runtime.pipeline import Request as Input
from alpha_id_runtime.text import is_calibration, normalise, twin_key
from tests.evaluation_builds import QUICK, gold_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from alpha_id_runtime.config import Config
    from alpha_id_runtime.evaluation.result import EvaluationResult
    from alpha_id_runtime.pipeline import Suggester
    from alpha_id_runtime.semantic import Semantic

KINDS = ("noise", "paraphrase", "self", "held_out")
PLAN = Plan(modes=("c", "a"), cases=15, seed=3, holdout=True)


@pytest.fixture(scope="module")
def build(semantic_config: Config) -> Build:
    """Return that build, opened."""
    return open_published(StorageLayout(semantic_config.storage))


@pytest.fixture(scope="module")
def columns(build: Build) -> CorpusColumns:
    """Return its corpus."""
    return corpus_of(build)


def evaluated(build: Build, config: Config, plan: Plan) -> tuple[EvaluationResult, list[str]]:
    """Run a plan; return the result and what was told."""
    told: list[str] = []

    def held_out(cases: Sequence[Case]) -> Semantic:
        return holdout_semantic(build, cases, config, settings=QUICK, progress=told.append)

    return run_plan(build, config, plan, held_out=held_out, progress=told.append), told


def test_the_corpus_is_the_build_row_by_row(build: Build, columns: CorpusColumns) -> None:
    """Columns are as long as the index, in its order, with what the code table says of each code."""
    assert {len(column) for column in vars(columns).values()} == {len(build.phrases)}
    for entry in build.phrases.entries(list(range(0, len(build.phrases), 97))):
        assert columns.text[entry.row] == entry.text
        assert columns.norm[entry.row] == normalise(entry.text)
        tags = build.codes.tags(entry.icd_code, valid=True)
        assert (columns.billable[entry.row], columns.chapter[entry.row]) == (tags.billable, tags.chapter)
    known = knowledge_of(build)
    assert known.phrases is not None
    assert sum(known.phrases.values()) == len(build.phrases)


def test_answers_are_those_of_users(sample: Suggester) -> None:
    """A batch gives each case what the same text gives a user, and shares its time among them."""
    cases = draw_cases(corpus_of(sample.build), "noise", 12, 1)
    answers = ranker_of(sample)([Request(c.id, c.text) for c in cases])
    for case, answer in zip(cases, answers, strict=True):
        given = sample.suggest(case.text, wanted=Filter())
        assert [o.icd_code for o in answer.codes] == [each.icd_code for each in given.suggestions]
        assert [o.billable for o in answer.codes] == [each.tags.billable for each in given.suggestions]
        assert [o.complements for o in answer.codes] == [
            tuple(c.icd_code for c in each.complements) for each in given.suggestions
        ]
    assert len({answer.seconds for answer in answers}) == 1
    assert answers[0].seconds > 0


def test_excluded_rows_and_places_are_honoured(sample: Suggester) -> None:
    """A held-out entry and its twins never win; a list gets as many places as it asks for."""
    cases = draw_cases(corpus_of(sample.build), "held_out", 40, 1)
    for case in cases:
        excluded = {entry.text for entry in sample.build.phrases.entries(sorted(case.excluded_rows))}
        [result] = sample.suggest_many([Input(case.text, excluded_rows=case.excluded_rows)])
        assert not excluded & {hit.matched_phrase for each in result.suggestions for hit in each.origins}
    whole = "\n".join(case.text for case in cases)
    few, many = ranker_of(sample)([Request("few", whole), Request("many", whole, top=30)])
    assert (len(few.codes), len(many.codes)) == (10, 30)


def test_a_line_without_a_code_is_told_from_an_error(sample: Suggester) -> None:
    """What the pipeline skips is skipped, not failed."""
    [answer] = ranker_of(sample)([Request("none", "???")])
    assert (answer.codes, answer.skipped, answer.error) == ((), True, None)


def test_cases_with_excluded_rows_go_their_own_way() -> None:
    """Only they are asked of the ranker that never saw them, and answers come back in order."""
    seen: dict[str, list[str]] = {"plain": [], "held out": []}

    def rank(name: str):
        def ranker(requests):
            seen[name] += [q.case_id for q in requests]
            return []

        return ranker

    requests = [Request("1", "x"), Request("2", "x", frozenset({5})), Request("3", "x")]
    answers = ask(routed(rank("plain"), rank("held out")), requests)
    assert seen == {"plain": ["1", "3"], "held out": ["2"]}
    assert [a.case_id for a in answers] == ["1", "2", "3"]


def test_training_calibration_and_evaluation_share_no_phrase(build: Build, columns: CorpusColumns) -> None:
    """By normalised text and by twins: no entry asked was trained or calibrated on."""
    calibrating = {key for norm in columns.norm if is_calibration(key := twin_key(norm))}
    for kind in KINDS:
        cases = draw_cases(columns, kind, 10_000, 5)
        sources = {columns.norm[case.source_row] for case in cases if case.source_row is not None}
        assert len(sources) == len(cases) > 50
        assert not calibrating & {twin_key(norm) for norm in sources}
    held_out = draw_cases(columns, "held_out", 300, 5)
    texts, codes = training_rows(build, held_out_rows(held_out))
    trained = {normalise(text) for text in texts}
    asked = {normalise(case.text) for case in held_out}
    assert not trained & asked
    assert not {twin_key(norm) for norm in trained} & {twin_key(norm) for norm in asked}
    assert len(texts) == len(codes) == len(build.phrases) - len(held_out_rows(held_out))


def test_the_held_out_encoder_is_of_those_rows_and_trained_once(
    build: Build, semantic_config: Config, columns: CorpusColumns
) -> None:
    """Its fingerprint is that of the rows without entries and twins; the same rows find it lying there."""
    cases = draw_cases(columns, "held_out", 30, 11)
    told: list[str] = []
    first = holdout_semantic(build, cases, semantic_config, settings=QUICK, progress=told.append)
    expected = training_fingerprint(*training_rows(build, held_out_rows(cases)), QUICK)
    assert first.provider.fingerprint == first.index.note.fingerprint == expected
    assert build.manifest.fingerprint != expected
    assert (first.index.note.exact, first.index.note.rows) == (True, len(build.phrases))
    assert any("epoch" in line for line in told)

    told.clear()
    again = holdout_semantic(
        build, list(reversed(cases)), semantic_config, settings=QUICK, progress=told.append
    )
    assert not any("epoch" in line for line in told)
    query = first.provider.embed([cases[0].text])
    assert again.index.nearest(query, 5)[0].tolist() == first.index.nearest(query, 5)[0].tolist()


def test_only_the_newest_held_out_encoders_are_kept(
    build: Build, semantic_config: Config, columns: CorpusColumns
) -> None:
    """Each takes as much room as the published one; the one just trained is always among the kept."""
    folder = StorageLayout(semantic_config.storage).held_out_encoders
    for place in range(KEPT_ENCODERS + 2):
        (folder / f"before-{place}").mkdir(parents=True)
    made = holdout_semantic(build, draw_cases(columns, "held_out", 5, 12), semantic_config, settings=QUICK)
    kept = {entry.name for entry in folder.iterdir()}
    assert len(kept) == KEPT_ENCODERS
    assert made.provider.fingerprint in kept


def test_nothing_held_out_is_wrong_use(build: Build, semantic_config: Config) -> None:
    """An encoder without any case to be kept from would be the published one under another name."""
    with pytest.raises(UsageError, match="holds anything out"):
        holdout_semantic(build, [], semantic_config, settings=QUICK)


def test_one_seed_gives_one_set_of_figures(build: Build, semantic_config: Config) -> None:
    """Two runs in both modes differ in the clock's readings alone; another seed asks other cases."""
    first, told = evaluated(build, semantic_config, PLAN)
    again, retold = evaluated(build, semantic_config, PLAN)
    assert first.figures() == again.figures()
    assert any("epoch" in line for line in told)
    assert not any("epoch" in line for line in retold)
    assert {(b.kind, b.mode) for b in first.blocks} == {(k, m) for k in KINDS for m in "ca"}
    assert all(block.errors == 0 for block in first.blocks)
    assert [cost.degraded for cost in first.costs] == [0.0, 0.0]
    vectors = first.provenance["vectors"]
    assert vectors["published"] == build.manifest.fingerprint != vectors["held out"]
    other, _ = evaluated(build, semantic_config, Plan(modes=("c",), cases=15, seed=4))
    assert {c.id for c in other.cases}.isdisjoint(c.id for c in first.cases)
    assert "held_out" not in other.kinds


def test_a_report_is_a_page_of_its_own_with_the_cases_beside_it(
    build: Build, semantic_config: Config
) -> None:
    """The page loads nothing; the JSON holds every case; the next report on the same cases finds it."""
    storage = StorageLayout(semantic_config.storage)
    result, _ = evaluated(build, semantic_config, Plan(modes=("c", "a"), cases=20, seed=9, holdout=True))
    assert last_report(storage, result) is None
    stored = write_report(storage, result)
    page = stored.page.read_text("utf-8")
    assert not re.search(r"<script|<link|<img|<iframe|src\s*=|@import|url\(", page)
    assert "C .520" in page or "0.520" in page
    assert build.manifest.build_id in page
    assert str(semantic_config.storage) not in page
    plain = json.loads(stored.figures.read_text("utf-8"))
    assert [c["text"] for c in plain["cases"]] == [c.text for c in result.cases]
    assert last_report(storage, result) == plain
    other, _ = evaluated(build, semantic_config, Plan(modes=("c",), cases=20, seed=10))
    assert last_report(storage, other) is None
    assert leading_figures(result)["held_out a BillableRecall@10"] > 0


def test_gold_lists_from_outside_leave_no_phrase_behind(
    build: Build, semantic_config: Config, tmp_path: Path
) -> None:
    """A table of phrases and codes is asked; neither page nor JSON repeats a phrase of it."""
    plan = Plan(modes=("c",), cases=0, gold=gold_table(tmp_path), hide_gold=True)
    result, _ = evaluated(build, semantic_config, plan)
    block = result.block("gold", "c")
    assert block is not None
    assert len(block.outcomes) == 2
    assert result.provenance["gold"]["phrases"] == 2
    stored = write_report(
        StorageLayout(semantic_config.storage), result, page=tmp_path / "elsewhere" / "page.html"
    )
    assert stored.page == tmp_path / "elsewhere" / "page.html"
    assert "Geheim" not in stored.page.read_text("utf-8") + stored.figures.read_text("utf-8")


def test_gold_lists_of_the_checkout_are_asked_unless_others_are_named() -> None:
    """They are found from the package, whatever the working folder is."""
    folder = shipped_gold()
    assert folder is not None
    assert len(load_gold(folder)) >= 60


def test_what_cannot_be_evaluated_says_so(sample: Suggester, build: Build, semantic_config: Config) -> None:
    """No vectors for mode A, nothing to ask, no vectors for held-out cases: an error with its cure."""
    with pytest.raises(ArtefactsMissingError, match="index build --full"):
        run_plan(sample.build, sample.config, Plan(modes=("a",), cases=5))
    with pytest.raises(UsageError, match="Nothing to evaluate"):
        run_plan(sample.build, sample.config, Plan(cases=0))
    with pytest.raises(UsageError, match="never saw"):
        run_plan(build, semantic_config, Plan(modes=("a",), cases=5, holdout=True))


def test_gold_lists_with_a_fault_are_refused(sample: Suggester, tmp_path: Path) -> None:
    """Two lists of one id would be judged by each other's answers: the place is named, nothing is asked."""
    phrase = {"text": "Husten", "codes": ["R05"], "kinds": []}
    line = {"id": "x", "specialty": "x", "edition": 2026, "phrases": [phrase]}
    file = tmp_path / "twice.jsonl"
    file.write_text(f"{json.dumps(line)}\n{json.dumps(line)}\n", "utf-8")
    with pytest.raises(UsageError, match="used 2 times") as refused:
        run_plan(sample.build, sample.config, Plan(cases=0, gold=file))
    assert "Husten" not in str(refused.value)
