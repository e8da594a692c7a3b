"""Mode A from text to the one list: on the built-in encoder, on vectors of a hub, with the hub's reranker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hub_server import TOKEN, HubServer, relevance_of

from alpha_id_runtime.config import Config, FusionConfig
from alpha_id_runtime.model import Filter
from alpha_id_runtime.pipeline import Request, Suggester
from tests.command import alpha_id
from tests.hub_builds import DIMENSION, hub_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alpha_id_runtime.model import SuggestResult
    from tests.conftest import BuiltIn
    from tests.hub_builds import HubBuild

LINES = [
    "Schenkelhalsbruch links",
    "Zuckerkrankheit mit Nervenleiden",
    "Bruch des Unterarms bei Sturz",
    "Lungenentzündnug",
    "Herzinsuffizienz NYHA II",
    "V. a. Prostatacarcinom",
    "Diabetis melitus Typ zwei",
    "Kniegelenksverschleiß re.",
    "Entzündung der Nasennebenhöhle",
    "Niereninsuffizienz Stadium 3",
]
WHOLE = 2000  # more than the sample has codes


@pytest.fixture(scope="module")
def mode_a(built_in: BuiltIn) -> Suggester:
    """Mode A on the built-in encoder."""
    assert built_in.run.done.returncode == 0, built_in.run.done.stderr.decode()
    return Suggester.open(Config(storage=built_in.storage, mode="a"))


@pytest.fixture(scope="module")
def mode_c(built_in: BuiltIn) -> Suggester:
    """Mode C on the very same build."""
    return Suggester.open(Config(storage=built_in.storage, mode="c"))


@pytest.fixture(scope="module")
def server() -> Iterator[HubServer]:
    """A hub of this module's own."""
    with HubServer(DIMENSION) as hub:
        yield hub


@pytest.fixture
def hub(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> HubServer:
    """The hub, counting from nought, and the token where it is looked for."""
    server.clear_fault()
    server.reset()
    server.rerank_shape = "results"
    monkeypatch.setenv("ALPHA_ID_HUB_TOKEN", TOKEN)
    return server


@pytest.fixture
def by_hub(hub: HubServer, hub_build: HubBuild) -> Suggester:
    """Mode A on vectors of the hub."""
    assert hub_build.done.returncode == 0, hub_build.done.stderr.decode()
    return Suggester.open(hub_config(hub.url, hub_build.storage))


def _codes(result: SuggestResult) -> list[str]:
    return [each.icd_code for each in result.suggestions]


def _without_floor(suggester: Suggester) -> Suggester:
    """Return the same, naming whatever was found: what may not be found shows best so."""
    return Suggester(suggester.build, replace(suggester.config, min_score=0.0))


def _plain(result: SuggestResult) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    plain["diagnostics"].pop("timings")
    return plain


def _entries(suggester: Suggester) -> dict[tuple[Any, ...], list[int]]:
    """Return the rows of each (text, code, alpha_id, origin) of the corpus."""
    columns = [suggester.build.phrases.column(name) for name in ("text", "icd_code", "alpha_id", "origin")]
    rows: dict[tuple[Any, ...], list[int]] = {}
    for row, entry in enumerate(zip(*columns, strict=True)):
        rows.setdefault(entry, []).append(row)
    return rows


def _named(result: SuggestResult) -> set[tuple[Any, ...]]:
    """Return every entry that an answer names."""
    return {
        (each.matched_phrase, suggestion.icd_code, each.alpha_id, each.origin)
        for suggestion in result.suggestions
        for each in (suggestion, *suggestion.origins)
    }


# --- the built-in encoder


def test_mode_a_answers_by_itself(mode_a: Suggester) -> None:
    """Not degraded, without a single call to anybody."""
    diagnostics = mode_a.suggest("\n".join(LINES)).diagnostics

    assert (diagnostics.mode, diagnostics.degraded, diagnostics.degraded_reason) == ("a", False, None)
    assert diagnostics.ionos_calls == 0
    assert diagnostics.timings["semantic_ms"] > 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Lungenentzündnug", "J18.9"),
        ("Schenkelhalsbruch", "S72.00"),
        ("Diabetis melitus Typ zwei", "E11.90"),
        ("Herzschwäche", "I50.9"),
        ("Blutvergiftung", "A41.9"),
        ("Krebs der Prostata", "C61"),
    ],
)
def test_mode_a_finds_what_was_meant(mode_a: Suggester, text: str, code: str) -> None:
    """Misspelt, in lay words, in another order."""
    assert _codes(mode_a.suggest(text))[0] == code


def test_mode_a_differs_from_mode_c(mode_a: Suggester, mode_c: Suggester) -> None:
    """Its lists are its own, yet of the same subject: each shares a code with mode C's."""
    pairs = [(mode_a.suggest(line), mode_c.suggest(line)) for line in LINES]

    assert sum(_codes(a) != _codes(c) for a, c in pairs) > len(LINES) / 2
    assert all(set(_codes(a)) & set(_codes(c)) for a, c in pairs)


def test_scores_are_probabilities_in_order(mode_a: Suggester) -> None:
    """0 to 1, falling, and 1 for the very same text alone."""
    for line in LINES:
        scores = [each.score for each in mode_a.suggest(line, top=WHOLE).suggestions]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
    assert mode_a.suggest("Asiatische Cholera").suggestions[0].score == 1.0


def test_an_exact_phrase_comes_first(mode_a: Suggester, by_hub: Suggester) -> None:
    """However near other vectors are: every fiftieth phrase of the corpus finds a code of its own."""
    phrases = mode_a.build.phrases
    rows = [row for row in range(0, len(phrases), 50) if phrases.valid[row]]
    texts, codes = phrases.texts(rows), [phrases.codes[number] for number in phrases.code_index[rows]]
    for suggester in (mode_a, by_hub):
        plain = Suggester(
            suggester.build,
            replace(suggester.config, reading=replace(suggester.config.reading, enabled=False)),
        )
        answers = plain.suggest_many([Request(text) for text in texts])
        lost = [
            text
            for text, code, found in zip(texts, codes, answers, strict=True)
            if code not in [each.icd_code for each in found.suggestions if each.score > 0.99]
        ]
        # A line that reads like a code is one.
        assert [text for text in lost if not any(sign.isdigit() for sign in text)] == []
        assert len(lost) <= 1


def test_the_same_input_gives_the_same_output_in_two_processes(built_in: BuiltIn) -> None:
    """Byte for byte, apart from the timings, whatever the number of threads and the seed of hashes."""
    arguments = ("suggest", "--mode", "a", "--json", "--each", "--storage", built_in.storage)
    answers = []
    for number in ("1", "2"):
        variables = {"PYTHONHASHSEED": number, "OMP_NUM_THREADS": number, "OPENBLAS_NUM_THREADS": number}
        done = alpha_id(*arguments, stdin="\n".join(LINES).encode(), variables=variables)
        answers.append(json.loads(done.stdout))
        for each in answers[-1]:
            each["diagnostics"].pop("timings")
    assert len(answers[0]) == len(LINES)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", ["built-in", "hub", "reranked"])
def test_a_phrase_is_answered_alike_alone_and_among_others(
    mode_a: Suggester, by_hub: Suggester, kind: str
) -> None:
    """Ten phrases at once: each list is the one that the phrase gets alone, to the last digit."""
    suggester = mode_a if kind == "built-in" else by_hub
    if kind == "reranked":
        suggester = Suggester(suggester.build, replace(suggester.config, reranker="hub"))
    lines = [*LINES, "Nervenleiden", "Bruch", "chronische Entzündung", "Schmerzen nach Sturz", "E11.90"]
    together = suggester.suggest_each("\n".join(lines))

    assert [line.text for line, _ in together] == lines
    for line, result in together:
        alone = suggester.suggest(line.text)
        assert _plain(alone)["suggestions"] == _plain(result)["suggestions"]
        assert alone.diagnostics.skipped == result.diagnostics.skipped
        assert not result.diagnostics.degraded


def test_every_suggestion_traces_to_an_entry(mode_a: Suggester, by_hub: Suggester) -> None:
    """Nothing is invented, neither on the way by vectors nor by prototypes."""
    for suggester in (mode_a, by_hub):
        result = suggester.suggest("\n".join(LINES), top=WHOLE)
        assert len(result.suggestions) > 100
        assert _named(result) <= _entries(suggester).keys()


# --- what may not be found


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({"prefix": ("E1",)}, lambda each: each.icd_code.startswith("E1")),
        ({"chapters": ("IX",)}, lambda each: each.tags.chapter == "IX"),
        ({"groups": ("M00-M25",)}, lambda each: "M00" <= each.icd_code[:3] <= "M25"),
        ({"valid_only": True}, lambda each: all(origin.valid for origin in each.origins)),
        ({"billable_only": True, "sector": "ambulant"}, lambda each: each.tags.billable_ambulant),
        ({"exclude_exotic": True}, lambda each: not each.tags.exotic),
        ({"ifsg_only": True}, lambda each: each.tags.ifsg),
    ],
)
def test_a_filter_lets_nothing_else_through(
    mode_a: Suggester, by_hub: Suggester, wanted: dict[str, Any], passes: Any
) -> None:
    """However near the vectors or the prototypes of what does not pass."""
    for suggester in map(_without_floor, (mode_a, by_hub)):
        found = [
            each
            for line in LINES
            for each in suggester.suggest(line, wanted=Filter(**wanted), top=WHOLE).suggestions
        ]
        assert found
        assert [each.icd_code for each in found if not passes(each)] == []


def test_a_filter_finds_what_lies_deep(mode_a: Suggester) -> None:
    """The pool is cut after the filter: a subject far from the phrase still has its codes."""
    result = _without_floor(mode_a).suggest("Schenkelhalsbruch", wanted=Filter(prefix=("C50",)))
    assert result.suggestions


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_excluded_rows_never_come_back(mode_a: Suggester, by_hub: Suggester, seed: int) -> None:
    """Half of the corpus is left out, and all that the phrase found before: none of it is named.

    Not by words, vectors, the rows of near prototypes, degrees or a code written in the line.
    """
    lines = [*LINES, "E11.90", "Koxarthrose (M16.9)"]
    chance = np.random.default_rng(seed)
    for suggester in map(_without_floor, (mode_a, by_hub)):
        rows = _entries(suggester)
        half = set(chance.permutation(len(suggester.build.phrases))[::2].tolist())
        before = [_named(suggester.suggest(line)) for line in lines]
        excluded = frozenset(half | {row for each in before for entry in each for row in rows[entry]})
        for line in lines:
            [result] = suggester.suggest_many([Request(line, top=WHOLE, excluded_rows=excluded)])
            assert not result.diagnostics.degraded
            assert all(set(rows[entry]) - excluded for entry in _named(result))


def test_a_code_without_its_rows_is_not_found_by_its_prototype(mode_a: Suggester) -> None:
    """The prototype was trained on the excluded phrases; it stands in the index, and has no row to give."""
    code = _codes(mode_a.suggest("Schenkelhalsbruch"))[0]
    rows = frozenset(mode_a.build.phrases.rows_of(code).tolist())
    [result] = _without_floor(mode_a).suggest_many(
        [Request("Schenkelhalsbruch", top=WHOLE, excluded_rows=rows)]
    )

    assert result.suggestions
    assert code not in _codes(result)


def test_a_conflict_is_marked_and_goes_to_the_end(mode_a: Suggester) -> None:
    """The diagnosis that was dictated is kept below the rest; strict leaves it out."""
    found = mode_a.suggest("Krebs der Prostata", wanted=Filter(sex="w")).suggestions
    marks = [bool(each.conflict) for each in found]

    assert marks == sorted(marks)
    assert next(each for each in found if each.icd_code == "C61").conflict == ("sex",)
    strict = mode_a.suggest("Krebs der Prostata", wanted=Filter(sex="w", strict=True))
    assert "C61" not in _codes(strict)
    assert strict.suggestions


@pytest.mark.parametrize("text", ["", "\n\n", "???", "漢字", "\U0001f600", "x" * 5000, "a\nb\n" * 200])
def test_any_text_is_answered(mode_a: Suggester, by_hub: Suggester, text: str) -> None:
    """With nothing to embed nothing fails."""
    for suggester in (mode_a, by_hub):
        result = suggester.suggest(text)
        assert not result.diagnostics.degraded
        assert bool(result.suggestions) != bool(result.diagnostics.reason)


# --- the hub


def test_one_request_embeds_all_phrases(hub: HubServer, by_hub: Suggester) -> None:
    """All lines go in one batch, each text once, and the calls are counted."""
    result = by_hub.suggest("\n".join(LINES[:3]))

    assert (result.diagnostics.mode, result.diagnostics.degraded) == ("a", False)
    assert hub.requests == {"embeddings": 1}
    assert result.diagnostics.ionos_calls == 1
    assert set(LINES[:2]) - {"Schenkelhalsbruch links"} <= set(hub.texts)


def test_nothing_is_sent_where_nothing_is_matched(hub: HubServer, by_hub: Suggester) -> None:
    """An empty input, and codes alone."""
    assert by_hub.suggest("").diagnostics.ionos_calls == 0
    assert _codes(by_hub.suggest("E11.90")) == ["E11.90"]
    assert hub.count == 0


@pytest.mark.parametrize("shape", ["results", "data"])
def test_the_hub_reranks_and_adds_nothing(hub: HubServer, by_hub: Suggester, shape: str) -> None:
    """The same codes in another order, in both shapes of an answer."""
    hub.rerank_shape = shape
    reranking = Suggester(by_hub.build, replace(by_hub.config, reranker="hub"))
    changed = 0
    for line in LINES:
        before, after = by_hub.suggest(line, top=WHOLE), reranking.suggest(line, top=WHOLE)
        assert set(_codes(after)) == set(_codes(before))
        assert _named(after) <= _entries(by_hub).keys()
        assert not after.diagnostics.degraded
        changed += _codes(after) != _codes(before)
    assert changed > len(LINES) / 2
    assert hub.requests["rerank"] == len(LINES)


def test_the_hub_orders_as_it_scores(hub: HubServer, built_in: BuiltIn) -> None:
    """The best of its pool is what it likes best; what lies beyond the pool stays behind it."""
    config = hub_config(hub.url, built_in.storage, provider="builtin", fusion=FusionConfig(hub_pool=5))
    text = "Entzündung der Nasennebenhöhle"
    before = Suggester.open(config).suggest(text, top=20).suggestions
    after = Suggester.open(replace(config, reranker="hub")).suggest(text, top=20).suggestions
    pool = [each for each in before if each.score < 0.98][:5]

    assert {each.icd_code for each in pool} == {each.icd_code for each in after[: len(pool)]}
    assert [each.icd_code for each in after[5:]] == [each.icd_code for each in before[5:]]
    assert hub.requests == {"rerank": 1}


def test_what_is_exact_stays_first_under_the_hub(
    hub: HubServer, by_hub: Suggester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text, and the same words in another order, though the hub likes best what is least alike."""
    monkeypatch.setattr("hub_server.relevance_of", lambda query, text: 1 - relevance_of(query, text))
    reranking = Suggester(by_hub.build, replace(by_hub.config, reranker="hub"))
    for text in ("Asiatische Cholera", "Cholera, asiatische", "Schlaganfall"):
        before, after = by_hub.suggest(text).suggestions, reranking.suggest(text).suggestions
        assert after[0].icd_code == before[0].icd_code
        assert after[0].score > 0.98
        assert [each.icd_code for each in after] != [each.icd_code for each in before]
    assert hub.requests["rerank"] == 3


def test_an_answer_is_the_same_in_every_process(built_in):
    """Neither the order of sets nor how many threads BLAS has moves a score."""
    arguments = ["suggest", "-", "--mode", "a", "--each", "--json", "--storage", str(built_in.storage)]
    answers = []
    for seed, threads in (("1", "1"), ("2", "2")):
        variables = {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = alpha_id(*arguments, stdin="\n".join(LINES).encode(), variables=variables)
        assert done.returncode == 0, done.stderr
        answers.append(
            [
                (each["icd_code"], each["score"], each["matched_phrase"])
                for line in json.loads(done.stdout)
                for each in line["suggestions"]
            ]
        )
    assert len(answers[0]) > len(LINES)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("line", ["Bitte um Rückruf beim Steuerberater", "qxzyw vvvkl"])
def test_what_is_like_no_candidate_is_not_sure_of_any(mode_a, line):
    """Trees compare candidates; where even the best is unlike the text, none scores as if it were right."""
    assert all(each.score < 0.5 for each in mode_a.suggest(line).suggestions)


def test_a_filter_that_leaves_only_strangers_yields_no_sure_answer(mode_a):
    """The one code left is not the answer because it is alone."""
    answer = mode_a.suggest("Zuckerkrankheit", wanted=Filter(prefix=("S",)))
    assert all(each.score < 0.3 for each in answer.suggestions)
