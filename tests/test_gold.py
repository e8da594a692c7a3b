"""The gold lists: what is read, what the checker finds, and that the shipped ones hold."""

import json
from collections import Counter
from pathlib import Path

import pytest

from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.evaluation.gold import (
    KINDS,
    GoldList,
    GoldPhrase,
    Mark,
    check_gold,
    extraction_ceiling,
    load_gold,
    marks,
    plain_dictation,
)
from tests.reference import SHARED, needs_shared

SHIPPED = Path(__file__).resolve().parents[1] / "data" / "gold"
ORACLE = SHARED / "oracle" / "icd10gm2025syst_kodes.txt"
TERMINAL = {"I10.90", "E11.40", "G63.2", "R05"}

SOUND = {
    "id": "test-001",
    "specialty": "general_practice",
    "edition": 2025,
    "dictation": "Er hat [[0|hohen Blutdruck]], die [[1~|Füße]] [[1~|kribbeln bei Zucker]], [[2|EKG o.B.]].",
    "phrases": [
        {"text": "hohen Blutdruck", "codes": ["I10.90"], "accept": {"I10.90": ["R05"]}, "kinds": ["lay"]},
        {"text": "diabetische PNP", "codes": ["E11.40", "G63.2"], "kinds": ["abbreviation", "two_codes"]},
        {"text": "EKG o.B.", "codes": [], "kinds": ["no_diagnosis"]},
    ],
}


def with_changes(**changes):
    """The sound list with keys replaced; ``phrase`` changes keys of its first phrase."""
    row = json.loads(json.dumps(SOUND))
    row["phrases"][0].update(changes.pop("phrase", {}))
    return row | changes


def write(path, *rows):
    """The rows as one JSONL file."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def problems_of(tmp_path, *rows, **options):
    """What the checker says of the rows."""
    return check_gold(load_gold(write(tmp_path / "g.jsonl", *rows)), TERMINAL.__contains__, **options)


def test_a_sound_list_is_read_whole_and_has_no_problems(tmp_path):
    """All that the file says is in the dataclasses, and the checker is content."""
    lists = load_gold(write(tmp_path / "g.jsonl", SOUND))
    phrase = GoldPhrase("hohen Blutdruck", ("I10.90",), (("R05",),), context=False, kinds=("lay",))
    assert lists[0].phrases[0] == phrase
    assert lists[0].phrases[1].accept == ((), ())
    assert (lists[0].id, lists[0].edition, lists[0].place) == ("test-001", 2025, "g.jsonl:1")
    assert check_gold(lists, TERMINAL.__contains__, edition=2025) == []


def test_marks_and_plain_text_come_apart():
    """A mark gives its phrase, its span and whether it is a line; the plain text is what was spoken."""
    text = "Eine [[0|Gicht]] und [[1~|rotes Knie]]."
    assert marks(text) == (Mark(0, "Gicht", extractable=True), Mark(1, "rotes Knie", extractable=False))
    assert plain_dictation(text) == "Eine Gicht und rotes Knie."


def test_the_ceiling_counts_coded_phrases_that_are_a_line(tmp_path):
    """Lines without a diagnosis do not count, lists without a dictation are named apart."""
    bare = with_changes(id="test-002", dictation=None)
    ceiling = extraction_ceiling(load_gold(write(tmp_path / "g.jsonl", SOUND, bare)))
    assert (ceiling.diagnoses, ceiling.found, ceiling.share) == (2, 1, 0.5)
    assert ceiling.missed == (("test-001", 1),)
    assert ceiling.without_dictation == 1


def test_without_a_diagnosis_there_is_no_ceiling():
    """No share is better than a share of nothing."""
    assert extraction_ceiling([GoldList("x", "", None, None, (), "g:1")]).share is None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (with_changes(phrase={"codes": ["I10"], "accept": {}}), "phrase 0: I10 is not a valid terminal code"),
        (
            with_changes(phrase={"accept": {"I10.90": ["I10.9"]}}),
            "phrase 0: I10.9 is not a valid terminal code",
        ),
        (with_changes(phrase={"accept": {"I10.90": ["I10.90"]}}), "phrase 0: I10.90 is named 2 times"),
        (
            with_changes(phrase={"codes": [], "accept": {}}),
            "kind no_diagnosis and the number of codes disagree",
        ),
        (with_changes(phrase={"codes": ["R05", "G63.2"], "accept": {}}), "kind two_codes and the number"),
        (with_changes(phrase={"kinds": ["plain", "lay"]}), "phrase 0: kind plain beside another"),
        (with_changes(phrase={"kinds": ["easy"]}), "phrase 0: unknown kind 'easy'"),
        (with_changes(phrase={"kinds": []}), "phrase 0: no kind"),
        (
            with_changes(phrase={"codes": [], "accept": {}, "context": True}),
            "phrase 0: context without a code",
        ),
        (with_changes(phrase={"text": "hoher Blutdruck"}), "phrase 0: its text is not the marked span"),
        (with_changes(phrase={"text": "hohen\nBlutdruck"}), "phrase 0: more than one line"),
        (with_changes(phrases=[]), "test-001: no phrases"),
        (with_changes(edition=2024), "of edition 2024"),
        (with_changes(dictation=SOUND["dictation"] + " [[7|Husten]]"), "a mark names phrase 7"),
        (with_changes(dictation=SOUND["dictation"] + " [[0 Husten]]"), "a mark that does not parse"),
        (
            with_changes(dictation=SOUND["dictation"] + " [[0~|Druck]]"),
            "phrase 0: marked both as a line and as none",
        ),
        (with_changes(dictation="Er hat [[0|hohen Blutdruck]], [[2|EKG o.B.]]."), "phrase 1: not marked"),
        (
            with_changes(dictation=SOUND["dictation"] + " Diabetische PNP."),
            "phrase 1: marked as no line, yet",
        ),
    ],
)
def test_the_checker_finds_a_planted_fault(tmp_path, row, said):
    """Each fault is found, and named by file, line, list and phrase."""
    problems = problems_of(tmp_path, row, edition=2025)
    assert any(said in problem for problem in problems), problems
    assert all(problem.startswith("g.jsonl:1: test-001: ") for problem in problems)


def test_two_lists_may_not_share_an_id(tmp_path):
    """An id names one list over all files."""
    assert problems_of(tmp_path, SOUND, SOUND) == ["list id 'test-001' is used 2 times"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (with_changes(edition="2025"), "edition is not a year"),
        (with_changes(edition=True), "edition is not a year"),
        (with_changes(id=" "), "id is not a text"),
        (with_changes(dictation=["x"]), "dictation is not a text"),
        (with_changes(phrases={}), "phrases is not a list"),
        (with_changes(note="x"), "the list has unknown keys note"),
        (with_changes(phrase={"text": 3}), "phrase 0: text is not a text"),
        (with_changes(phrase={"codes": "I10.90"}), "phrase 0, codes is not a list"),
        (with_changes(phrase={"codes": ["G63.2*"]}), "not spelled like a code"),
        (with_changes(phrase={"accept": {"R05": ["R06.0"]}}), "phrase 0, accept names no gold code"),
        (with_changes(phrase={"context": "yes"}), "phrase 0, context is not true or false"),
        (with_changes(phrase={"kinds": None}), "phrase 0, kinds are no texts"),
        (with_changes(phrase={"code": "R05"}), "phrase 0 has unknown keys code"),
        (["a", "list"], "not a JSON object"),
    ],
)
def test_a_line_of_another_shape_is_refused_with_its_place(tmp_path, row, said):
    """The error names file and line, and says what is wrong without quoting the phrase."""
    with pytest.raises(UsageError) as caught:
        load_gold(write(tmp_path / "bad.jsonl", SOUND, row))
    assert f"bad.jsonl:2: {said}" in str(caught.value) or said in str(caught.value)
    assert "bad.jsonl:2: " in str(caught.value)
    assert "Blutdruck" not in str(caught.value)


def test_broken_json_is_refused_without_quoting_it(tmp_path):
    """Every broken line is named, and nothing of its text."""
    file = tmp_path / "bad.jsonl"
    file.write_text('{"id": "Husten\n\n{Gicht}\n', encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_gold(file)
    assert "bad.jsonl:1: not JSON" in str(caught.value)
    assert "bad.jsonl:3: not JSON" in str(caught.value)
    assert "Husten" not in str(caught.value)
    assert "Gicht" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (None, None, "are not there"),
        ("empty.jsonl", b"\n\n", "at least one line"),
        ("gold.csv", b"Husten;R05\n", "neither .jsonl nor .tsv"),
        ("latin.tsv", "Übelkeit\tR11\n".encode("cp1252"), "cannot be read as UTF-8"),
    ],
)
def test_nothing_to_read_is_wrong_use(tmp_path, name, content, said):
    """A missing, empty or foreign file ends in one paragraph with the cure."""
    file = tmp_path / (name or "nowhere.jsonl")
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        load_gold(file)


def test_a_folder_is_all_its_jsonl_files_in_order_of_name(tmp_path):
    """Other files of the folder are left alone; a folder without lists is wrong use."""
    with pytest.raises(UsageError, match="in the folder"):
        load_gold(tmp_path)
    write(tmp_path / "b.jsonl", with_changes(id="b"))
    write(tmp_path / "a.jsonl", with_changes(id="a"))
    (tmp_path / "README.md").write_text("no list", encoding="utf-8")
    assert [gold.id for gold in load_gold(tmp_path)] == ["a", "b"]


def test_a_tsv_row_is_a_list_of_one_phrase(tmp_path):
    """Marks are taken off, several codes kept, no code is no diagnosis, BOM and CRLF are tolerated."""
    file = tmp_path / "g.tsv"
    content = (
        "Husten\tR05\r\n\r\ndiab. PNP\tE11.40+G63.2*\r\nEKG o.B.\t-\r\nHypertonie\tI10.-, R05\textra\r\n"
    )
    file.write_bytes(content.encode("utf-8-sig"))
    lists = load_gold(file)
    assert [gold.phrases[0].text for gold in lists] == ["Husten", "diab. PNP", "EKG o.B.", "Hypertonie"]
    assert [gold.phrases[0].codes for gold in lists] == [("R05",), ("E11.40", "G63.2"), (), ("I10", "R05")]
    assert [gold.place for gold in lists] == ["g.tsv:1", "g.tsv:3", "g.tsv:4", "g.tsv:5"]
    assert check_gold(lists[:3], TERMINAL.__contains__, edition=2025) == []
    assert extraction_ceiling(lists).without_dictation == 4


def test_a_tsv_header_names_the_columns(tmp_path):
    """With a header the order of the columns is free, and a column ``kind`` is kept."""
    file = tmp_path / "g.tsv"
    file.write_text("kind\tcode\tphrase\nlay\tR05\tHusten\n", encoding="utf-8")
    (gold,) = load_gold(file)
    assert (gold.phrases[0].text, gold.phrases[0].codes, gold.specialty) == ("Husten", ("R05",), "lay")


def test_a_tsv_row_without_a_code_like_cell_is_refused(tmp_path):
    """Each such row is named by file and line, without its text."""
    file = tmp_path / "g.tsv"
    file.write_text("Husten\tR05\nGicht\tkeiner\nSchwindel\n\tR42\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_gold(file)
    assert all(f"g.tsv:{line}: not a phrase, a tab and a code" in str(caught.value) for line in (2, 3, 4))
    assert "Gicht" not in str(caught.value)


def test_the_shipped_lists_pass_the_structural_checks():
    """Ids, kinds, marks and spans hold, whatever data is there."""
    assert check_gold(load_gold(SHIPPED), edition=2025) == []


def test_the_shipped_lists_are_as_many_and_as_varied_as_promised():
    """At least 60 lists, 300 phrases, ten lists of 11 to 20, every kind and every specialty."""
    lists = load_gold(SHIPPED)
    phrases = [phrase for gold in lists for phrase in gold.phrases]
    kinds = Counter(kind for phrase in phrases for kind in phrase.kinds)
    assert len(lists) >= 60
    assert len(phrases) >= 330
    assert sum(11 <= len(gold.phrases) <= 20 for gold in lists) >= 10
    assert max(len(gold.phrases) for gold in lists) <= 20
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 10
    assert sum(phrase.context for phrase in phrases) >= 10
    assert sum(any(phrase.accept) for phrase in phrases) >= 10
    assert all(gold.specialty == gold.place.split(".")[0] for gold in lists)
    wanted = {
        "internal",
        "surgery",
        "general_practice",
        "paediatrics",
        "gynaecology",
        "psychiatry",
        "oncology",
    }
    assert wanted | {"emergency"} <= {gold.specialty for gold in lists}


def test_the_shipped_dictations_hold_diagnoses_that_no_extractor_finds_as_a_line():
    """The ceiling is measured, so it must be able to lie below one; most diagnoses are a line."""
    ceiling = extraction_ceiling(load_gold(SHIPPED))
    assert ceiling.share is not None
    assert 0.9 < ceiling.share < 1
    assert ceiling.without_dictation == 0


@pytest.mark.full
@needs_shared
def test_every_shipped_code_is_terminal_and_assigned_in_the_edition():
    """Gold codes and their equals, against the official metadata of 2025."""
    rows = [line.split(";") for line in ORACLE.read_text(encoding="utf-8").splitlines()]
    terminal = {row[6] for row in rows if row[1] == "T" and row[25] == "J"}
    assert check_gold(load_gold(SHIPPED), terminal.__contains__, edition=2025) == []
