"""The sample that ships: no fault, every feature of the formats, in agreement with the edition."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from lxml import etree

from alpha_id_assets.sources.alpha_id import AlphaIdEdition, read_alpha_id
from alpha_id_assets.sources.claml import ClamlEdition, read_claml
from alpha_id_assets.sources.corpus import Corpus, build_corpus
from alpha_id_assets.sources.releases import choose_sources
from alpha_id_runtime.text import normalise, words
from tests.reference import SHARED, needs_shared

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"
ALPHA_ID = SAMPLE / "icd10gm2026_alphaidse_edvtxt_sample.txt"
CLAML = SAMPLE / "icd10gm2026syst_claml_sample.xml"
DEMO = SAMPLE / "demo.txt"

GAP = "I21.4"
UNKNOWN = "Q87.4"
METAS = 16
DEMO_CODES = ("I10.90", "E11.40", "I70.22", "I48.0", "J44.92", "N18.3", "M17.9", "I50.12", "N39.0", "S72.00")


@cache
def alpha_id() -> AlphaIdEdition:
    """Read the sample's phrases once."""
    return read_alpha_id(ALPHA_ID.read_bytes(), ALPHA_ID.name)


@cache
def claml() -> ClamlEdition:
    """Read the sample's classification once."""
    return read_claml(CLAML)


@cache
def corpus() -> Corpus:
    """Match phrases and classification once."""
    return build_corpus(alpha_id().rows, claml().codes, claml().rubrics)


@cache
def tree() -> etree._Element:
    """Parse the ClaML as plain XML, to look at what the readers take apart."""
    return etree.fromstring(CLAML.read_bytes())


def codes(**where: object) -> set[str]:
    """Return the codes whose columns hold the given values."""
    table = claml().codes.filter(pl.col("kind") == "category")
    return set(table.filter(*(pl.col(name) == value for name, value in where.items()))["code"])


def lines() -> list[list[str]]:
    """Return the raw fields of each row."""
    return [line.split("|") for line in ALPHA_ID.read_text(encoding="utf-8").splitlines()]


def count(xpath: str) -> int:
    """Return how many nodes of the ClaML an XPath expression finds."""
    found = tree().xpath(xpath)
    assert isinstance(found, list)
    return len(found)


def test_sample_reads_without_a_fault() -> None:
    """Both files read with nothing left out; the one warning is the SubClass that names a missing class."""
    assert alpha_id().left_out == []
    assert len(claml().warnings) == 1
    assert "A04.78" in claml().warnings[0]


def test_sample_is_found_as_edition_2026() -> None:
    """The sample's folder offers exactly its two files, both of 2026; the demonstration list is no source."""
    chosen = choose_sources(SAMPLE, edition=None, today=date(2026, 6, 1))
    assert (chosen.alpha_id.path, chosen.claml.path) == (ALPHA_ID, CLAML)
    assert chosen.alpha_id.year == chosen.claml.year == 2026


def test_sample_is_large_enough_and_small_enough() -> None:
    """There are 900 phrases or more, in 20 chapters or more, in files under one megabyte."""
    rows = alpha_id().rows
    assert rows.height >= 900
    chapters = rows.join(claml().codes, left_on="primary", right_on="code")["chapter"].n_unique()
    assert chapters >= 20
    assert all(path.stat().st_size < 1_000_000 for path in SAMPLE.iterdir())


def test_rows_stand_as_in_the_official_file() -> None:
    """Eight fields, rows without a primary code first, the rest by code, own Alpha-IDs used once."""
    rows = lines()
    assert {len(row) for row in rows} == {8}
    first = [row[2].rstrip("+") for row in rows]
    without = first.count("")
    assert without >= 30
    assert not any(first[:without])
    assert first[without:] == sorted(first[without:])
    identifiers = [row[1] for row in rows]
    assert len(set(identifiers)) == len(identifiers)
    assert all(re.fullmatch(r"I99\d{5}", identifier) for identifier in identifiers)


@pytest.mark.parametrize(
    ("feature", "least"),
    [
        (~pl.col("valid"), 8),
        (pl.col("orpha").is_not_null(), 15),
        (pl.col("primary2").is_not_null(), 4),
        (pl.col("dagger") & pl.col("aster").is_not_null(), 30),
        (pl.col("primary").is_not_null() & pl.col("addon").is_not_null(), 12),
        (pl.col("primary").is_null() & pl.col("aster").is_null() & pl.col("addon").is_not_null(), 30),
        (pl.col("primary").is_null() & pl.col("aster").is_not_null(), 2),
        (pl.col("text").str.contains(r"^\S{2,5} \[[A-Z][^\]]{8,}\]"), 60),
        (pl.col("text").str.contains(r"\w{8,}.* \[[A-Z0-9]{2,5}\]"), 8),
        (pl.col("text").str.ends_with("a.n.k."), 8),
        (pl.col("text").str.contains(" - s.a. ", literal=True), 1),
        (pl.col("text").str.contains('"', literal=True), 1),
    ],
)
def test_alpha_id_features_are_in_use(feature: pl.Expr, least: int) -> None:
    """Every column and every habit of the official texts occurs."""
    assert alpha_id().rows.filter(feature).height >= least


def test_a_text_ends_in_a_blank() -> None:
    """One text keeps the trailing blank that official texts have; the reader strips it."""
    assert any(row[7] != row[7].rstrip() for row in lines())
    assert not alpha_id().rows["text"].str.ends_with(" ").any()


@pytest.mark.parametrize(
    "xpath",
    [
        "//ModifierClass/Meta[@name='excludeOnPrecedingModifier']",
        "//ModifierClass/Meta[@name='AgeLow']",
        "//ModifierClass[@usage='dagger']",
        "//Class[count(ModifiedBy)=2]",
        "//ModifiedBy[@all='true'][ValidModifierClass]",
        "//ModifiedBy[@all='false'][ValidModifierClass]",
        "//Class[@usage='aster'][ModifiedBy]",
        "//Class[@usage='optional'][ModifiedBy]",
        "//Rubric[@kind='preferredLong']",
        "//Rubric[@kind='preferred']//Reference",
        "//Rubric[@kind='preferred']/Label[contains(., '\u00a0')]",
        "//Rubric[@kind='inclusion']//Fragment[@type='list']",
        "//Rubric[@kind='exclusion']//Fragment/Reference",
        "//Class/Rubric[@kind='definition']",
        "//Class/Rubric[@kind='note']",
        "//Class/Rubric[@kind='coding-hint']//Reference[@usage='optional']",
        "//Modifier/Rubric[@kind='text']/Label/Para",
        "//Class[@kind='block'][SuperClass[@code='M00-M25']]",
    ],
)
def test_claml_features_are_in_use(xpath: str) -> None:
    """Every part of the ClaML format that the readers know occurs."""
    assert count(xpath) >= 1


def test_claml_is_built_as_the_official_file() -> None:
    """No DOCTYPE; header, modifiers, their classes, then the classes; 16 metas on a category."""
    assert b"<!DOCTYPE" not in CLAML.read_bytes()
    tags = [str(child.tag) for child in tree()]
    order = [tag for place, tag in enumerate(tags) if place == 0 or tags[place - 1] != tag]
    header = ["Meta", "Identifier", "Title", "ClassKinds", "UsageKinds", "RubricKinds"]
    assert order == [*header, "Modifier", "ModifierClass", "Class"]
    assert count(f"//Class[@kind='category'][count(Meta)!={METAS}]") == 0
    assert count("//Class[@kind!='category'][Meta]") == 0


def test_diabetes_takes_just_the_existing_pairs() -> None:
    """The two modifiers of E11 give the twenty pairs that exist and none besides."""
    pairs = {code[3:] for code in codes(terminal=True) if code.startswith("E11.")}
    with_both = {f".{fourth}{fifth}" for fourth in "2345689" for fifth in "01"}
    assert pairs == {".01", ".11", ".72", ".73", ".74", ".75"} | with_both


def test_metas_cover_the_cases_that_filters_must_tell_apart() -> None:
    """Sex, age in days and years, must-reject, exotic, notifiable, inpatient-only, unassigned codes occur."""
    assert {"C61", "N40"} <= codes(sex_code="M")
    assert {"N80.9", "O14.9"} <= codes(sex_code="W")
    assert "P22.0" in codes(age_low="t000")
    assert {"E66.94", "E66.95"} <= codes(age_high="j017", age_reject="M")
    assert "A97.9" in codes(exotic="J", infectious="J")
    assert {"U69.80", "U69.04"} <= codes(para295="V", para301="Z", terminal=True)
    assert {"U07.6", "U13.0", "U99.1"} <= codes(content="N", terminal=True)
    assert "E11.7" in codes(para295="P", para301="V", terminal=False)


def test_every_code_of_a_phrase_is_terminal_but_the_deliberate_ones() -> None:
    """Only the subdivided code and the missing code fall out, each as the corpus says it must."""
    named: set[str] = set()
    for column in ("primary", "aster", "addon", "primary2"):
        named |= set(alpha_id().rows[column].drop_nulls())
    assert named - codes(terminal=True) == {GAP, UNKNOWN}
    report = corpus().report
    assert [(gap.code, gap.children[0]) for gap in report.gaps] == [(GAP, "I21.48")]
    assert [unknown.code for unknown in report.unknown_codes] == [UNKNOWN]


def test_some_codes_are_found_by_title_or_inclusion_alone() -> None:
    """Many terminal codes have no Alpha-ID phrase; titles and inclusion terms stand for them."""
    phrases = corpus().phrases
    by_alpha_id = set(phrases.filter(pl.col("origin") == "alpha_id")["icd_code"])
    others = phrases.filter(~pl.col("icd_code").is_in(list(by_alpha_id)))
    assert others.filter(pl.col("origin") == "title").height >= 100
    assert others.filter(pl.col("origin") == "inclusion").height >= 5


def test_right_codes_of_the_demonstration_list_are_in_the_sample() -> None:
    """Each line of the demonstration list has its code among those that a phrase of the sample carries."""
    demo = DEMO.read_text(encoding="utf-8").splitlines()
    assert len(demo) == len(DEMO_CODES)
    assert set(DEMO_CODES) <= codes(terminal=True)
    assert set(DEMO_CODES) <= set(alpha_id().rows["primary"].drop_nulls())


@pytest.mark.full
@needs_shared
def test_terminal_codes_are_terminal_in_2026() -> None:
    """Against the official list: all terminal codes of the sample stand there, and no other does."""
    official = set((SHARED / "oracle" / "icd10gm2026_terminal_codes.txt").read_text(encoding="utf-8").split())
    assert codes(terminal=True) <= official
    assert not codes(terminal=False) & official


@pytest.mark.full
@needs_shared
def test_metas_are_those_of_the_classification() -> None:
    """Against the 2025 metadata: all 16 metas of each code agree, but for the age limit that 2026 moved."""
    columns = claml().codes.columns
    metas = columns[columns.index("para295") :]
    official: dict[str, list[str]] = {}
    for line in (SHARED / "oracle" / "icd10gm2025syst_kodes.txt").read_text(encoding="utf-8").splitlines():
        fields = line.split(";")
        official[fields[6]] = fields[12:28]
    table = claml().codes.filter(pl.col("kind") == "category")
    differ = {
        row["code"]
        for row in table.iter_rows(named=True)
        if official[row["code"]] != [row[meta] for meta in metas]
    }
    assert differ == {"E66.04", "E66.05", "E66.94", "E66.95"}


@pytest.mark.full
@needs_shared
def test_longer_titles_are_our_own_words() -> None:
    """No title of six words or more is an official one; short names of diseases coincide."""

    def long(titles: Iterable[str]) -> set[str]:
        return {key for title in titles if len(words(key := normalise(title))) >= 6}

    oracle = (SHARED / "oracle" / "icd10gm2025syst_kodes.txt").read_text(encoding="utf-8").splitlines()
    official = long(title for line in oracle for title in line.split(";")[8:12])
    assert (
        not long(claml().codes.filter(~pl.col("title").str.starts_with("Nicht belegte"))["title"]) & official
    )
