"""Mode C from text to the one list: what is found, in which order, and what is said of the rest."""

from __future__ import annotations

import json
import shutil
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from alpha_id_assets.building import build_lexical
from alpha_id_runtime.config import Config
from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.model import Filter
from alpha_id_runtime.pipeline import Request, Suggester
from tests.conftest import SAMPLE
from tests.reference import needs_shared

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import Suggestion, SuggestResult

ROWS = """\
1|I1|||B96.2!|||Kolibakterien
1|I2||G63.2*||||Nervenleiden als Manifestation
0|I3|E14.90|||||Zuckerleiden
1|I4|E11.90|||||Zuckerleiden
0|I5|F03|||||Altersdemenz
1|I6|F03|||||Altersdemenz
0|I7|G20.90|||||Schüttelkrankheit
1|I8|E11.40+|G63.2*||||Zucker mit Nervenleiden
1|I9|A41.0||U80.00!||991|Blutvergiftung durch MRSA
1|I10|C50.9|||Z80.3||Familiärer Brustkrebs
1|I11|I21.4|||||NSTEMI
1|I12|I10.90|||||Hochdruck
1|I13|N40|||||Prostatahyperplasie
"""

# The names of the output contract; additions are allowed.
ANSWER = "suggestions diagnostics"
SUGGESTION = """icd_code description score matched_phrase alpha_id orpha origin source_segments origins
    secondary_only edition_gap conflict tags complements"""
ORIGIN = "segment phrase matched_phrase alpha_id orpha origin valid score certainty laterality"
TAGS = """billable billable_ambulant billable_stationaer role para295 para301 terminal valid chapter group
    usage exotic sex age_low age_high ifsg content"""
COMPLEMENT = "icd_code usage description"
DIAGNOSTICS = """mode degraded degraded_reason reason timings segment_count skipped unrepresented warnings
    hints ionos_calls editions system version build_id notice"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Suggester:
    """Return a suggester over ``ROWS`` and the sample's classification."""
    root = tmp_path_factory.mktemp("small")
    (root / "data").mkdir()
    (root / "data" / "icd10gm2026_alphaidse_edvtxt.txt").write_text(ROWS, encoding="utf-8")
    shutil.copy(next(SAMPLE.glob("*claml*.xml")), root / "data")
    config = Config(data=root / "data", storage=root / "storage")
    build_lexical(StorageLayout(config.storage), config, lambda _: None)
    return Suggester.open(config)


def _codes(result: SuggestResult) -> list[str]:
    return [each.icd_code for each in result.suggestions]


def _first(suggester: Suggester, text: str, **wanted: Any) -> Suggestion:
    return suggester.suggest(text, wanted=Filter(**wanted)).suggestions[0]


def _plain(result: SuggestResult) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    plain["diagnostics"].pop("timings")
    return plain


# --- the contract of the output


def test_the_output_has_the_names_of_the_contract(sample: Suggester) -> None:
    """Frozen once shipped; a hospital's software reads them."""
    plain = sample.suggest("Arterielle Hypertonie\nTyp-2-Diabetes mit Nephropathie").to_dict()
    suggestion = next(each for each in plain["suggestions"] if each["complements"])

    for part, names in (
        (plain, ANSWER),
        (suggestion, SUGGESTION),
        (suggestion["origins"][0], ORIGIN),
        (suggestion["tags"], TAGS),
        (suggestion["complements"][0], COMPLEMENT),
        (plain["diagnostics"], DIAGNOSTICS),
    ):
        assert set(names.split()) <= set(part)
    diagnostics = plain["diagnostics"]
    assert (diagnostics["mode"], diagnostics["degraded"], diagnostics["ionos_calls"]) == ("c", False, 0)
    assert diagnostics["editions"] == {"alpha_id": 2026, "claml": 2026}
    assert "not a medical device" in diagnostics["notice"]


def test_every_suggestion_traces_to_an_entry_of_the_corpus(sample: Suggester) -> None:
    """Titles and inclusions have no ids; an Alpha-ID text has its own, and its code."""
    entries = {
        (text, code, alpha_id)
        for text, code, alpha_id in zip(
            *(sample.build.phrases.column(name) for name in ("text", "icd_code", "alpha_id")), strict=True
        )
    }
    result = sample.suggest("Hypertonie\nDiabetes\nHerzinfarkt\nE11.9\nPneumonie\nFraktur", top=60)

    assert len(result.suggestions) == 60
    for each in result.suggestions:
        assert (each.matched_phrase, each.icd_code, each.alpha_id) in entries
        assert (each.alpha_id is None) == (each.origin != "alpha_id")
        for origin in each.origins:
            assert (origin.matched_phrase, each.icd_code, origin.alpha_id) in entries


def test_the_same_input_gives_the_same_answer(sample: Suggester, sample_storage: Path) -> None:
    """In one process, after other questions, and from a build opened anew."""
    text = "Hypertonie\nDiabetes Typ 2\nOberschenkelbruch\nCOPD\nNSTEMI"
    answer = _plain(sample.suggest(text))
    sample.suggest("etwas anderes", wanted=Filter(sex="w"))

    assert _plain(sample.suggest(text)) == answer
    assert _plain(Suggester.open(Config(storage=sample_storage, mode="c")).suggest(text)) == answer


def test_phrases_are_answered_alike_alone_and_together(sample: Suggester) -> None:
    """``suggest_many`` and ``suggest_each`` only save time."""
    lines = ["Arterielle Hypertonie", "Gehirnschlag", "???", "E11.90"]
    each = sample.suggest_each("\n".join(lines))

    assert [line.text for line, _ in each] == lines
    assert [_plain(result) for _, result in each] == [_plain(sample.suggest(line)) for line in lines]


# --- what is found


def test_an_exact_phrase_comes_first(sample: Suggester) -> None:
    """However it is spelled; the score of the very same text is 1."""
    for text in ("Asiatische Cholera", "ASIATISCHE  CHOLERA.", "  asiatische-cholera"):
        first = _first(sample, text)
        assert (first.icd_code, first.matched_phrase, first.score) == ("A00.0", "Asiatische Cholera", 1.0)
    assert _first(sample, "Gehirnschlag").icd_code == "I64"


def test_umlauts_are_found_in_every_spelling(sample: Suggester) -> None:
    """ä, ae, A with a combining mark; ß and ss."""
    for word in ("Schüttellähmung", "Mandelentzündung", "Diabetisches Fußsyndrom"):
        wanted = _first(sample, word)
        spelled = [word.translate({0xE4: "ae", 0xFC: "ue", 0xDF: "ss"}), word.upper()]
        for text in (*spelled, unicodedata.normalize("NFD", word)):
            found = _first(sample, text)
            assert (found.icd_code, found.matched_phrase) == (wanted.icd_code, wanted.matched_phrase)
            assert found.score == wanted.score


def test_an_invalid_phrase_matches_below_an_equal_valid_one(small: Suggester) -> None:
    """Of two codes the valid phrase's is first, of one code the valid phrase is named."""
    first, second = small.suggest("Zuckerleiden", top=2).suggestions

    assert (first.icd_code, first.tags.valid) == ("E11.90", True)
    assert (second.icd_code, second.tags.valid, second.alpha_id) == ("E14.90", False, "I3")
    assert first.score > second.score > 0.99
    assert _first(small, "Altersdemenz").alpha_id == "I6"
    assert _first(small, "Schüttelkrankheit").alpha_id == "I7"


def test_valid_only_leaves_out_phrases_and_not_codes(small: Suggester) -> None:
    """A code whose only wording is invalid is still found by its title."""
    result = small.suggest("Zuckerleiden\nSchüttelkrankheit", wanted=Filter(valid_only=True))

    assert all(origin.valid for each in result.suggestions for origin in each.origins)
    assert {each.alpha_id for each in result.suggestions}.isdisjoint({"I3", "I5", "I7"})
    assert "G20.90" in _codes(small.suggest("G20.90", wanted=Filter(valid_only=True)))


def test_partners_of_an_entry_are_complements_of_its_code(small: Suggester) -> None:
    """Aster, addon and second primary, with their titles; they take no place."""
    for text, code, partner, usage in (
        ("Zucker mit Nervenleiden", "E11.40", "G63.2", "aster"),
        ("Blutvergiftung durch MRSA", "A41.0", "U80.00", "optional"),
        ("Familiärer Brustkrebs", "C50.9", "Z80.3", "second_primary"),
    ):
        [only] = small.suggest(text, top=1).suggestions
        assert only.icd_code == code
        assert [(each.icd_code, each.usage) for each in only.complements] == [(partner, usage)]
        assert only.complements[0].description == small.build.codes.title(partner)
        assert not only.secondary_only
    assert _first(small, "Blutvergiftung durch MRSA").orpha == "991"


def test_a_phrase_whose_only_code_never_stands_alone_yields_it_marked(small: Suggester) -> None:
    """An addon or aster code, also under --billable-only."""
    for text, code, role in (
        ("Kolibakterien", "B96.2", "addon"),
        ("Nervenleiden als Manifestation", "G63.2", "aster"),
    ):
        first = _first(small, text, billable_only=True)
        assert (first.icd_code, first.secondary_only, first.tags.role) == (code, True, role)
        assert first.tags.billable


def test_a_code_that_was_subdivided_stands_for_its_children(small: Suggester) -> None:
    """The unspecified one first, the others beside it, all marked."""
    found = small.suggest("NSTEMI").suggestions[:3]

    assert [each.icd_code for each in found] == ["I21.48", "I21.40", "I21.41"]
    assert all(each.edition_gap and each.alpha_id == "I11" for each in found)
    assert found[0].score == 1.0


@pytest.mark.full
@needs_shared
@pytest.mark.parametrize("sector", ["any", "ambulant", "stationaer"])
def test_nstemi_of_2023_is_found_under_2025_in_every_sector(full: Suggester, sector: str) -> None:
    """I21.48 first, I21.40 and I21.41 beside it."""
    found = full.suggest("NSTEMI", wanted=Filter(billable_only=True, sector=sector)).suggestions  # type: ignore[arg-type]

    assert [each.icd_code for each in found[:3]] == ["I21.48", "I21.40", "I21.41"]
    assert all(each.edition_gap for each in found[:3])
    assert {each.alpha_id for each in found[:3]} == {found[0].alpha_id}


@pytest.mark.full
@needs_shared
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Ösophagusvarizenblutung bei Leberzirrhose", "I98.3"),
        ("AV-Block II. Grades", "I44.1"),
        ("AV-Block 2. Grades", "I44.1"),
        ("β-Thalassämie", "D56.1"),
        ("arterielle Hypertonie", "I10.90"),
        ("ARTERIELLE HYPERTONIE", "I10.90"),
        ("Hyper\u00adtonie", "I10.90"),
    ],
)
def test_everyday_spellings_find_their_code_at_full_size(full: Suggester, text: str, code: str) -> None:
    """First, or as the complement of the first."""
    first = full.suggest(text).suggestions[0]

    assert code in {first.icd_code, *(each.icd_code for each in first.complements)}


# --- codes written in a line


@pytest.mark.parametrize("text", ["E11.90", "e11.90", "E1190", "E11.90-", "(E11.90)", "ICD-10: E11.90"])
def test_a_line_that_is_a_terminal_code_finds_it_alone(sample: Suggester, text: str) -> None:
    """By its title."""
    [only] = sample.suggest(text).suggestions

    assert (only.icd_code, only.score) == ("E11.90", 1.0)


def test_a_code_beside_words_leads_the_list(sample: Suggester) -> None:
    """What the words say comes beside it."""
    codes = _codes(sample.suggest("arterielle Hypertonie, I10"))
    assert codes[0] == "I10.90"
    assert {"I10.91", "I10.00"} <= set(codes)

    codes = _codes(sample.suggest("Gehirnschlag (I10.90)"))
    assert set(codes[:2]) == {"I10.90", "I64"}


def test_a_code_that_is_subdivided_is_found_by_its_children(sample: Suggester) -> None:
    """Terminal ones only, the unspecified one first, and no edition gap."""
    found = sample.suggest("E11.7").suggestions
    assert [each.icd_code for each in found] == ["E11.72", "E11.74", "E11.73", "E11.75"]
    assert not any(each.edition_gap for each in found)
    assert _codes(sample.suggest("I10"))[0] == "I10.90"


def test_codes_of_several_lines_and_of_one_line_each_have_a_place(sample: Suggester) -> None:
    """In the order of the line."""
    assert _codes(sample.suggest("E11.90,I10.90")) == ["E11.90", "I10.90"]
    assert set(_codes(sample.suggest("E11.90\nI10.90"))) == {"E11.90", "I10.90"}


@pytest.mark.parametrize("text", ['I10 "(+*!~^', "I10 AND OR NOT", 'I10.90:"* \\', "words:I10.90"])
def test_signs_of_query_languages_are_just_text(sample: Suggester, text: str) -> None:
    """No parser sees them."""
    assert _codes(sample.suggest(text))[0] == "I10.90"


def test_a_placeholder_is_never_suggested(sample: Suggester) -> None:
    """Not by its code and not by its title."""
    for text in ("U13.0", "Nicht belegte Schlüsselnummer U13.0", "Nicht belegte Schlüsselnummer"):
        result = sample.suggest(text, top=50)
        assert not [each for each in result.suggestions if not each.tags.content]
        assert all(not code.startswith("U13") for code in _codes(result))
    assert sample.suggest("U13.0").diagnostics.reason


# --- filters


@pytest.mark.parametrize(
    "wanted",
    [
        {"prefix": ("C50",)},
        {"chapters": ("XIV",)},
        {"groups": ("I10-I15",)},
        {"ifsg_only": True},
        {"exclude_exotic": True},
        {"billable_only": True, "sector": "ambulant"},
        {"valid_only": True},
        {"sex": "w", "age": "3d", "strict": True},
    ],
)
def test_a_filter_chooses_among_all_candidates(sample: Suggester, wanted: dict[str, Any]) -> None:
    """The pool is cut after the filter: a phrase that is like hundreds of others still finds what passes."""
    text = "Erkrankung der Brust, der Niere, des Herzens oder durch Infektion, nicht näher bezeichnet"
    result = sample.suggest(text, wanted=Filter(**wanted))

    assert result.suggestions
    assert not result.diagnostics.skipped
    assert _plain(sample.suggest(text))["suggestions"]


def test_a_filter_that_leaves_nothing_says_so(sample: Suggester) -> None:
    """The list is empty for a reason."""
    result = sample.suggest("Hypertonie", wanted=Filter(prefix=("X99",)))

    assert result.suggestions == ()
    assert result.diagnostics.reason == "No candidate for this line passes the filters."
    assert [each.segment for each in result.diagnostics.skipped] == [0]


def test_a_filter_holds_for_codes_written_in_the_line(sample: Suggester) -> None:
    """The user asked for both."""
    assert _codes(sample.suggest("E11.90", wanted=Filter(chapters=("I",)))) == []
    assert _codes(sample.suggest("E11", wanted=Filter(prefix=("E11.7",)))) == [
        "E11.72",
        "E11.74",
        "E11.73",
        "E11.75",
    ]


def test_what_is_in_conflict_stays_in_the_list_below_the_rest(sample: Suggester) -> None:
    """The very diagnosis that was dictated is not lost among its lookalikes; strict removes it."""
    found = sample.suggest("Prostatakarzinom", wanted=Filter(sex="w")).suggestions
    marks = [bool(each.conflict) for each in found]

    assert "C61" in [each.icd_code for each in found]
    assert next(each for each in found if each.icd_code == "C61").conflict == ("sex",)
    assert marks == sorted(marks)
    assert "C61" not in _codes(sample.suggest("Prostatakarzinom", wanted=Filter(sex="w", strict=True)))
    for sex in ("m", "d", "x"):
        assert _first(sample, "Prostatakarzinom", sex=sex).icd_code == "C61"


def test_a_filter_value_that_cannot_be_meant_is_an_error_even_without_input(sample: Suggester) -> None:
    """Not a quietly empty answer."""
    with pytest.raises(UsageError, match="--chapters 99"):
        sample.suggest("", wanted=Filter(chapters=("99",)))


def test_a_sector_without_billable_only_is_warned_about(sample: Suggester) -> None:
    """It has no effect by itself."""
    warnings = sample.suggest("Gicht", wanted=Filter(sector="ambulant")).diagnostics.warnings
    assert [each for each in warnings if "--sector" in each]


# --- evaluation


def test_excluded_rows_never_become_candidates(small: Suggester) -> None:
    """Their code may still come by another entry."""
    phrases = small.build.phrases
    own = [row for row, alpha_id in enumerate(phrases.column("alpha_id")) if alpha_id in ("I12", "I13")]
    [result] = small.suggest_many([Request("Hochdruck\nN40", excluded_rows=frozenset(own))])

    assert not {"I12", "I13"} & {o.alpha_id for each in result.suggestions for o in each.origins}
    assert "N40" in _codes(result)
    assert small.suggest("Hochdruck").suggestions[0].alpha_id == "I12"
