"""The ClaML reader on small hand-written files: expansion, labels, editions, and everything broken."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import polars as pl
import pytest

from alpha_id_assets.sources.claml import (
    CODE_SCHEMA,
    RUBRIC_SCHEMA,
    ClamlEdition,
    read_claml,
    sniff_claml,
)
from alpha_id_assets.sources.claml_model import META_COLUMNS
from alpha_id_runtime.errors import SourceError
from tests.reference import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
HEADER = """
  <Meta name="lang" value="de-DE"/>
  <Title date="2024-09-13" name="ICD-10" version="2025">Systematik</Title>
  <UsageKinds>
    <UsageKind mark="*" name="aster"/><UsageKind mark="†" name="dagger"/><UsageKind mark="!" name="optional"/>
  </UsageKinds>"""
METAS = {
    "Para295": "P", "Para301": "P", "MortL1Code": "1-052", "MortL2Code": "2-046", "MortL3Code": "3-025",
    "MortL4Code": "4-044", "MorbLCode": "104", "SexCode": "9", "SexReject": "9", "AgeLow": "9999",
    "AgeHigh": "9999", "AgeReject": "9", "Exotic": "N", "Content": "J", "Infectious": "N", "EBMLabor": "N",
}  # fmt: skip


def metas(**changed: str | None) -> str:
    """Return the 16 metas; a changed one takes the given value, None leaves it out, a new name adds it."""
    values = {**METAS, **changed}
    return "".join(
        f'<Meta name="{name}" value="{value}"/>' for name, value in values.items() if value is not None
    )


def rubric(text: str, kind: str = "preferred") -> str:
    """Return one rubric with ``text`` as the inner XML of its label."""
    return f'<Rubric kind="{kind}"><Label xml:lang="de-DE" xml:space="default">{text}</Label></Rubric>'


def modified_by(modifier: str, *listed: str, every: bool = True) -> str:
    """Return a ModifiedBy, with the ValidModifierClass children that are listed."""
    children = "".join(f'<ValidModifierClass code="{code}"/>' for code in listed)
    return f'<ModifiedBy all="{str(every).lower()}" code="{modifier}">{children}</ModifiedBy>'


def category(code: str, parent: str, inner: str = "", *, usage: str = "", **changed: str | None) -> str:
    """Return a category with its metas and, unless ``inner`` brings a rubric, the title ``T <code>``."""
    title = "" if "<Rubric" in inner else rubric(f"T {code}")
    attribute = f' usage="{usage}"' if usage else ""
    return (
        f'\n<Class code="{code}" kind="category"{attribute}>{metas(**changed)}<SuperClass code="{parent}"/>'
        f"{inner}{title}</Class>"
    )


def modifier(code: str, *classes: str) -> str:
    """Return a Modifier followed by its ModifierClass elements, each "code|attributes|inner|title"."""
    parts = [each.split("|") for each in classes]
    listed = "".join(f'<SubClass code="{part[0]}"/>' for part in parts)
    elements = "".join(
        f'\n<ModifierClass code="{name}" modifier="{code}"{attributes}>{inner}<SuperClass code="{code}"/>'
        f"{rubric(title)}</ModifierClass>"
        for name, attributes, inner, title in parts
    )
    return f'\n<Modifier code="{code}">{listed}</Modifier>{elements}'


def excluded(*pairs: str) -> str:
    """Return one excludeOnPrecedingModifier for each pair."""
    return "".join(f'<Meta name="excludeOnPrecedingModifier" value="{pair}"/>' for pair in pairs)


CHAPTER = f'\n<Class code="IV" kind="chapter">{rubric("Kapitel")}</Class>'
BLOCK = f'\n<Class code="E10-E14" kind="block"><SuperClass code="IV"/>{rubric("Block")}</Class>'


def document(*elements: str, header: str = HEADER, prolog: str = XML, place: str = CHAPTER + BLOCK) -> bytes:
    """Return a ClaML file: header, modifiers, chapter IV with block E10-E14, then the categories."""
    modifiers = "".join(each for each in elements if each.lstrip().startswith("<Modifier "))
    classes = "".join(each for each in elements if not each.lstrip().startswith("<Modifier "))
    return f'{prolog}<ClaML version="2.0.0">{header}{modifiers}{place}{classes}\n</ClaML>'.encode()


def read(*elements: str, **parts: str) -> ClamlEdition:
    """Read a small file made of ``elements``."""
    return read_claml(io.BytesIO(document(*elements, **parts)), "klein.xml")


def fails(data: bytes) -> SourceError:
    """Return the error that reading ``data`` ends in."""
    with pytest.raises(SourceError) as caught:
        read_claml(io.BytesIO(data), "klein.xml")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 4
    return caught.value


def codes(edition: ClamlEdition) -> list[str]:
    """Return the codes of all categories in their order."""
    return edition.codes.filter(pl.col("kind") == "category")["code"].to_list()


def row(edition: ClamlEdition, code: str) -> dict[str, object]:
    """Return one row of the code table."""
    return edition.codes.row(by_predicate=pl.col("code") == code, named=True)


def rubrics(edition: ClamlEdition, code: str, kind: str) -> list[tuple[str, list[dict[str, object]]]]:
    """Return text and references of the rubrics of one kind."""
    chosen = edition.rubrics.filter((pl.col("code") == code) & (pl.col("kind") == kind))
    return list(chosen.select("text", "references").iter_rows())


COMPLICATION = modifier(
    "S4", ".0|||Mit Koma", '.2| usage="dagger"||Mit Nierenkomplikationen', ".7|||Mit multiplen Komplikationen"
)
CONTROL = modifier(
    "S5",
    f"0||{excluded('S4 .0', 'S4 .7')}|Nicht entgleist",
    f"1||{excluded('S4 .7')}|Entgleist",
    f"2||{excluded('S4 .0', 'S4 .2')}|Mit sonstigen",
)
DIABETES = category("E11", "E10-E14", modified_by("S4") + modified_by("S5"), Para295="V", Para301="V")


class TestExpansion:
    """The seven rules of modifier expansion."""

    def test_two_chained_modifiers_combine_but_for_what_is_excluded(self):
        """Only official pairs come out: never E11.00, E11.22 or E11.70, in depth-first order."""
        edition = read(COMPLICATION, CONTROL, DIABETES)
        assert codes(edition) == ["E11", "E11.0", "E11.01", "E11.2", "E11.20", "E11.21", "E11.7", "E11.72"]
        assert (edition.class_count, edition.modifier_count) == (3, 2)

    def test_exclusion_needs_modifier_and_code_exactly(self):
        """The same code of another modifier, or a longer code that ends alike, excludes nothing."""
        other = modifier("S5", f"0||{excluded('S9 .0', 'S4 0', 'XS4 .0')}|Null")
        assert "E11.00" in codes(read(COMPLICATION, other, DIABETES))

    def test_combined_codes_know_place_title_and_kind(self):
        """Parent is the code before, the title goes on behind a colon, terminal is what has nothing below."""
        edition = read(COMPLICATION, CONTROL, DIABETES)
        deep = row(edition, "E11.72")
        assert deep["title"] == "T E11: Mit multiplen Komplikationen: Mit sonstigen"
        assert (deep["parent"], deep["group"], deep["chapter"]) == ("E11.7", "E10-E14", "IV")
        assert (deep["terminal"], deep["explicit"]) == (True, False)
        assert (row(edition, "E11.7")["terminal"], row(edition, "E11.7")["explicit"]) == (False, False)
        assert (row(edition, "E11")["terminal"], row(edition, "E11")["explicit"]) == (False, True)

    def test_an_uncoded_field_becomes_primary_where_the_code_is_used(self):
        """V to P: both fields on terminal codes, Para295 alone on four-character ones that are not."""
        edition = read(COMPLICATION, CONTROL, DIABETES)
        fields = {
            code: (row(edition, code)["para295"], row(edition, code)["para301"]) for code in codes(edition)
        }
        assert fields["E11"] == ("V", "V")
        assert fields["E11.7"] == ("P", "V")
        assert fields["E11.72"] == ("P", "P")

    def test_usage_of_a_modifier_class_is_its_own_and_goes_down(self):
        """Dagger on .2 holds for E11.2, E11.20, E11.21 and no other code."""
        usage = dict(
            read(COMPLICATION, CONTROL, DIABETES).codes.select("code", "usage").drop_nulls().iter_rows()
        )
        assert usage == {"E11.2": "dagger", "E11.20": "dagger", "E11.21": "dagger"}

    @pytest.mark.parametrize("every", [True, False])
    def test_listed_children_are_the_only_ones_whatever_all_says(self, every):
        """ValidModifierClass limits the codes with all="true" as with all="false"."""
        inner = modified_by("S4", ".0", ".7", every=every)
        assert codes(read(COMPLICATION, category("E12", "E10-E14", inner))) == ["E12", "E12.0", "E12.7"]

    @pytest.mark.parametrize("every", [True, False])
    def test_without_listed_children_all_are_meant(self, every):
        """No ValidModifierClass: all modifier classes."""
        inner = modified_by("S4", every=every)
        assert codes(read(COMPLICATION, category("E12", "E10-E14", inner))) == [
            "E12",
            "E12.0",
            "E12.2",
            "E12.7",
        ]

    def test_a_meta_of_the_modifier_class_overrides(self):
        """Age limits of E66.x: the modifier class's, the others stay the class's."""
        limits = metas(**{**dict.fromkeys(METAS), "AgeLow": "j018", "AgeHigh": "j124", "AgeReject": "M"})
        adult = modifier("S6", f"0||{limits}|Erwachsen", "4|||Kind")
        edition = read(
            adult, category("E13.0", "E13", modified_by("S6"), SexCode="W"), category("E13", "E10-E14")
        )
        names = ("age_low", "age_high", "age_reject", "sex_code")
        assert [row(edition, "E13.00")[name] for name in names] == ["j018", "j124", "M", "W"]
        assert row(edition, "E13.04")["age_low"] == "9999"

    @pytest.mark.parametrize(("usage", "role"), [("aster", "O"), ("optional", "Z")])
    def test_secondary_usage_changes_the_role(self, usage, role):
        """P becomes O under aster and Z under optional, also where it was V before; usage is inherited."""
        inner = modified_by("S6")
        edition = read(
            modifier("S6", "0|||Null"),
            category("E13", "E10-E14", usage=usage),
            category("E13.0", "E13", inner, usage=usage, Para295=role, Para301="V"),
        )
        combined = row(edition, "E13.00")
        assert (combined["para295"], combined["para301"], combined["usage"]) == (role, role, usage)
        assert (row(edition, "E13.0")["para295"], row(edition, "E13.0")["para301"]) == (role, "V")

    def test_an_explicit_class_wins_over_a_combined_one(self):
        """E12.2 as a class of its own keeps its title and metas, and stands among the combined codes."""
        own = category("E12.2", "E12", rubric("Eigener Titel"), Exotic="J")
        edition = read(COMPLICATION, category("E12", "E10-E14", modified_by("S4")), own)
        assert codes(edition) == ["E12", "E12.0", "E12.2", "E12.7"]
        kept = row(edition, "E12.2")
        assert (kept["title"], kept["exotic"], kept["explicit"], kept["usage"]) == (
            "Eigener Titel",
            "J",
            True,
            None,
        )
        assert edition.warnings == []

    def test_an_explicit_class_in_a_chain_speaks_for_what_is_below_it(self):
        """E12.0 as a class takes its own modifiers, or none: then a warning says so."""
        base = category("E12", "E10-E14", modified_by("S4", ".0", ".2") + modified_by("S5"))
        bare = read(COMPLICATION, CONTROL, base, category("E12.0", "E12"))
        assert codes(bare) == ["E12", "E12.0", "E12.2", "E12.20", "E12.21"]
        assert row(bare, "E12.0")["terminal"] is True
        assert len(bare.warnings) == 1
        assert "Class E12.0: stands for itself" in bare.warnings[0]
        modified = read(COMPLICATION, CONTROL, base, category("E12.0", "E12", modified_by("S5", "0")))
        assert codes(modified) == ["E12", "E12.0", "E12.00", "E12.2", "E12.20", "E12.21"]
        assert modified.warnings == []

    def test_rubrics_of_a_modifier_class_are_repeated_for_each_code(self):
        """The inclusion of a modifier class belongs to every code it makes, marked as such."""
        with_inclusion = COMPLICATION.replace(
            rubric("Mit Koma"), rubric("Mit Koma") + rubric("Koma o.n.A.", "inclusion")
        )
        edition = read(with_inclusion, category("E12", "E10-E14", modified_by("S4", ".0")), DIABETES, CONTROL)
        found = edition.rubrics.filter(pl.col("kind") == "inclusion")
        assert found.select("code", "text", "from_modifier").rows() == [
            ("E12.0", "Koma o.n.A.", True),
            ("E11.0", "Koma o.n.A.", True),
        ]


class TestLabels:
    """What becomes the text of a rubric."""

    def test_the_long_title_wins_and_references_leave_it(self):
        """A preferredLong goes before a preferred; a title has no Reference in it."""
        star = rubric('Arthritis<Reference class="in brackets" usage="dagger">L40.5</Reference>')
        edition = read(
            category("E10", "E10-E14", rubric("kurz") + rubric("Toxische Wirkung: lang", "preferredLong")),
            category("E11", "E10-E14", star),
        )
        assert row(edition, "E10")["title"] == "Toxische Wirkung: lang"
        assert row(edition, "E11")["title"] == "Arthritis"
        assert rubrics(edition, "E11", "preferred") == [
            ("Arthritis", [{"code": None, "usage": "dagger", "text": "L40.5"}])
        ]

    def test_a_reference_that_is_half_of_a_wording_stays(self):
        """T10/T11 are vertebrae: without the second half the title would be a stump."""
        half = rubric('T9/T10 und T10/<Reference class="in brackets">T11</Reference>')
        assert row(read(category("E10", "E10-E14", half)), "E10")["title"] == "T9/T10 und T10/T11"

    def test_no_break_spaces_stay_and_plain_blanks_are_tidied(self):
        """Official titles hold no-break spaces; line ends and tabs of the layout are one blank."""
        edition = read(category("E10", "E10-E14", rubric("\n\t\tStadium\u00a03\n\t\tund  mehr ")))
        assert row(edition, "E10")["title"] == "Stadium\u00a03 und mehr"

    @pytest.mark.parametrize("kind", ["list", "item"])
    def test_fragments_are_joined_with_their_stem(self, kind):
        """Each item of a list repeats the stem; references leave an inclusion and are kept beside it."""
        parts = (
            f'\n\t<Fragment type="{kind}" usage="dagger">Arthritis:'
            '<Reference class="in brackets" code="M01.3" usage="aster">M01.3-</Reference></Fragment>'
            f'\n\t<Fragment type="{kind}">durch Salmonellen</Fragment>\n'
        )
        inner = rubric("T") + rubric(parts, "inclusion")
        assert rubrics(read(category("E10", "E10-E14", inner)), "E10", "inclusion") == [
            ("Arthritis: durch Salmonellen", [{"code": "M01.3", "usage": "aster", "text": "M01.3-"}])
        ]

    def test_sentences_keep_their_references_as_printed(self):
        """A coding hint prints its reference with the mark; paragraphs become one line."""
        hint = (
            "<Para>Benutze eine Schlüsselnummer"
            '<Reference class="in brackets" code="U69.80" usage="optional">U69.80!-U69.82</Reference>, um'
            " es anzugeben.</Para><Para>Ende.</Para>"
        )
        inner = rubric("T") + rubric(hint, "coding-hint")
        assert rubrics(read(category("E10", "E10-E14", inner)), "E10", "coding-hint") == [
            (
                "Benutze eine Schlüsselnummer (U69.80!-U69.82!), um es anzugeben. Ende.",
                [{"code": "U69.80", "usage": "optional", "text": "U69.80!-U69.82"}],
            )
        ]

    def test_exclusions_lose_brackets_but_not_running_references(self):
        """In brackets: beside the text only; without a class: part of the sentence. Comments are nothing."""
        inner = (
            rubric("T")
            + rubric('Delir <Reference class="in brackets" code="F05">F05.-</Reference>, akut', "exclusion")
            + rubric('Wie unter <Reference code="F00">F00-F03</Reference> <!-- c -->beschrieben', "exclusion")
        )
        assert [text for text, _ in rubrics(read(category("E10", "E10-E14", inner)), "E10", "exclusion")] == [
            "Delir, akut",
            "Wie unter F00-F03 beschrieben",
        ]

    def test_a_reference_that_prints_a_code_of_the_edition_has_that_code(self):
        """The source leaves the attribute out where text and code are one; combined codes count."""
        inner = rubric("T") + rubric('Siehe<Reference class="in brackets">E12.7</Reference>', "exclusion")
        edition = read(
            COMPLICATION, category("E12", "E10-E14", modified_by("S4")), category("E13", "E10-E14", inner)
        )
        assert rubrics(edition, "E13", "exclusion") == [
            ("Siehe", [{"code": "E12.7", "usage": None, "text": "E12.7"}])
        ]

    def test_the_label_in_the_language_of_the_edition_is_read(self):
        """Of several labels the German one counts."""
        two = (
            '<Rubric kind="preferred"><Label xml:lang="en">english</Label>'
            '<Label xml:lang="de-DE">deutsch</Label></Rubric>'
        )
        assert row(read(category("E10", "E10-E14", two)), "E10")["title"] == "deutsch"


class TestEditions:
    """Headers, old editions, sources."""

    def test_tables_have_their_schemas(self):
        """Column names and types are those the build expects, chapters and blocks without metas."""
        edition = read(category("E10", "E10-E14"))
        assert edition.codes.schema == CODE_SCHEMA
        assert edition.rubrics.schema == RUBRIC_SCHEMA
        assert edition.codes["code"].to_list() == ["IV", "E10-E14", "E10"]
        block = row(edition, "E10-E14")
        assert (block["group"], block["chapter"], block["parent"], block["terminal"]) == (
            "E10-E14",
            "IV",
            "IV",
            False,
        )
        assert {block[column] for column in META_COLUMNS.values()} == {None}
        assert row(edition, "IV")["group"] is None

    def test_an_edition_of_2009_is_read(self):
        """DOCTYPE without its DTD, lang de, mark + and the old names of three metas."""
        header = HEADER.replace("de-DE", "de").replace("†", "+").replace("2025", "2009")
        old = category(
            "E10", "E10-E14", Exotic=None, MorbLCode=None, RareDisease="J", MortBCode="7",
            AgeLow="001", AgeHigh="9999", AgeLowDiff="t028", AgeHighDiff="j124",
        )  # fmt: skip
        edition = read(old, header=header, prolog=XML + '<!DOCTYPE ClaML SYSTEM "ClaML.dtd">\n')
        assert (edition.year, edition.lang) == (2009, "de")
        found = row(edition, "E10")
        assert [found[name] for name in ("exotic", "morb_l", "age_low", "age_high")] == [
            "J",
            "7",
            "t028",
            "9999",
        ]
        assert edition.warnings == []

    def test_metas_in_another_order_are_still_told_by_name(self):
        """Neither the order of metas nor that of their attributes matters."""
        turned = "".join(f'<Meta value="{value}" name="{name}"/>' for name, value in METAS.items())
        backwards = "".join(f'<Meta name="{name}" value="{METAS[name]}"/>' for name in reversed(METAS))
        expected = list(METAS.values())
        for inner in (turned, backwards):
            edition = read(category("E10", "E10-E14").replace(metas(), inner))
            assert [row(edition, "E10")[column] for column in META_COLUMNS.values()] == expected

    def test_an_unknown_meta_is_a_warning_once(self):
        """A meta of a coming edition costs nothing and is told once."""
        edition = read(category("E10", "E10-E14", Neu="1"), category("E11", "E10-E14", Neu="2"))
        assert len(edition.warnings) == 1
        assert "klein.xml:" in edition.warnings[0]
        assert "Class E10: Meta 'Neu' is unknown" in edition.warnings[0]

    def test_a_subclass_that_is_not_there_is_only_a_warning(self):
        """Official files have them; the class stays terminal if nothing else is below it."""
        edition = read(category("E10", "E10-E14", '<SubClass code="E10.9"/>'))
        assert row(edition, "E10")["terminal"] is True
        assert [warning.split(", ", 1)[1] for warning in edition.warnings] == [
            "Class E10: SubClass E10.9 is not there"
        ]

    @pytest.mark.parametrize(
        ("title", "year"),
        [
            ('date="2024-09-13" name="ICD-10" version="2025"', 2025),
            ('date="2008-10-01" name="ICD-10-GM" version=""', 2009),
            ('date="2009-01-05" name="ICD-10-GM" version="Version 2009"', 2009),
        ],
    )
    def test_the_year_comes_from_the_version_else_from_the_date(self, title, year):
        """Files appear in the autumn before the year they hold for."""
        header = HEADER.replace('date="2024-09-13" name="ICD-10" version="2025"', title)
        data = document(category("E10", "E10-E14"), header=header)
        assert read_claml(io.BytesIO(data)).year == year
        assert sniff_claml(io.BytesIO(data)) == year

    def test_a_path_a_stream_and_a_zip_member_read_alike(self, tmp_path: Path):
        """All three give the same tables; the name in messages is the file's unless another is given."""
        data = document(COMPLICATION, CONTROL, DIABETES)
        path = tmp_path / "icd.xml"
        path.write_bytes(data)
        with zipfile.ZipFile(tmp_path / "icd.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            packed.write(path, "Klassifikationsdateien/icd.xml")
        editions = [read_claml(path), read_claml(io.BytesIO(data), "icd.xml")]
        with zipfile.ZipFile(tmp_path / "icd.zip") as packed, packed.open(packed.namelist()[0]) as member:
            editions.append(read_claml(member))
        assert [edition.name for edition in editions] == ["icd.xml"] * 3
        for edition in editions[1:]:
            assert edition.codes.equals(editions[0].codes)
            assert edition.rubrics.equals(editions[0].rubrics)


class TestBroken:
    """Every broken file ends in one paragraph that names file, line and element."""

    def test_a_file_cut_in_half_says_where_and_after_what(self):
        """The last class read whole is named."""
        data = document(COMPLICATION, CONTROL, DIABETES, category("E12", "E10-E14"))
        message = str(fails(data[: data.rindex(b"T E12")]))
        assert message.startswith("klein.xml:")
        assert "after Class E11" in message
        assert "breaks off" in message

    def test_a_cut_between_two_classes_is_seen_too(self):
        """Not the last class, the end of ClaML makes a file whole."""
        data = document(DIABETES, COMPLICATION, CONTROL)
        assert "breaks off" in str(fails(data[: data.rindex(b"</ClaML>")]))

    @pytest.mark.parametrize(
        ("data", "what"),
        [
            (b"", "is empty"),
            (b" \n", "is empty"),
            (b"PK\x03\x04\x00\x00\xff", "is no XML"),
            (b"1|I10|J45.9||||||Asthma\n", "is no XML"),
            (XML.encode() + b"<html><body/></html>", "root element is html"),
            (XML.encode() + b'<ClaML version="2.0.0"></ClaML>', "no Title"),
            (document(header=HEADER.replace("de-DE", "en")), "is not an edition of ICD-10-GM"),
            (document(header=HEADER.replace("ICD-10", "OPS")), "is not an edition of ICD-10-GM"),
            (document(place=""), "holds no Class"),
            (
                document(category("E10", "E10-E14", rubric("Störung"))).replace("ö".encode(), b"\xf6"),
                "damaged",
            ),
        ],
    )
    def test_what_is_no_sound_edition_is_refused(self, data, what):
        """Empty, binary, text, another root, another classification, without classes, wrongly encoded."""
        assert what in str(fails(data))

    def test_an_entity_bomb_is_refused_before_it_grows(self):
        """Entities that expand each other are named as what they are, declared or used anywhere."""
        levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
        bomb = f'{XML}<!DOCTYPE ClaML [<!ENTITY e0 "aaaaaaaaaa">{levels}]>\n'
        assert "declares entities" in str(
            fails(document(category("E10", "E10-E14", rubric("&e11;")), prolog=bomb))
        )
        used_at_once = document(category("E10", "E10-E14"), prolog=bomb).replace(b'"2.0.0"', b'"&e11;"')
        assert "entities" in str(fails(used_at_once))

    @pytest.mark.parametrize("declaration", ['<!ENTITY x SYSTEM "{}">', '<!ENTITY % x SYSTEM "{}"> %x;'])
    def test_an_external_entity_is_never_opened(self, declaration, tmp_path: Path):
        """A declared file is refused and its content stays out of the message."""
        secret = tmp_path / "secret.dtd"
        secret.write_text("geheim")
        prolog = f"{XML}<!DOCTYPE ClaML [{declaration.format(secret.as_uri())}]>\n"
        used = rubric("&x;") if "%" not in declaration else rubric("T")
        message = str(fails(document(category("E10", "E10-E14", used), prolog=prolog)))
        assert "declares entities" in message
        assert "geheim" not in message

    def test_an_entity_of_a_dtd_that_is_not_read_is_an_error(self):
        """With a DOCTYPE alone the parser lets &nbsp; pass; its text would be missing."""
        prolog = XML + '<!DOCTYPE ClaML SYSTEM "ClaML.dtd">\n'
        error = fails(document(category("E10", "E10-E14", rubric("Stadium&nbsp;3")), prolog=prolog))
        assert "Class E10: rubric preferred holds the entity &nbsp;" in error.problems[0]

    @pytest.mark.parametrize("inner", ["<a>" * 5000 + "</a>" * 5000, "x" * 11_000_000], ids=["depth", "text"])
    def test_depth_and_text_are_bounded(self, inner):
        """A label nested thousands deep or of eleven megabytes is refused, not followed."""
        assert "damaged" in str(fails(document(category("E10", "E10-E14", rubric(inner)))))

    def test_all_faults_are_told_together_with_line_and_element(self):
        """Each fault names file, line and element; nothing is published of such a file."""
        error = fails(
            document(
                modifier("S4", ".0|||Koma").replace(
                    '<SubClass code=".0"/>', '<SubClass code=".0"/><SubClass code=".1"/>'
                ),
                modifier("S8"),
                category("E10", "E10-E14", modified_by("S4") + modified_by("S99")),
                category("E11", "E10-E14", modified_by("S4", ".5")),
                category("E11", "E10-E14"),
                category("E12", "E15-E16"),
                category("E13", "E10-E14", Para301=None, Exotic=None),
                category("E14", "E10-E14", AgeLow="28 Tage", Para295="X"),
                category("E1", "E10-E14"),
                category("E15", "E10-E14", '<Rubric kind="inclusion"><Label>ohne Titel</Label></Rubric>'),
                category("E16", "E10-E14", usage="star"),
                category("E17", "E10-E14", modified_by("S8")),
            )
        )
        assert [problem.partition(", ")[::2] for problem in error.problems] == [
            ("klein.xml:8", "Modifier S4: SubClass .1 has no ModifierClass"),
            ("klein.xml:13", "Class E10: ModifiedBy names Modifier S99, which is not there"),
            ("klein.xml:14", "Class E11: ValidModifierClass .5 is no ModifierClass of S4"),
            ("klein.xml:15", "Class E11: code stands twice, first in line 14"),
            ("klein.xml:16", "Class E12: SuperClass E15-E16 is not there"),
            ("klein.xml:17", "Class E13: lacks Meta Para301, Exotic"),
            ("klein.xml:18", "Class E14: Meta AgeLow cannot be '28 Tage'"),
            ("klein.xml:18", "Class E14: Meta Para295 cannot be 'X'"),
            ("klein.xml:19", "Class E1: 'E1' is not the code of a category"),
            ("klein.xml:20", "Class E15: has no title (Rubric preferred)"),
            ("klein.xml:21", "Class E16: usage 'star' is not dagger, aster or optional"),
            ("klein.xml:22", "Class E17: ModifiedBy names Modifier S8, which has no ModifierClass"),
        ]

    def test_a_modifier_class_without_modifier_is_an_error(self):
        """And so are a modifier class that stands twice and an exclusion that is not two words."""
        orphan = f'<Modifier code="S1"/><ModifierClass code=".0" modifier="S2">{rubric("x")}</ModifierClass>'
        twice = modifier("S3", ".0|||a", f".0||{excluded('S4.0')}|b")
        problems = fails(document(orphan, twice, category("E10", "E10-E14"))).problems
        assert len(problems) == 3
        assert "ModifierClass .0: its Modifier 'S2' is not there" in "".join(problems)
        assert "ModifierClass .0: stands twice in Modifier S3" in "".join(problems)
        assert "'S4.0' is not a modifier, one blank and a code" in "".join(problems)

    def test_a_meta_behind_other_elements_is_an_error(self):
        """ClaML puts metas first; the reader counts on it, and says so rather than lose what stands there."""
        late = category("E10", "E10-E14").replace(
            '<Meta name="EBMLabor" value="N"/><SuperClass code="E10-E14"/>',
            '<SuperClass code="E10-E14"/><Meta name="EBMLabor" value="N"/>',
        )
        assert "Class E10: a Meta stands behind other elements" in str(fails(document(late)))

    def test_a_circle_of_parents_is_an_error(self):
        """Two classes that name each other as parent lead to no chapter; neither is lost silently."""
        problems = fails(document(category("E10", "E11"), category("E11", "E10"))).problems
        assert [problem.split(", ", 1)[1] for problem in problems] == [
            "Class E10: its SuperClasses lead to no chapter",
            "Class E11: its SuperClasses lead to no chapter",
        ]

    def test_lines_are_right_beyond_the_parsers_limit(self):
        """Past line 65535 the line of the fault is still the line of the element."""
        far = "\n" * 70_000 + category("E11", "E10-E14", Exotic="Q").replace("<Meta", "\n\n<Meta", 1)
        data = document(category("E10", "E10-E14"), far)
        line = data[: data.index(b'<Class code="E11"')].count(b"\n") + 1
        assert fails(data).problems == [f"klein.xml:{line}, Class E11: Meta Exotic cannot be 'Q'"]

    def test_an_unreadable_path_is_a_source_error(self, tmp_path: Path):
        """A missing file and a folder are told in words, with the name."""
        for path in (tmp_path / "fehlt.xml", tmp_path):
            with pytest.raises(SourceError, match="cannot be read"):
                read_claml(path)

    @needs_shared
    @pytest.mark.full
    def test_the_excerpt_is_told_to_be_incomplete(self):
        """Real elements, but a file with parents, modifiers and metas left out is no edition."""
        with pytest.raises(SourceError) as caught:
            read_claml(SHARED / "excerpts" / "icd10gm2026syst_claml_excerpt.xml")
        told = "".join(caught.value.problems)
        assert "Class M06.1: lacks Meta MortL1Code" in told
        assert "Class E12: SuperClass E10-E14 is not there" in told
        assert "ModifiedBy names Modifier S13M00_5" in told
        assert "ModifierClass 5: its Modifier 'S04E66_5' is not there" in told


class TestSniffing:
    """Telling an edition by its head."""

    @pytest.mark.parametrize(
        ("data", "year"),
        [
            (document(), 2025),
            (document()[:500], 2025),
            (document(header=HEADER.replace("ICD-10", "OPS")), None),
            (document(header=HEADER.replace("ICD-10", "ICD-10-WHO")), None),
            (document(header=""), None),
            (b"", None),
            (b"PK\x03\x04", None),
            (b"1|I10|J45.9||||||Asthma\n", None),
            (b"<html><Title name='ICD-10' version='2025'/></html>", None),
            ("\ufeff".encode() + document(), 2025),
            (document().decode().replace("UTF-8", "UTF-16").encode("utf-16"), 2025),
        ],
    )
    def test_the_year_is_told_from_the_head_alone(self, data, year):
        """A ClaML of ICD-10-GM gives its year, everything else None."""
        assert sniff_claml(io.BytesIO(data)) == year

    def test_a_broken_or_unsafe_edition_still_counts_as_one(self):
        """So that reading it tells what is wrong, instead of a search that finds nothing."""
        bomb = f'{XML}<!DOCTYPE ClaML [<!ENTITY a "{"a" * 99}"><!ENTITY b "{"&a;" * 99}">]>\n'
        assert sniff_claml(io.BytesIO(document(rubric("&b;"), prolog=bomb))) == 2025
        garbled = document(header='<Meta name="t" value="ä"/>' + HEADER).replace("ä".encode(), b"\xe4")
        assert sniff_claml(io.BytesIO(garbled)) == 2025

    def test_only_the_head_is_read_and_nothing_raises(self):
        """64 KiB at most; a stream that fails is no edition."""
        stream = io.BytesIO(document() + b" " * 1_000_000)
        assert sniff_claml(stream) == 2025
        assert stream.tell() == 64 * 1024

        class Failing(io.BytesIO):
            def read(self, _size: int | None = -1, /) -> bytes:
                raise zipfile.BadZipFile("bad CRC")

        assert sniff_claml(Failing()) is None
        with pytest.raises(SourceError, match="cannot be read: bad CRC"):
            read_claml(Failing(), "klein.xml")
