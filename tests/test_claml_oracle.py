"""The ClaML reader against BfArM's own list of all codes of 2025, field by field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

from alpha_id_assets.sources.claml import ClamlEdition, read_claml
from alpha_id_assets.sources.claml_model import META_COLUMNS
from tests.reference import SHARED, needs_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.full, needs_shared]

CLAML = SHARED / "full" / "icd10gm2025syst_claml_20240913.xml"
ORACLE = SHARED / "oracle" / "icd10gm2025syst_kodes.txt"
FIELDS = (
    "level", "terminal", "explicit", "chapter", "block", "printed", "code", "code_without_dot", "title",
    "title_3", "title_4", "title_5", *META_COLUMNS.values(),
)  # fmt: skip
CHAPTERS = (
    "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII".split()  # noqa: SIM905 - reads as printed
)
MARKS = {"aster": "*", "optional": "!"}


def printed(code: str, usage: str | None, *, terminal: bool) -> str:
    """Return ``code`` as the official list prints it: ``A00.-``, ``A04.7-``, ``M01.-*``; no dagger there."""
    dash = "" if terminal else ("-" if "." in code else ".-")
    return code + dash + MARKS.get(usage or "", "")


def rows_of(edition: ClamlEdition) -> list[tuple[str, ...]]:
    """Return the categories of ``edition`` as rows of the official list, all 28 fields."""
    own = edition.rubrics.filter(pl.col("kind") == "preferred").select("code", "text")
    title_of = dict(own.iter_rows())
    rows = []
    for row in edition.codes.filter(pl.col("kind") == "category").iter_rows(named=True):
        code = row["code"]
        lengths = (3, 5, 6)
        titles = [title_of.get(code[:length], "") if len(code) >= length else "" for length in lengths]
        rows.append(
            (
                str(len(code.replace(".", ""))),
                "T" if row["terminal"] else "N",
                "X" if row["explicit"] else "S",
                f"{CHAPTERS.index(row['chapter']) + 1:02}",
                row["group"][:3],
                printed(code, row["usage"], terminal=row["terminal"]),
                code,
                code.replace(".", ""),
                row["title"],
                *titles,
                *(row[column] for column in META_COLUMNS.values()),
            )
        )
    return rows


def differences(ours: Sequence[tuple[str, ...]], oracle: Sequence[tuple[str, ...]]) -> list[str]:
    """Return every difference: codes missing, codes too many, order, and each field that is not equal."""
    key = FIELDS.index("code")
    mine = {row[key]: row for row in ours}
    official = {row[key]: row for row in oracle}
    found = [f"{code} is missing" for code in official if code not in mine]
    found += [f"{code} is not official" for code in mine if code not in official]
    if len(mine) < len(ours):
        found.append("a code stands twice")
    for code in mine.keys() & official.keys():
        found += [
            f"{code} {name}: {here!r}, official {there!r}"
            for name, here, there in zip(FIELDS, mine[code], official[code], strict=True)
            if here != there
        ]
    if not found and [row[key] for row in ours] != [row[key] for row in oracle]:
        found.append("the order differs")
    return found


@pytest.fixture(scope="module")
def edition() -> ClamlEdition:
    """The full-size edition, read once."""
    return read_claml(CLAML)


@pytest.fixture(scope="module")
def oracle() -> list[tuple[str, ...]]:
    """The official rows, 28 fields each."""
    lines = ORACLE.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split(";")) for line in lines if line]


def test_every_field_of_every_official_code_is_met(edition, oracle):
    """All 16,817 codes of 2025, none more, in their order, with all 28 fields as BfArM gives them."""
    assert len(oracle) == 16_817
    assert {len(row) for row in oracle} == {len(FIELDS)}
    assert differences(rows_of(edition), oracle) == []


def test_the_comparison_sees_what_it_must_see(edition, oracle):
    """A changed title or meta, a dropped code, an invented code and a swapped pair are each found."""
    ours = rows_of(edition)
    key, title, age = FIELDS.index("code"), FIELDS.index("title"), FIELDS.index("age_high")
    place = next(index for index, row in enumerate(ours) if row[key] == "E11.72")
    row = ours[place]

    def with_row(*rows: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [*ours[:place], *rows, *ours[place + 1 :]]

    def changed(index: int, value: str) -> tuple[str, ...]:
        return (*row[:index], value, *row[index + 1 :])

    assert differences(with_row(changed(title, "Diabetes")), oracle) == [
        f"E11.72 title: 'Diabetes', official {row[title]!r}"
    ]
    assert differences(with_row(changed(age, "j017")), oracle) == ["E11.72 age_high: 'j017', official '9999'"]
    assert differences(with_row(), oracle) == ["E11.72 is missing"]
    assert differences(with_row(row, changed(key, "E11.00")), oracle) == ["E11.00 is not official"]
    assert differences(with_row(row, row), oracle) == ["a code stands twice"]
    assert differences([*ours[1:], ours[0]], oracle) == ["the order differs"]


def test_the_edition_says_what_it_is_and_where_each_code_belongs(edition):
    """Header, counts and hierarchy of the full file; nothing in it looks odd."""
    assert (edition.name, edition.year, edition.date) == (CLAML.name, 2025, "2024-09-13")
    assert (edition.lang, edition.claml_version) == ("de-DE", "2.0.0")
    assert (edition.class_count, edition.modifier_count) == (12_518, 39)
    assert edition.codes.height - edition.class_count == 4_571
    assert edition.warnings == []
    row = edition.codes.row(by_predicate=pl.col("code") == "E11.72", named=True)
    assert (row["parent"], row["group"], row["chapter"]) == ("E11.7", "E10-E14", "IV")
    nested = edition.codes.row(by_predicate=pl.col("code") == "C50.9", named=True)
    assert (nested["group"], nested["parent"]) == ("C50-C50", "C50")
    dagger = edition.codes.filter(pl.col("code").is_in(["E11.2", "E11.20", "E11.5"]))
    assert dict(dagger.select("code", "usage").iter_rows()) == {
        "E11.2": "dagger",
        "E11.20": "dagger",
        "E11.5": None,
    }


def test_chapters_and_blocks_have_no_metas_and_categories_all(edition):
    """The 16 metas are null on chapters and blocks and nowhere else; these are never terminal."""
    metas = list(META_COLUMNS.values())
    category = pl.col("kind") == "category"
    assert edition.codes.filter(category).select(metas).null_count().sum_horizontal().item() == 0
    others = edition.codes.filter(~category)
    assert others.select(pl.all_horizontal(pl.col(metas).is_null())).to_series().all()
    assert not others["terminal"].any()


def test_rubrics_of_the_full_file_are_all_kept(edition):
    """As many rubrics of explicit classes as the file has; each reference with its code."""
    text = CLAML.read_text(encoding="utf-8")
    body = text[text.index("<Class ") :]
    in_file = len(re.findall(r"<Rubric kind", body))
    explicit = edition.rubrics.filter(~pl.col("from_modifier"))
    assert explicit.height == in_file
    references = edition.rubrics.explode("references").select(pl.col("references").struct.unnest())
    assert references.drop_nulls("text").height >= len(re.findall("<Reference ", body))
    exclusion = edition.rubrics.filter((pl.col("code") == "E11") & (pl.col("kind") == "exclusion"))
    assert exclusion["references"].to_list() == [[{"code": "E89.1", "usage": None, "text": "E89.1"}]]
