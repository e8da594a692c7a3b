"""Joining an Alpha-ID edition with a ClaML edition, and the order of sibling codes."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from alpha_id_assets.sources.alpha_id import read_alpha_id
from alpha_id_assets.sources.claml import read_claml
from alpha_id_assets.sources.corpus import PHRASES_SCHEMA, CodeCount, Corpus, Gap, build_corpus
from alpha_id_runtime.hierarchy import leaves_unspecified_first, unspecified_first
from alpha_id_runtime.text import content_hash, normalise
from tests.reference import SHARED, needs_shared

# code, parent, title, usage, terminal, content
CODES: list[tuple[str, str, str, str | None, bool, str]] = [
    ("A00", "A00-A09", "Cholera", None, False, "J"),
    ("A00.0", "A00", "Cholera durch Vibrio cholerae O:1", None, True, "J"),
    ("A00.9", "A00", "Cholera, nicht näher bezeichnet", None, True, "J"),
    ("B96", "B95-B98", "Sonstige Bakterien", "optional", False, "J"),
    ("B96.2", "B96", "Escherichia coli [E. coli] als Ursache", "optional", True, "J"),
    ("G63", "G60-G64", "Polyneuropathie bei Krankheiten", "aster", False, "J"),
    ("G63.2", "G63", "Diabetische\u00a0Polyneuropathie", "aster", True, "J"),
    ("I21", "I20-I25", "Akuter Myokardinfarkt", None, False, "J"),
    ("I21.4", "I21", "Akuter subendokardialer Myokardinfarkt", None, False, "J"),
    ("I21.40", "I21.4", "Akuter subendokardialer Myokardinfarkt, Typ-1-Infarkt", None, True, "J"),
    ("I21.41", "I21.4", "Akuter subendokardialer Myokardinfarkt, Typ-2-Infarkt", None, True, "J"),
    ("I21.47", "I21.4", "Nicht belegte Schlüsselnummer I21.47", None, True, "N"),
    ("I21.48", "I21.4", "Sonstiger und nicht näher bezeichneter Myokardinfarkt", None, True, "J"),
    ("I21.9", "I21", "Akuter Myokardinfarkt, nicht näher bezeichnet", None, True, "J"),
    ("U13", "U11-U15", "Nicht belegte Schlüsselnummer U13", None, False, "N"),
    ("U13.0", "U13", "Nicht belegte Schlüsselnummer U13.0", None, True, "N"),
]
META = pl.DataFrame(
    [(code, "category", *rest) for code, *rest in CODES]
    + [("I", "chapter", None, "Kapitel", None, False, None)],
    schema=["code", "kind", "parent", "title", "usage", "terminal", "content"],
    orient="row",
)
NO_RUBRICS = pl.DataFrame(
    schema={"code": pl.String, "kind": pl.String, "text": pl.String, "from_modifier": pl.Boolean}
)


def _rubrics(*rows: tuple[str, str, str, bool]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=NO_RUBRICS.schema, orient="row")


def _build(*rows: str, rubrics: pl.DataFrame = NO_RUBRICS) -> Corpus:
    # One row that is in no test's way: a source is never empty.
    data = "\n".join([*rows, "1|I999|A00.0|||||Vibrionencholera"])
    return build_corpus(read_alpha_id(data.encode(), "a.txt").rows, META, rubrics)


def _phrases(corpus: Corpus, **equal: Any) -> list[dict[str, Any]]:
    return corpus.phrases.filter(pl.col("text") != "Vibrionencholera").filter(**equal).to_dicts()


def test_an_entry_gives_its_primary_code_with_the_others_as_complements() -> None:
    """Star, addon and second primary are complements in this order; orpha and validity stay."""
    corpus = _build("0|I1|A00.0+|G63.2*|B96.2!|A00.9|77|Cholera  mit allem ")

    assert corpus.phrases.schema == pl.Schema(PHRASES_SCHEMA)
    assert _phrases(corpus, origin="alpha_id") == [
        {
            "text": "Cholera  mit allem",
            "norm": normalise("Cholera mit allem"),
            "hash": content_hash("Cholera mit allem"),
            "origin": "alpha_id",
            "valid": False,
            "alpha_id": "I1",
            "orpha": "77",
            "icd_code": "A00.0",
            "secondary_only": False,
            "edition_gap": False,
            "gap_rank": 0,
            "complements": [
                {"icd_code": "G63.2", "usage": "aster"},
                {"icd_code": "B96.2", "usage": "optional"},
                {"icd_code": "A00.9", "usage": "second_primary"},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("fields", "code", "complements"),
    [
        ("||B96.2!|", "B96.2", []),
        ("|G63.2*||", "G63.2", []),
        ("|G63.2*|B96.2!|", "G63.2", [{"icd_code": "B96.2", "usage": "optional"}]),
    ],
)
def test_an_entry_without_primary_gives_a_code_that_never_stands_alone(
    fields: str, code: str, complements: list[dict[str, str]]
) -> None:
    """The star code, else the addon code, marked secondary_only."""
    [phrase] = _phrases(_build(f"1|I1|{fields}||x"), origin="alpha_id")

    assert (phrase["icd_code"], phrase["secondary_only"]) == (code, True)
    assert phrase["complements"] == complements


def test_a_split_code_stands_for_its_children_the_unspecified_one_first() -> None:
    """One row a child with content; the order within the file stays."""
    corpus = _build("1|I1|I21.4|||||NSTEMI", "1|I2|I21|||||Infarkt")
    rows = [
        (p["text"], p["icd_code"], p["gap_rank"])
        for p in _phrases(corpus, origin="alpha_id")
        if p["edition_gap"]
    ]

    assert rows == [
        ("NSTEMI", "I21.48", 0),
        ("NSTEMI", "I21.40", 1),
        ("NSTEMI", "I21.41", 2),
        ("Infarkt", "I21.9", 0),
        ("Infarkt", "I21.48", 1),
        ("Infarkt", "I21.40", 2),
        ("Infarkt", "I21.41", 3),
    ]
    assert corpus.report.gaps == (
        Gap("I21", 1, ("I21.9", "I21.48", "I21.40", "I21.41")),
        Gap("I21.4", 1, ("I21.48", "I21.40", "I21.41")),
    )
    assert corpus.report.phrases["alpha_id"] == 8


def test_codes_that_claml_lacks_or_has_no_content_for_are_left_out_and_listed() -> None:
    """Whole entries for their own code, only the partner for a complement; a split partner is kept."""
    corpus = _build(
        "1|I1|Z99.9|||||Unbekannt",
        "1|I2|Z99.9|||||Auch unbekannt",
        "1|I3|U13.0|||||Nicht belegt",
        "1|I4|U13|||||Gar nicht belegt",
        "1|I5|A00.0+|L99.9*||I21.4||Mit Partnern",
        "1|I6|A00.0||U13.0!|||Mit leerem Partner",
    )

    assert [(p["text"], p["complements"]) for p in _phrases(corpus, origin="alpha_id")] == [
        ("Mit Partnern", [{"icd_code": "I21.48", "usage": "second_primary"}]),
        ("Mit leerem Partner", []),
    ]
    assert corpus.report.unknown_codes == (CodeCount("Z99.9", 2),)
    assert corpus.report.unassigned_codes == (CodeCount("U13", 1), CodeCount("U13.0", 1))
    assert corpus.report.dropped_complements == (CodeCount("L99.9", 1), CodeCount("U13.0", 1))
    assert json.loads(json.dumps(corpus.report.to_dict()))["unknown_codes"] == [
        {"code": "Z99.9", "entries": 2}
    ]


def test_titles_and_inclusion_terms_of_terminal_codes_follow_the_entries() -> None:
    """In classification order; placeholders, split codes and rubrics of modifiers have none."""
    rubrics = _rubrics(
        ("I21.9", "inclusion", "Herzinfarkt o.n.A.", False),
        ("A00.0", "inclusion", "Klassische  Cholera", False),
        ("A00.0", "exclusion", "Typhus", False),
        ("A00.0", "inclusion", "Aus dem Modifikator", True),
        ("A00", "inclusion", "Nicht terminal", False),
        ("U13.0", "inclusion", "Ohne Inhalt", False),
    )
    phrases = _phrases(_build("1|I1|I21.9|||||Infarkt", rubrics=rubrics))

    assert [(p["origin"], p["icd_code"], p["text"]) for p in phrases] == [
        ("alpha_id", "I21.9", "Infarkt"),
        ("title", "A00.0", "Cholera durch Vibrio cholerae O:1"),
        ("title", "A00.9", "Cholera, nicht näher bezeichnet"),
        ("title", "B96.2", "Escherichia coli [E. coli] als Ursache"),
        ("title", "G63.2", "Diabetische Polyneuropathie"),
        ("title", "I21.40", "Akuter subendokardialer Myokardinfarkt, Typ-1-Infarkt"),
        ("title", "I21.41", "Akuter subendokardialer Myokardinfarkt, Typ-2-Infarkt"),
        ("title", "I21.48", "Sonstiger und nicht näher bezeichneter Myokardinfarkt"),
        ("title", "I21.9", "Akuter Myokardinfarkt, nicht näher bezeichnet"),
        ("inclusion", "A00.0", "Klassische Cholera"),
        ("inclusion", "I21.9", "Herzinfarkt o.n.A."),
    ]
    assert {p["icd_code"] for p in phrases if p["secondary_only"]} == {"B96.2", "G63.2"}
    assert all(p["alpha_id"] is None and p["valid"] and not p["complements"] for p in phrases[1:])


def test_a_title_or_inclusion_that_repeats_a_phrase_of_its_code_is_left_out() -> None:
    """Alpha-ID rows all stay, also twins of each other; an invalid, split or partnered row is no twin."""
    rubrics = _rubrics(
        ("A00.9", "inclusion", "Cholera, nicht näher bezeichnet", False),
        ("A00.9", "inclusion", "Brechdurchfall", False),
        ("A00.9", "inclusion", "Brechdurchfall", False),
        ("I21.9", "inclusion", "Brechdurchfall", False),
    )
    corpus = _build(
        "1|I1|A00.9|||||Cholera,  nicht näher bezeichnet",
        "1|I2|A00.9|||||Cholera, nicht näher bezeichnet",
        "0|I3|A00.0|||||Cholera durch Vibrio cholerae O:1",
        "1|I4|I21.9||B96.2!|||Akuter Myokardinfarkt, nicht näher bezeichnet",
        "1|I5|||B96.2!|||Escherichia coli [E. coli] als Ursache",
        rubrics=rubrics,
    )
    rest = [(p["origin"], p["icd_code"]) for p in _phrases(corpus) if p["origin"] != "alpha_id"]

    assert corpus.report.phrases["alpha_id"] == 6
    assert rest == [
        ("title", "A00.0"),
        ("title", "G63.2"),
        ("title", "I21.40"),
        ("title", "I21.41"),
        ("title", "I21.48"),
        ("title", "I21.9"),
        ("inclusion", "A00.9"),
        ("inclusion", "I21.9"),
    ]
    assert corpus.report.duplicates == {"title": 2, "inclusion": 2}


@pytest.mark.parametrize(
    ("children", "wanted"),
    [
        ([("X0", "Ohne Angabe einer Krise"), ("X1", "Mit Angabe einer Krise")], ["X0", "X1"]),
        ([("X1", "Rezidiv"), ("X0", "Nicht als Rezidivhernie bezeichnet")], ["X0", "X1"]),
        ([("X0", "Magen"), ("X8", "Sonstige Teile"), ("X9", "Multipel")], ["X9", "X8", "X0"]),
        ([("X0", "Teil nicht näher bezeichnet"), ("X1", "Mitte"), ("X9", "Multipel")], ["X0", "X1", "X9"]),
        ([("X3", "Nicht näher bezeichneter Ort"), ("X9", "Nicht näher bezeichnet")], ["X9", "X3"]),
        (
            [("X8", "Mit nicht näher bezeichneten Komplikationen"), ("X9", "Ohne Komplikationen")],
            ["X9", "X8"],
        ),
        (
            [
                ("X1", "Nicht näher bezeichnete Psychose: leicht"),
                ("X2", "Nicht näher bezeichnete Psychose: o.n.A."),
            ],
            ["X2", "X1"],
        ),
        ([], []),
    ],
)
def test_the_sibling_that_says_least_comes_first(children: list[tuple[str, str]], wanted: list[str]) -> None:
    """By its title, else by .9; words that all siblings share say nothing."""
    assert unspecified_first(children) == wanted


def test_descendants_follow_the_unspecified_branch_at_every_level() -> None:
    """Depth first, leaves only; a code without children has none."""
    children = {"X": ["X.1", "X.9"], "X.9": ["X.90", "X.91"]}
    titles = {"X.1": "Bein", "X.9": "nicht näher bezeichnet", "X.90": "ohne Angabe", "X.91": "akut"}

    assert leaves_unspecified_first("X", children, titles.__getitem__) == ["X.90", "X.91", "X.1"]
    assert leaves_unspecified_first("X.1", children, titles.__getitem__) == []


@pytest.fixture(scope="module")
def full_codes() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Code table and rubrics of ClaML 2025."""
    edition = read_claml(SHARED / "full" / "icd10gm2025syst_claml_20240913.xml")
    return edition.codes, edition.rubrics


@pytest.mark.full
@needs_shared
@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("I21.4", "I21.48"), ("I10.0", "I10.00"), ("K40.9", "K40.90"), ("C91.0", "C91.00"),
        ("G35.1", "G35.10"), ("J44.9", "J44.99"), ("J45.9", "J45.99"), ("E11", "E11.90"),
        ("E11.7", "E11.72"), ("E66.0", "E66.09"),
        ("F32", "F32.9"), ("N18", "N18.9"), ("I70.2", "I70.29"), ("S02.4", "S02.40"),
    ],
)  # fmt: skip
def test_the_unspecified_child_in_the_classification(
    full_codes: tuple[pl.DataFrame, pl.DataFrame], code: str, first: str
) -> None:
    """The children that coding.md names, found by the rule."""
    below = full_codes[0].filter(pl.col("code").str.starts_with(code) & pl.col("terminal"))
    parents = full_codes[0].filter(pl.col("code").str.starts_with(code)).select("code", "parent", "title")
    children: dict[str, list[str]] = {}
    for child, parent, _ in parents.iter_rows():
        children.setdefault(parent, []).append(child)
    title = dict(parents.select("code", "title").iter_rows())
    leaves = leaves_unspecified_first(code, children, title.__getitem__)

    assert leaves[0] == first
    assert sorted(leaves) == sorted(below["code"])


@pytest.mark.full
@needs_shared
def test_alpha_id_2023_under_claml_2025(full_codes: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    """380 entries of 14 codes do not fit: 13 codes were split, one is gone; every row has a usable code."""
    source = SHARED / "full" / "icd10gm2023_alphaidse_edvtxt_20220930.txt"
    codes, rubrics = full_codes
    corpus = build_corpus(read_alpha_id(source.read_bytes(), source.name).rows, codes, rubrics)
    report = corpus.report

    assert len(report.gaps) + len(report.unknown_codes) == 14
    assert sum(c.entries for c in (*report.gaps, *report.unknown_codes)) == 380
    assert report.unassigned_codes == report.dropped_complements == ()
    nstemi = corpus.phrases.filter(pl.col("edition_gap") & pl.col("text").str.starts_with("NSTEMI"))
    assert nstemi["icd_code"].to_list() == ["I21.48", "I21.40", "I21.41"]
    used = corpus.phrases.join(codes, left_on="icd_code", right_on="code", how="left")
    assert used["terminal"].all()
    assert set(used["content"]) == {"J"}
    assert set(corpus.phrases["icd_code"]) == set(codes.filter(terminal=True, content="J")["code"])
