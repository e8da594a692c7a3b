"""Explanations: what was tried, how an entry was found, the parts of a score, why one outranks the next."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hub_server import TOKEN, HubServer

from alpha_id_runtime.config import Config
from alpha_id_runtime.pipeline import Request, Suggester
from tests.command import alpha_id, answer, environment
from tests.hub_builds import DIMENSION, hub_config

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import OriginExplanation, Suggestion, SuggestResult
    from tests.conftest import BuiltIn
    from tests.hub_builds import HubBuild

LINES = """V. a. Lungenentzündung links
Linksherzinsuffizienz NYHA III
I10.90
Gehirnschlag
diab. Polyneuropathie bei Diabetes mellitus Typ 2
Diabetis melitus Typ zwei
Kniegelenksverschleiß re.
2. Prostatakrebs ausgeschlossen"""


@pytest.fixture(scope="module")
def mode_a(built_in: BuiltIn) -> Suggester:
    """Mode A on the built-in encoder."""
    assert built_in.run.done.returncode == 0, built_in.run.done.stderr.decode()
    return Suggester.open(Config(storage=built_in.storage, mode="a"))


def _plain(result: SuggestResult) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    plain["diagnostics"].pop("timings")
    return plain


def _why(suggester: Suggester, text: str, code: str) -> OriginExplanation:
    found = suggester.suggest(text, explain=True, top=20).suggestions
    (suggestion,) = [each for each in found if each.icd_code == code]
    assert suggestion.explanation is not None
    return suggestion.explanation.origins[0]


def _product(parts: dict[str, float]) -> float:
    """Return the score that the parts make, as the field's description says."""
    if "of_sibling" in parts:
        return parts["of_sibling"]
    text = parts["text_score"] * parts.get("query_weight", 1.0) * parts.get("entry_factor", 1.0)
    return parts.get("reranked", text) * parts.get("said_factor", 1.0)


def _check_scores(suggestions: tuple[Suggestion, ...]) -> None:
    for each in suggestions:
        assert each.explanation is not None
        for origin, why in zip(each.origins, each.explanation.origins, strict=True):
            assert (why.segment, why.matched_phrase) == (origin.segment, origin.matched_phrase)
            assert _product(why.parts) == pytest.approx(origin.score, abs=1e-5)


# --- the answer itself


def test_an_explanation_changes_nothing_and_stands_only_where_asked_for(
    sample: Suggester, mode_a: Suggester
) -> None:
    """The contract of the output is additive: same list, same scores, one more field."""
    for suggester in (sample, mode_a):
        asked, unasked = _plain(suggester.suggest(LINES, explain=True)), _plain(suggester.suggest(LINES))
        assert all("explanation" not in each for each in unasked["suggestions"])
        assert all(each.pop("explanation") for each in asked["suggestions"])
        assert asked == unasked


def test_nothing_of_it_is_loaded_unless_asked_for(sample_storage: Path) -> None:
    """An answer without explanations does not pay for them."""
    script = (
        "import sys; from pathlib import Path; from alpha_id_runtime import Config, Suggester\n"
        "suggester = Suggester.open(Config(storage=Path(sys.argv[1]), mode='c'))\n"
        "suggester.suggest('Gehirnschlag')\n"
        "names = ('explain', 'score_parts', 'related')\n"
        "print([name for name in names if f'alpha_id_runtime.{name}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(sample_storage)],
        capture_output=True, env=environment(), timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.decode().strip() == "[]"


def test_explained_alike_alone_and_among_others(sample: Suggester) -> None:
    """Each request has explanations of its own, or none."""
    lines = LINES.splitlines()
    many = sample.suggest_many([Request(line, explain=place % 2 == 0) for place, line in enumerate(lines)])

    for place, (line, result) in enumerate(zip(lines, many, strict=True)):
        assert _plain(result) == _plain(sample.suggest(line, explain=place % 2 == 0))


# --- what is said of one line


def test_the_ways_an_entry_is_found(sample: Suggester) -> None:
    """A written code, the very phrase, the same words in another order, something alike."""
    for text, code, way in (
        ("I64", "I64", "written code"),
        ("gehirnschlag", "I64", "exact"),
        ("Cholera, asiatische", "A00.0", "same words"),
        ("Asiatisch Colera", "A00.0", "alike"),
    ):
        assert (_why(sample, text, code).way, text) == (way, text)


def test_what_was_tried_and_what_was_taken_off(sample: Suggester) -> None:
    """The text that won, what it is, and what the line said besides."""
    why = _why(sample, "1. V. a. Gehirnschlag", "I64")
    assert (why.tried, why.how) == ("Gehirnschlag", "core")
    assert any("certainty" in note for note in why.removed)
    written = _why(sample, "I64", "I64")
    assert (written.tried, written.how) == (None, None)


@pytest.mark.full
def test_a_variant_is_named_with_its_kind_and_weight(full: Suggester) -> None:
    """A long form that was tried for a short one counts for what its table says."""
    why = _why(full, "chron. Niereninsuff.", "N18.9")

    assert why.how not in (None, "core")
    assert any("expanded" in note for note in why.removed)
    assert 0 < why.parts["query_weight"] <= 1


@pytest.mark.full
def test_a_degree_that_decided_is_named(full: Suggester) -> None:
    """For the code it names and for the one that says none."""
    leading = _why(full, "Linksherzinsuffizienz NYHA III", "I50.13")
    without = _why(full, "Linksherzinsuffizienz NYHA III", "I50.19")

    assert leading.way == "degree decided"
    assert any("NYHA" in note for note in leading.decided_by)
    assert any("none" in note for note in without.decided_by)
    assert without.parts["said_factor"] < 1


@pytest.mark.full
def test_a_site_that_decided_is_named(full: Suggester) -> None:
    """A code that only a site brought in stands at its best sibling's score."""
    why = _why(full, "Rheumatoide Arthritis Knie", "M06.96")

    assert why.way == "site decided"
    assert any("site" in note for note in why.decided_by)
    assert why.parts.keys() == {"of_sibling"}


# --- the parts of a score


@pytest.mark.full
def test_the_parts_make_the_score_in_mode_c(sample: Suggester, full: Suggester) -> None:
    """Every origin of every suggestion; of a merely alike one also what its text's score is made of."""
    for suggester in (sample, full):
        found = suggester.suggest(LINES, explain=True, top=40).suggestions
        _check_scores(found)
        settings = suggester.config.lexical
        alike = [
            why.parts
            for each in found
            if each.explanation
            for why in each.explanation.origins
            if why.way == "alike"
        ]
        assert len(alike) > 5
        for parts in alike:
            share, weight = settings.similarity_weight, settings.agreement_weight
            own = (1 - share) * parts["rank"] + share * parts["dice"] + weight * parts["agreement"]
            assert 0.97 * own / (1 + weight * 5 / 6) == pytest.approx(parts["text_score"], abs=1e-5)
            assert {"trigram_rank", "word_rank"} & parts.keys()


def test_the_parts_make_the_score_in_mode_a(mode_a: Suggester) -> None:
    """Cosines with entry and code, shared trigrams and mode C's score stand beside the probability."""
    found = mode_a.suggest(LINES, explain=True, top=40).suggestions
    _check_scores(found)

    alike = [
        w.parts for each in found if each.explanation for w in each.explanation.origins if w.way == "alike"
    ]
    assert alike
    for parts in alike:
        assert {"dense", "prototype", "dice", "lexical", "sum", "text_score"} <= parts.keys()


def test_a_hub_is_asked_no_second_time(hub_build: HubBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation costs no call, and with the hub's reranker says what the reranker dealt out."""
    monkeypatch.setenv("ALPHA_ID_HUB_TOKEN", TOKEN)
    with HubServer(DIMENSION) as hub:
        suggester = Suggester.open(hub_config(hub.url, hub_build.storage))
        reranked = Suggester(suggester.build, replace(suggester.config, reranker="hub"))
        for each in (suggester, reranked):
            before = each.suggest(LINES).diagnostics.ionos_calls
            result = each.suggest(LINES, explain=True)
            assert result.diagnostics.ionos_calls == before > 0
            _check_scores(result.suggestions)
        parts = [w.parts for s in result.suggestions if s.explanation for w in s.explanation.origins]
        assert any("reranked" in each for each in parts)


def test_a_degraded_answer_is_explained_as_mode_c(sample_storage: Path) -> None:
    """Without vectors there are no cosines to speak of."""
    suggester = Suggester.open(Config(storage=sample_storage, mode="a"))
    result = suggester.suggest(LINES, explain=True)

    assert result.diagnostics.degraded
    _check_scores(result.suggestions)
    assert not any(
        "dense" in w.parts for s in result.suggestions if s.explanation for w in s.explanation.origins
    )


# --- why one stands before the next


def test_each_but_the_last_says_why_it_stands_before_the_next(sample: Suggester, mode_a: Suggester) -> None:
    """One sentence that names the next code."""
    for suggester in (sample, mode_a):
        found = suggester.suggest(LINES, explain=True).suggestions
        sentences = [each.explanation.outranks_next for each in found if each.explanation]
        for sentence, after in zip(sentences, found[1:], strict=False):
            assert sentence is not None
            assert sentence.startswith(f"Before {after.icd_code}")
            assert sentence.endswith(".")
        assert sentences[-1] is None


def test_a_sentence_gives_the_step_that_decided(sample: Suggester) -> None:
    """The way it was found, an exclusion, or nothing but the order of codes."""
    for text, said in (
        ("Asiatische Cholera", "very phrase"),
        ("Pneumonie\nAsiatische Cholera", "order of the codes"),
        ("Gehirnschlag\nAsiatische Cholera ausgeschlossen", "excluded"),
    ):
        first = sample.suggest(text, explain=True, top=2).suggestions[0].explanation
        assert first is not None
        assert said in str(first.outranks_next)


# --- on the command line


def test_explanations_on_the_command_line(sample_storage: Path) -> None:
    """A field of the JSON, and lines of the table."""
    place = ["suggest", "--storage", sample_storage, "--mode", "c", "--explain"]
    plain = answer(*place, stdin="V. a. Gehirnschlag")
    first = plain["suggestions"][0]["explanation"]
    assert first["origins"][0]["way"] == "exact"
    assert set(first) == {"origins", "outranks_next"}

    table = alpha_id(*place, "--table", stdin=b"V. a. Gehirnschlag").stdout.decode()
    assert "why, line 0: core “Gehirnschlag”: exact" in table
    assert "Before " in table
