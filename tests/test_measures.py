"""Ranks, hits, the standard measures against a table computed by hand, intervals and calibration."""

import math

import numpy as np
import pytest

from alpha_id_runtime.evaluation.cases import Case, ListCase
from alpha_id_runtime.evaluation.measures import (
    Answer,
    Bin,
    Offered,
    bootstrap,
    judge,
    list_recall,
    paired_difference,
    per_case,
    percentiles,
    reliability,
    unpaired_difference,
)


def case(name: str, *gold: str, accept: tuple[tuple[str, ...], ...] = ()) -> Case:
    """Return a gold case."""
    return Case(id=name, kind="gold", text=f"text of {name}", gold=gold, accept=accept)


def answer(name: str, *codes: str | Offered, error: str | None = None) -> Answer:
    """Return an answer of plain codes or full suggestions."""
    offered = tuple(c if isinstance(c, Offered) else Offered(c) for c in codes)
    return Answer(case_id=name, codes=offered, error=error)


FILLERS = tuple(f"Z{n}" for n in range(10, 30))

# Case, answer, then by hand: R@1, R@5, R@10, reciprocal rank.
TABLE = (
    (case("first", "A01.0"), answer("first", "A01.0", *FILLERS[:9]), 1, 1, 1, 1),
    (case("third", "A02.0"), answer("third", *FILLERS[:2], "A02.0"), 0, 1, 1, 1 / 3),
    (case("fifth", "A03.0"), answer("fifth", *FILLERS[:4], "A03.0"), 0, 1, 1, 1 / 5),
    (case("tenth", "A04.0"), answer("tenth", *FILLERS[:9], "A04.0"), 0, 0, 1, 1 / 10),
    (case("eleventh", "A05.0"), answer("eleventh", *FILLERS[:10], "A05.0"), 0, 0, 0, 0),
    (case("absent", "A06.0"), answer("absent", *FILLERS[:10]), 0, 0, 0, 0),
    (case("silent", "A07.0"), answer("silent"), 0, 0, 0, 0),
    (case("failed", "A08.0"), answer("failed", "A08.0", error="TimeoutError"), 0, 0, 0, 0),
    (case("both", "A09.0", "B95.0"), answer("both", "A09.0", *FILLERS[:5], "B95.0"), 1 / 2, 1 / 2, 1, 1),
    (case("one of two", "B01.0", "B02.0"), answer("one of two", "Z10", "B02.0"), 0, 1 / 2, 1 / 2, 1 / 2),
)


def test_standard_measures_agree_with_a_table_computed_by_hand():
    """R@k and RR of every case, and their means, are what pencil and paper give."""
    values = per_case(judge([row[0] for row in TABLE], [row[1] for row in TABLE]))
    for at, name in enumerate(("R@1", "R@5", "R@10", "RR@10"), start=2):
        assert values[name].tolist() == pytest.approx([row[at] for row in TABLE]), name
    assert values["R@10"].mean() == pytest.approx(5.5 / 10)
    assert values["R@5"].mean() == pytest.approx(4 / 10)
    assert values["R@1"].mean() == pytest.approx(1.5 / 10)
    assert values["RR@10"].mean() == pytest.approx((2 + 1 / 3 + 1 / 5 + 1 / 10 + 1 / 2) / 10)


def test_a_complement_is_a_hit_but_not_a_strict_one():
    """Gold G63.2 is found at the rank of the suggestion that carries it, by the strict figure never."""
    suggestion = Offered("E11.40", ("G63.2",))
    (judged,) = judge([case("x", "G63.2")], [answer("x", "Z10", suggestion)])
    assert (judged.ranks, judged.strict) == ((2,), (None,))


def test_two_gold_codes_in_one_suggestion_share_its_rank():
    """A dagger code and its aster in one suggestion are both found by it."""
    values = per_case(judge([case("x", "E11.40", "G63.2")], [answer("x", Offered("E11.40", ("G63.2",)))]))
    assert (values["R@1"].tolist(), values["StrictR@1"].tolist()) == ([1.0], [0.5])


def test_billable_ranks_skip_what_is_not_billable():
    """Suggestions that cannot be billed take no place, and cannot be hits."""
    offered = (Offered("E11", billable=False), Offered("E11.7", billable=False), Offered("E11.72"))
    (judged,) = judge([case("x", "E11.72")], [answer("x", *offered)])
    assert (judged.ranks, judged.billable) == ((3,), (1,))
    (other,) = judge([case("y", "E11.7")], [answer("y", *offered[:2])])
    assert (other.ranks, other.billable) == ((2,), (None,))


def test_three_characters_suffice_for_the_category():
    """A sibling counts for the three-character measure alone."""
    values = per_case(judge([case("x", "I21.0")], [answer("x", "I21.48")]))
    assert (values["R@10"].tolist(), values["R@10 (3)"].tolist()) == ([0.0], [1.0])


def test_a_gold_code_that_is_not_terminal_counts_as_its_prefix():
    """I21.4 of an older edition is met by I21.48, is marked, and a terminal code is never a prefix."""
    terminal = {"I21.48", "I21.0"}.__contains__
    cases = [case("old", "I21.4"), case("new", "I21.0")]
    old, new = judge(cases, [answer("old", "Z10", "I21.48"), answer("new", "I21.01")], terminal)
    assert (old.ranks, old.prefix) == ((2,), True)
    assert (new.ranks, new.prefix) == ((None,), False)


def test_an_accepted_code_stands_for_its_own_gold_code_only():
    """What is as right in the place of one gold code does not find the other."""
    two = case("x", "I50.13", "J18.9", accept=(("I50.19",), ()))
    (judged,) = judge([two], [answer("x", "Z10", "I50.19")])
    assert judged.ranks == (2, None)


def test_a_case_without_an_answer_is_a_miss():
    """A system cannot look better by not answering."""
    judged = judge([case("x", "A01.0"), case("y", "A02.0")], [answer("x", "A01.0")])
    assert per_case(judged)["R@10"].tolist() == [1.0, 0.0]
    assert judged[1].answer.error == "NoAnswer"


def test_lines_without_a_diagnosis_are_left_out_of_recall():
    """A case without gold has no recall; it is measured apart."""
    assert len(per_case(judge([case("x"), case("y", "A01.0")], []))["R@10"]) == 1


def test_a_list_is_judged_by_its_one_answer():
    """Each gold code of each line is looked for in the one list; an error finds none."""
    lines = (case("1", "A01.0"), case("2"), case("3", "E11.40", "G63.2"))
    one = answer("list", Offered("E11.40", ("G63.2",)), "Z10")
    assert list_recall(ListCase("list", lines), one, lambda _: True) == (2, 3)
    assert list_recall(ListCase("list", lines), answer("list", "A01.0", error="X"), lambda _: True) == (0, 3)


def test_the_interval_is_that_of_the_binomial():
    """For a share the bootstrap interval lies where the normal approximation puts it, and repeats by seed."""
    values = np.array([1.0] * 700 + [0.0] * 300)
    figure = bootstrap(values, 1)
    reach = 1.96 * math.sqrt(0.7 * 0.3 / 1000)
    assert figure.value == pytest.approx(0.7)
    assert (figure.low, figure.high) == pytest.approx((0.7 - reach, 0.7 + reach), abs=0.006)
    assert figure == bootstrap(values, 1)
    assert figure != bootstrap(values, 2)


def test_a_figure_of_nothing_is_none():
    """No case, no number: not a zero."""
    figure = bootstrap(np.zeros(0), 1)
    assert (figure.value, figure.low, figure.n) == (None, None, 0)


def test_pooled_figures_weigh_by_their_denominators():
    """Recall pooled over lists counts codes, not lists."""
    assert bootstrap(np.array([1.0, 9.0]), 1, np.array([10.0, 10.0])).value == pytest.approx(0.5)
    assert bootstrap(np.array([1.0, 0.0]), 1, np.array([1.0, 9.0])).value == pytest.approx(0.1)


def test_a_paired_difference_is_surer_than_an_unpaired_one():
    """Two systems that miss the same hard cases differ by little, and pairing shows it."""
    rng = np.random.default_rng(0)
    base = (rng.random(400) < 0.5).astype(float)
    better = np.maximum(base, (rng.random(400) < 0.06).astype(float))
    paired, unpaired = paired_difference(better, base, 1), unpaired_difference(better, base, 1)
    assert paired.value == pytest.approx(unpaired.value)
    assert 0 < paired.low < paired.value
    assert unpaired.low < 0 < unpaired.high
    with pytest.raises(ValueError, match="same cases"):
        paired_difference(better, base[1:], 1)


def test_draws_of_one_population_do_not_differ():
    """Over ten draws the unpaired difference from the first holds zero at least nine times."""
    rng = np.random.default_rng(3)
    draws = [(rng.random(500) < 0.9).astype(float) for _ in range(11)]
    inside = [(d := unpaired_difference(draw, draws[0], 1)).low <= 0 <= d.high for draw in draws[1:]]
    assert sum(inside) >= 9


def test_calibration_error_is_the_gap_between_score_and_share():
    """Scores of 0.85 that are right in 3 of 4 cases are off by 0.1; bins weigh by their cases."""
    cases = [case(str(i), "A01.0") for i in range(8)]
    answers = [answer(str(i), Offered("A01.0" if i % 4 else "Z10", score=0.85)) for i in range(4)]
    answers += [answer(str(i), Offered("Z10", score=0.05)) for i in range(4, 8)]
    bins, error = reliability(judge(cases, answers))
    assert bins == (Bin(pytest.approx(0.05), 0.0, 4), Bin(pytest.approx(0.85), 0.75, 4))
    assert error == pytest.approx((0.05 + 0.1) / 2)


def test_scores_that_are_no_probabilities_have_no_calibration():
    """A score above 1 yields no plot rather than a wrong one; a score of exactly 1 is fine."""
    assert reliability(judge([case("x", "A01.0")], [answer("x", Offered("A01.0", score=7.2))])) == ((), None)
    assert reliability(judge([case("x", "A01.0")], [answer("x", Offered("A01.0", score=1.0))]))[1] == 0


def test_percentiles_are_milliseconds():
    """Times come in seconds and are shown in milliseconds; none, no figure."""
    assert percentiles([0.001, 0.002, 0.003])["p50"] == pytest.approx(2)
    assert percentiles([]) == {}
