"""Degrees and sites of a line applied to the codes found, over the full-size build of mode C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alpha_id_runtime.degrees import complements_of
from alpha_id_runtime.understanding import understand

if TYPE_CHECKING:
    from alpha_id_runtime.pipeline import Suggester

pytestmark = pytest.mark.full


def leading(full: Suggester, line: str, count: int = 1) -> list[str]:
    """Return the first codes for a line."""
    return [each.icd_code for each in full.suggest(line).suggestions[:count]]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Hämorrhoiden zweiten Grades", "K64.1"),
        ("drittgradige Hämorrhoiden", "K64.2"),
        ("erstgradiger AV-Block", "I44.0"),
        ("chronische Nierenkrankheit Stadium drei", "N18.3"),
        ("KDIGO 3b chronische Nierenkrankheit", "N18.3"),
        ("Linksherzinsuffizienz NYHA IIIb", "I50.13"),
        ("pAVK 2b", "I70.22"),
        ("primäres Parkinson-Syndrom, Hoehn und Yahr 3", "G20.10"),
        ("Verbrennung Grad 2a des Fußes", "T25.20"),
        ("mittelgradige depressive Episode", "F32.1"),
        ("Lipödem Stadium III", "E88.22"),
        ("follikuläres Lymphom Grad 3a", "C82.3"),
        ("Rezidiv-Leistenhernie", "K40.91"),
        ("essentielle Hypertonie mit hypertensiver Krise", "I10.91"),
        ("Adipositas bei BMI von 42", "E66.96"),
        ("akute lymphatische Leukämie in kompletter Remission", "C91.01"),
    ],
)
def test_a_degree_said_leads(full, line, code):
    """However it is spelled, the code of the degree is first."""
    assert leading(full, line) == [code]


def test_a_burn_keeps_its_region(full):
    """The degree is that of the hand, not of the head, which stands first in the table."""
    assert leading(full, "Verbrennung 3. Grades der Hand")[0] == "T23.3"


def test_a_range_offers_both_behind_the_code_without_degree(full):
    """A range decides none of its two codes."""
    codes = leading(full, "Linksherzinsuffizienz NYHA II-III", 4)
    assert codes[0] == "I50.19"
    assert {"I50.12", "I50.13"} <= set(codes)


def test_a_degree_not_said_is_not_invented(full):
    """Without a degree the sibling that says unspecified leads."""
    assert leading(full, "COPD") == ["J44.99"]
    assert leading(full, "Hämorrhoiden") == ["K64.9"]


@pytest.mark.parametrize(
    ("disease", "line", "codes"),
    [
        ("K74.6", "Leberzirrhose Child B", ["K74.71"]),
        ("K72.9", "hepatische Enzephalopathie Grad II", ["K72.72"]),
        ("S82.18", "offene Unterschenkelfraktur Grad II", ["S81.88"]),
        ("S52.50", "II° offene Radiusfraktur", ["S51.88"]),
        ("I10.90", "Leberzirrhose Child B", []),
    ],
)
def test_a_degree_with_a_code_of_its_own_goes_with_its_disease(full, disease, line, codes):
    """A complement is offered beside the codes it belongs to, and beside no other."""
    degrees = understand(line).degrees
    assert [each.icd_code for each in complements_of(full.build, degrees, disease)] == codes


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Kniegelenkserguss", "M25.46"),
        ("septische Arthritis Knie", "M00.96"),
        ("Osteomyelitis des Oberarms", "M86.92"),
        ("Arthrose der Schulter", "M19.91"),
        ("Dekubitus Grad 2 sacral", "L89.14"),
        ("Druckgeschwür Stadium 3 an der Ferse", "L89.27"),
    ],
)
def test_a_site_said_decides_the_last_digit(full, line, code):
    """Where siblings differ by site, the site in the words wins over the one not specified."""
    assert leading(full, line) == [code]


def test_a_site_not_said_is_not_invented(full):
    """Without a site no specific one leads."""
    assert leading(full, "Gelenkerguss") == ["M25.49"]


def test_an_injury_of_a_region_said_comes_before_that_of_none(full):
    """Where the line names the limb, "an einer nicht näher bezeichneten Körperregion" is not first."""
    for line in ("Verbrennung 2. Grades am Fuß", "Schürfwunde Ellenbogen", "Erfrierung der Zehen"):
        first = full.build.codes.title(leading(full, line)[0])
        assert "Körperregion" not in first, line


def test_what_a_degree_leaves_open_stays_open(full):
    """The stage is said, the fluctuation is not: the code without it leads, the one with it follows."""
    assert leading(full, "Parkinson-Syndrom, Hoehn und Yahr 4", 2) == ["G20.10", "G20.11"]
