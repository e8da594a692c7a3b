"""The floor under scores, and lines that hold codes the edition cannot give."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from alpha_id_runtime.config import Config, resolve
from alpha_id_runtime.model import Filter
from alpha_id_runtime.pipeline import Suggester
from bench import floor
from tests.command import alpha_id, answer, complaint

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import SuggestResult

REMARK = "Hund zu Hause"
DIAGNOSIS = "Diabetes Typ zwei mit Nervenleiden"


def _asked(suggester: Suggester, text: str, **settings: float | None) -> SuggestResult:
    return Suggester(suggester.build, replace(suggester.config, **settings)).suggest(text)


# --- the mode's own floor


def test_a_line_like_no_diagnosis_is_skipped_with_the_reason(sample: Suggester) -> None:
    """Without a floor something is always a little alike."""
    result = sample.suggest(f"{REMARK}\nArterielle Hypertonie")

    assert [(each.segment, "--min-score" in each.reason) for each in result.diagnostics.skipped] == [
        (0, True)
    ]
    assert {each.source_segments for each in result.suggestions} == {(1,)}
    assert _asked(sample, REMARK, min_score=0.0).suggestions


def test_an_empty_answer_says_that_the_floor_was_not_reached(sample: Suggester) -> None:
    """The reason of the list is the reason of its lines, and names nobody's words."""
    diagnostics = sample.suggest(REMARK).diagnostics

    assert diagnostics.reason == diagnostics.skipped[0].reason
    assert f"{sample.config.lexical.min_score:g}" in str(diagnostics.reason)
    assert "Hund" not in str(diagnostics.reason)


def test_the_modes_floor_leaves_the_lesser_hits_of_a_diagnosis_alone(sample: Suggester) -> None:
    """The right code is often second or fifth, and far below the first."""
    with_floor, without = sample.suggest(DIAGNOSIS), _asked(sample, DIAGNOSIS, min_score=0.0)

    assert with_floor.suggestions == without.suggestions
    assert min(each.score for each in with_floor.suggestions) < sample.config.lexical.min_score


def test_a_code_written_in_a_line_is_above_any_floor(sample: Suggester) -> None:
    """It was said."""
    assert _asked(sample, "I10.90", min_score=1.0).suggestions[0].icd_code == "I10.90"


def test_a_floor_under_a_filter_is_not_taken_for_the_filter(sample: Suggester) -> None:
    """What passes no filter is said to pass none, what is too unlike to be too unlike."""
    wanted = Filter(prefix=("Z99",))
    assert "filters" in sample.suggest("I10.90", wanted=wanted).diagnostics.skipped[0].reason
    assert "--min-score" in sample.suggest(DIAGNOSIS, wanted=wanted).diagnostics.skipped[0].reason


# --- a floor of one's own


def test_a_floor_of_ones_own_holds_for_every_hit(sample: Suggester) -> None:
    """So that a caller can cut where it wants; what is above keeps order and score."""
    every = _asked(sample, DIAGNOSIS, min_score=0.0).suggestions
    cut = _asked(sample, DIAGNOSIS, min_score=every[2].score).suggestions

    assert cut == tuple(each for each in every if each.score >= every[2].score)
    assert len(cut) < len(every)


def test_min_score_is_an_option_and_a_setting(sample_storage: Path, tmp_path: Path) -> None:
    """The flag weighs more than the file."""
    file = tmp_path / "own.toml"
    file.write_text("min_score = 1.0\n", encoding="utf-8")
    place = ["suggest", "--config", file, "--storage", sample_storage, "--mode", "c"]

    assert answer(*place, stdin=DIAGNOSIS)["suggestions"] == []
    assert answer(*place, "--min-score", "0", stdin=REMARK)["suggestions"]
    assert resolve(file).config.min_score == 1.0
    assert resolve(environment={"ALPHA_ID_LEXICAL_MIN_SCORE": "0.25"}).config.lexical.min_score == 0.25


@pytest.mark.parametrize("value", ["-0.1", "1.1", "viel"])
def test_a_floor_outside_of_scores_is_wrong_use(value: str) -> None:
    """Scores are from 0 to 1."""
    done = alpha_id("suggest", "--min-score", value)

    assert done.returncode == 2
    assert "--min-score" in done.stderr.decode()


@pytest.mark.parametrize("value", ["-0.1", "1.5", "nan"])
def test_a_configured_floor_outside_of_scores_is_refused(value: str) -> None:
    """In the environment as in a file, with the setting's name."""
    for setting in ("MIN_SCORE", "LEXICAL_MIN_SCORE", "FUSION_MIN_SCORE"):
        done = alpha_id("config", variables={f"ALPHA_ID_{setting}": value})
        assert f"ALPHA_ID_{setting}" in complaint(done, 2)


# --- codes the edition cannot give


@pytest.mark.full
@pytest.mark.parametrize("line", ["U13.0", "U13.0!", "(ICD-10: U13.0)", "u13.0 G"])
def test_a_placeholder_written_in_a_line_is_skipped_with_the_reason(full: Suggester, line: str) -> None:
    """A code that is not assigned has no meaning to suggest."""
    result = full.suggest(line)

    assert result.suggestions == ()
    assert "not assigned" in result.diagnostics.skipped[0].reason


@pytest.mark.full
@pytest.mark.parametrize("line", ["X99.99", "K35.7", "I84.9", "ICD: E11.99 G"])
def test_a_code_the_edition_lacks_is_skipped_with_the_reason(full: Suggester, line: str) -> None:
    """Nothing is guessed from letters and digits; the edition is named."""
    result = full.suggest(line)

    assert result.suggestions == ()
    assert "2025" in result.diagnostics.skipped[0].reason


@pytest.mark.full
def test_text_beside_such_a_code_is_matched_all_the_same(full: Suggester) -> None:
    """As is what looks like a code and is a word of the corpus."""
    assert full.suggest("X99.99 Arterielle Hypertonie").suggestions[0].icd_code == "I10.90"
    assert full.suggest("U13.0, Arterielle Hypertonie").suggestions[0].icd_code == "I10.90"
    assert full.suggest("B12").suggestions[0].matched_phrase.startswith("Vitamin")


# --- how it is chosen


def test_the_floor_is_chosen_by_a_command(sample_storage: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row is marked: the highest floor that loses no more than three right codes in a thousand."""
    few = ["--held-out", "40", "--noise", "40", "--paraphrase", "40"]
    assert floor.main(["--storage", str(sample_storage), "--mode", "c", *few]) == 0
    rows = capsys.readouterr().out.splitlines()

    assert sum("<- chosen" in row for row in rows) == 1
    assert f"of {sum(map(len, floor.read_lines().values()))}" in rows[1]


def test_a_floor_counts_what_it_takes() -> None:
    """Of right codes by kind, and of lines that hold none."""
    of_kind = floor.np.array([0.2, 0.5, 0.7, 0.9])
    scores = floor.Scores({"noise": of_kind, "held_out": of_kind + 0.1}, floor.np.array([0.1, 0.3, 0.6]), 5)

    assert (scores.lost("noise", 0.5), scores.left(0.3)) == (0.25, 2)
    assert scores.chosen(most_lost=0.0) == 0.2
    assert scores.chosen(most_lost=0.25) == 0.5


@pytest.mark.full
def test_the_modes_floor_silences_lines_without_a_diagnosis(full: Suggester) -> None:
    """Of 158 lines a third gives suggestions, and fewer than without the floor."""
    lines = [line for own in floor.read_lines().values() for line in own]
    unfloored = Suggester(full.build, replace(full.config, min_score=0.0))
    left, before = (
        sum(bool(result.suggestions) for _, result in suggester.suggest_each("\n".join(lines)))
        for suggester in (full, unfloored)
    )

    assert left < before
    assert left <= len(lines) / 3


def test_the_default_configuration_has_a_floor() -> None:
    """On by default, in either mode; never so high that it could refuse what is the same."""
    config = Config()
    assert config.min_score is None
    assert 0 < config.lexical.min_score < 0.5
    assert 0 < config.fusion.min_score < 0.5
