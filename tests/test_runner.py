"""The run: broken rankers come out as broken, errors as misses, one seed as one set of figures."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from evaluation_corpus import corpus

from alpha_id_runtime.errors import ArtefactsMissingError, ProviderError
from alpha_id_runtime.evaluation.cases import Case, ListCase, draw_cases
from alpha_id_runtime.evaluation.measures import LEADING, Answer, Offered, unpaired_difference
from alpha_id_runtime.evaluation.runner import BATCH, OMISSIONS, Knowledge, Request, ask, evaluate
from alpha_id_runtime.text import normalise

COLUMNS = corpus()
CODES = sorted(set(COLUMNS.icd_code))
CASES = [c for kind in ("held_out", "noise", "self") for c in draw_cases(COLUMNS, kind, 150, 1)]


def by_trigrams(requests: list[Request]) -> list[Answer]:
    """Rank as a simple, honest system would, and keep to the excluded rows."""
    answers = []
    for q in requests:
        best: dict[str, float] = {}
        for line in q.text.splitlines():
            asked = grams(line)
            for row, text in enumerate(COLUMNS.text):
                if row not in q.excluded_rows:
                    known = GRAMS[text]
                    score = 2 * len(asked & known) / (len(asked) + len(known))
                    code = COLUMNS.icd_code[row]
                    best[code] = max(best.get(code, 0), score)
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))[: q.top]
        answers.append(
            Answer(q.case_id, tuple(Offered(c, (), s, "alpha_id") for c, s in ranked), seconds=0.001)
        )
    return answers


def grams(text: str) -> set[str]:
    """Return the trigrams of a text."""
    padded = f" {normalise(text)} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


GRAMS = {text: grams(text) for text in COLUMNS.text}


def constantly(codes: list[str]):
    """Return a ranker that always offers the same codes."""
    return lambda requests: [Answer(q.case_id, tuple(Offered(c) for c in codes)) for q in requests]


def share(cases: list[Case], codes: list[str]) -> float:
    """Return the share of cases whose gold code is among the codes."""
    return sum(c.gold[0] in codes for c in cases) / len(cases)


def of_kind(kind: str) -> list[Case]:
    """Return the cases of one kind."""
    return [c for c in CASES if c.kind == kind]


def test_a_shuffled_ranker_scores_ten_in_all_codes():
    """Ten codes drawn at random hold the gold code in 10 of K cases, within four standard errors."""
    rng = random.Random(0)

    def shuffled(requests):
        return [Answer(q.case_id, tuple(Offered(c) for c in rng.sample(CODES, 10))) for q in requests]

    cases = [c for seed in range(9) for c in draw_cases(COLUMNS, "noise", 190, seed)]
    result = evaluate({"c": shuffled}, cases, seed=1)
    expected = 10 / len(CODES)
    error = math.sqrt(expected * (1 - expected) / len(cases))
    figure = result.block("noise", "c").figures[LEADING]
    assert figure.n == len(cases) > 1400
    assert figure.value == pytest.approx(expected, abs=4 * error)
    first = result.block("noise", "c").figures["R@1"]
    assert first.value == pytest.approx(1 / len(CODES), abs=4 * math.sqrt(1 / len(CODES) / len(cases)))
    # The reciprocal rank of a gold code that stands anywhere in ten with equal chance.
    harmonic = sum(1 / k for k in range(1, 11)) / len(CODES)
    assert result.block("noise", "c").figures["RR@10"].value == pytest.approx(harmonic, abs=4 * error)


@pytest.mark.parametrize("kind", ["held_out", "noise", "self"])
def test_a_constant_ranker_scores_the_share_of_its_codes(kind):
    """Always the same ten codes find exactly the cases whose gold is among them."""
    result = evaluate({"c": constantly(CODES[:10])}, CASES, seed=1)
    assert result.block(kind, "c").figures[LEADING].value == pytest.approx(share(of_kind(kind), CODES[:10]))


def test_the_most_frequent_codes_score_their_frequency():
    """Always the codes with the most phrases find their share of the cases, no more."""
    frequent = [code for code, _ in Counter(COLUMNS.icd_code).most_common(10)]
    result = evaluate({"a": constantly(frequent)}, CASES, seed=1)
    for kind in ("held_out", "noise", "self"):
        value = result.block(kind, "a").figures[LEADING].value
        assert value == pytest.approx(share(of_kind(kind), frequent))
        assert value < 0.35


def test_a_perfect_and_a_reversed_ranker_mark_the_ends():
    """Gold first gives 1 everywhere; gold at the tenth place gives recall 1 at ten, 0 at five, and RR 0.1."""
    gold = {c.id: c.gold[0] for c in CASES}
    others = [f"X{n}" for n in range(10, 20)]

    def perfect(requests):
        return [Answer(q.case_id, tuple(Offered(c) for c in (gold[q.case_id], *others))) for q in requests]

    def last(requests):
        return [
            Answer(q.case_id, tuple(Offered(c) for c in (*others[:9], gold[q.case_id]))) for q in requests
        ]

    result = evaluate({"c": last, "a": perfect}, CASES, seed=1)
    assert {f.value for b in result.blocks if b.mode == "a" for f in b.figures.values()} == {1.0}
    figures = result.block("noise", "c").figures
    assert (figures["R@10"].value, figures["R@5"].value) == (1, 0)
    assert figures["RR@10"].value == pytest.approx(0.1)
    (difference,) = [d for d in result.differences if (d.kind, d.measure) == ("noise", "R@5")]
    assert (difference.figure.value, difference.figure.low) == (1, 1)


def test_held_out_is_harder_than_self_retrieval():
    """The excluded rows reach the ranker: what finds each phrase itself does not find it held out."""
    result = evaluate({"c": by_trigrams}, CASES, seed=1)
    held_out, itself = (result.block(kind, "c").figures["R@1"].value for kind in ("held_out", "self"))
    assert itself == 1
    assert held_out < 0.9
    assert all(q.excluded_rows for q in requests_of("held_out"))


def requests_of(kind: str) -> list[Request]:
    """Return what a ranker is asked for the first cases of a kind."""
    seen: list[Request] = []

    def spy(requests):
        seen.extend(requests)
        return by_trigrams(requests[:1])

    evaluate({"c": spy}, of_kind(kind)[:5], seed=1)
    return seen


def test_two_runs_with_one_seed_have_the_same_figures():
    """Cases, answers, intervals, slices and misses are equal, whatever the clock said."""
    lists = [ListCase("l", (Case("l/0", "gold", "Fraktur der Tibia", ("S82.0",)),))]

    def run():
        cases = [c for kind in ("held_out", "noise", "paraphrase") for c in draw_cases(COLUMNS, kind, 40, 5)]
        return evaluate({"c": by_trigrams, "a": by_trigrams}, cases, seed=5, lists=lists).figures()

    assert run() == run()


def test_ten_seeds_do_not_differ():
    """The difference of each seed's figure from the first holds zero at least nine times in ten."""
    draws = []
    for seed in range(11):
        result = evaluate({"c": by_trigrams}, draw_cases(COLUMNS, "held_out", 60, seed), seed=seed)
        outcomes = result.block("held_out", "c").outcomes
        draws.append([float(o.ranks[0] is not None and o.ranks[0] == 1) for o in outcomes])
    inside = 0
    for draw in draws[1:]:
        figure = unpaired_difference(np.array(draw), np.array(draws[0]), 1)
        inside += figure.low <= 0 <= figure.high
    assert inside >= 9


def test_a_request_that_raises_is_a_miss_and_the_others_are_not():
    """One bad request costs itself, not its batch; the error's class is kept, its message is not."""
    bad = of_kind("self")[3].id

    def fragile(requests):
        if any(q.case_id == bad for q in requests):
            raise RuntimeError(requests[0].text)
        return by_trigrams(requests)

    result = evaluate({"c": fragile}, of_kind("self")[:20], seed=1)
    block = result.block("self", "c")
    assert block.figures["R@10"].value == pytest.approx(19 / 20)
    assert block.errors == 1
    assert [(m.case_id, m.error) for m in block.misses] == [(bad, "RuntimeError")]


def test_a_provider_that_is_down_is_a_miss_but_missing_artefacts_stop_the_run():
    """What happens in use is measured; what the caller must cure is raised."""

    def raising(error):
        def ranker(_requests):
            raise error

        return ranker

    result = evaluate({"a": raising(ProviderError("down"))}, of_kind("self")[:5], seed=1)
    assert result.block("self", "a").figures["R@10"].value == 0
    with pytest.raises(ArtefactsMissingError):
        evaluate({"a": raising(ArtefactsMissingError("build first"))}, of_kind("self")[:5], seed=1)


def test_answers_are_matched_by_id_and_cut_to_what_was_asked():
    """Order does not matter, a missing answer is an error, and an eleventh suggestion does not count."""
    requests = [Request(str(i), "x") for i in range(BATCH + 3)]
    answers = ask(
        lambda qs: [Answer(q.case_id, tuple(map(Offered, CODES[:20]))) for q in reversed(qs[1:])], requests
    )
    assert [a.case_id for a in answers] == [q.case_id for q in requests]
    assert [i for i, a in enumerate(answers) if a.error] == [0, BATCH]
    assert len(answers[1].codes) == 10


def test_two_cases_with_one_id_are_refused():
    """Figures are joined by id: a doubled one would be judged by another's answer."""
    with pytest.raises(ValueError, match="share an id"):
        evaluate({"c": by_trigrams}, [CASES[0], CASES[0]], seed=1)


def gold_list() -> ListCase:
    """Return a list of three diagnoses and a line without one."""
    rows = (
        ("Fraktur der Tibia", "S82.0"),
        ("Zyste der Niere", "N28.1"),
        ("Tumor der Haut", "L98.6"),
        ("EKG", None),
    )
    lines = [Case(f"g/{i}", "gold", text, (code,) if code else ()) for i, (text, code) in enumerate(rows)]
    return ListCase("g", tuple(lines))


def test_lists_are_asked_whole_and_with_lines_forgotten():
    """The loss to the extractor is what was dropped; it grows with the rate, apart from the matcher's."""
    lists = [
        ListCase(f"g{i}", tuple(Case(f"g{i}/{c.id}", "gold", c.text, c.gold) for c in gold_list().lines))
        for i in range(30)
    ]
    result = evaluate({"c": by_trigrams}, [], seed=2, lists=lists)
    (block,) = result.lists
    assert block.recall_in_ten.value == 1
    assert block.recall_in_twice_lines.value > 0.9
    assert [o.rate for o in block.omissions] == list(OMISSIONS)
    losses = [o.loss.value for o in block.omissions]
    assert losses == sorted(losses)
    for omission in block.omissions:
        assert omission.kept.value == pytest.approx(1 - omission.rate, abs=0.12)
        assert omission.recall.value >= omission.kept.value
        assert omission.loss.value == pytest.approx(1 - omission.recall.value)


def test_a_line_without_a_diagnosis_should_get_nothing():
    """The share of such lines that got a suggestion is a figure of its own; recall leaves them out."""
    cases = list(gold_list().lines)
    result = evaluate({"c": constantly(["S82.0"]), "a": constantly([])}, cases, seed=1)
    loud, silent = result.block("gold", "c"), result.block("gold", "a")
    assert (loud.no_diagnosis.value, silent.no_diagnosis.value, loud.no_diagnosis.n) == (1, 0, 1)
    assert loud.figures["R@10"].n == 3


def test_figures_are_given_without_cases_that_flatter_or_are_unfair():
    """Non-terminal gold and lines that need context are left out of a second figure."""
    cases = [
        Case("old", "gold", "Herzinfarkt", ("I21.4",)),
        Case("context", "gold", "Kandidose", ("B37.3",), done=("plain", "context")),
        Case("plain", "gold", "Fraktur der Tibia", ("S82.0",)),
    ]
    knowledge = Knowledge(is_terminal=lambda code: code != "I21.4")
    block = evaluate({"c": constantly(["I21.48"])}, cases, seed=1, knowledge=knowledge).block("gold", "c")
    assert block.figures[LEADING].value == pytest.approx(1 / 3)
    assert block.subsets["without non-terminal gold"][LEADING].value == 0
    assert block.subsets["without cases that need context"][LEADING].value == pytest.approx(1 / 2)


def test_slices_part_the_cases():
    """Every slice but the kinds of noise parts the cases without rest; chapters stand in their order."""
    knowledge = Knowledge(phrases=Counter(COLUMNS.icd_code))
    block = evaluate({"c": by_trigrams}, of_kind("noise"), seed=1, knowledge=knowledge).block("noise", "c")
    names = list(dict.fromkeys(s.by for s in block.slices))
    assert names == [
        "chapter",
        "what was done",
        "length",
        "phrases of the code",
        "origin of the winning phrase",
    ]
    for by in set(names) - {"what was done"}:
        parts = [s.figure for s in block.slices if s.by == by]
        assert sum(f.n for f in parts) == 150
        whole = sum(f.value * f.n for f in parts) / 150
        assert whole == pytest.approx(block.figures[LEADING].value)
    chapters = [s.name for s in block.slices if s.by == "chapter"]
    assert chapters == [
        c for c in ("I", "II", "III", "IV", "VII", "IX", "X", "XI", "XII", "XIV", "XIX") if c in chapters
    ]


def test_the_surest_wrong_answers_are_the_worst_misses():
    """Misses are ordered by the score of what was offered first, fifty at most."""
    scores = {c.id: i / 200 for i, c in enumerate(of_kind("noise"))}

    def wrong(requests):
        return [Answer(q.case_id, (Offered("X99", (), scores[q.case_id]),)) for q in requests]

    misses = evaluate({"c": wrong}, of_kind("noise"), seed=1).block("noise", "c").misses
    offered = [m.offered[0][1] for m in misses]
    assert len(misses) == 50
    assert offered == sorted(scores.values(), reverse=True)[:50]


def test_siblings_and_breadth_are_counted():
    """Coverage tells how many codes were ever offered and how many siblings of the gold code a case shows."""
    coverage = (
        evaluate({"c": constantly(["S82.0", "S82.1", "K76.0"])}, list(gold_list().lines), seed=1)
        .block("gold", "c")
        .coverage
    )
    assert coverage["distinct codes offered"] == 3
    assert coverage["suggestions per case"] == 3
    assert coverage["share skipped as no diagnosis"] == 0
    assert coverage["siblings of a gold code shown per case"] == pytest.approx(1 / 3)


def test_a_diagnosis_taken_for_none_is_counted():
    """Lines with a diagnosis that the system skips are misses, and their share is shown."""

    def skipping(requests):
        return [Answer(q.case_id, skipped=q.text.startswith("Tumor")) for q in requests]

    block = evaluate({"c": skipping}, list(gold_list().lines), seed=1).block("gold", "c")
    assert block.coverage["share skipped as no diagnosis"] == pytest.approx(1 / 3)


def test_costs_are_summed_and_the_clock_is_no_figure():
    """Hub calls and euros are added up; times are left out of what two runs must share."""

    def costly(requests):
        return [Answer(q.case_id, seconds=0.25, degraded=True, hub_calls=1, euros=0.01) for q in requests]

    result = evaluate({"a": costly}, of_kind("self")[:4], seed=1)
    (cost,) = result.costs
    assert (cost.hub_calls, cost.degraded, cost.milliseconds["p95"]) == (4, 1.0, 250)
    assert cost.euros == pytest.approx(0.04)
    assert "milliseconds" not in result.figures()["costs"][0]


def test_texts_of_foreign_gold_can_be_left_out():
    """A gold file from outside may hold patient data: its texts are in no part of the result."""
    result = evaluate({"c": constantly(["X1"])}, list(gold_list().lines), seed=1, hide_gold=True)
    assert "Tibia" not in str(result.to_dict())
    assert len(result.block("gold", "c").misses) == 3
