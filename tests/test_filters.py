"""What may be suggested: billable and where, chapters, groups, prefixes, sex, age, hints of the edition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.filters import CodeFilter
from alpha_id_runtime.model import Filter
from tests.code_table import code_table
from tests.reference import needs_shared

if TYPE_CHECKING:
    from alpha_id_runtime.codes import CodeTable
    from alpha_id_runtime.pipeline import Suggester

CODES = {
    "A00.0": {"infectious": "J", "exotic": "J"},
    "B96.2": {"usage": "optional", "para295": "Z", "para301": "Z"},
    "C61": {"sex_code": "M", "sex_reject": "K"},
    "C62.9": {"sex_code": "M", "sex_reject": "M"},
    "E11": {"terminal": False, "para295": "V", "para301": "V"},
    "E11.7": {"terminal": False, "para295": "P", "para301": "V"},
    "E11.72": {"usage": "dagger", "age_low": "j001"},
    "E66.05": {"age_low": "j003", "age_high": "j018", "age_reject": "K"},
    "G63.2": {"usage": "aster", "para295": "O", "para301": "O"},
    "I10.90": {},
    "I15.00": {},
    "I16": {},
    "N92.0": {"sex_code": "W", "sex_reject": "K", "age_low": "j008", "age_high": "j060", "age_reject": "K"},
    "P59.9": {"age_low": "t000", "age_high": "t028", "age_reject": "M"},
    "P92.2": {"age_high": "t028", "age_reject": "K"},
    "U13.0": {"content": "N"},
    "U69.80": {"usage": "optional", "para295": "V", "para301": "Z"},
    "U80.00": {"usage": "optional", "para295": "Z", "para301": "Z"},
}


@pytest.fixture(scope="module")
def codes() -> CodeTable:
    """Return a small table with each case once."""
    return code_table(CODES)


def _passing(codes: CodeTable, **wanted: Any) -> set[str]:
    passing = CodeFilter(codes, Filter(**wanted))
    return {code for code in CODES if passing.verdict(code).passes}


def _conflicts(codes: CodeTable, **wanted: Any) -> dict[str, tuple[str, ...]]:
    passing = CodeFilter(codes, Filter(**wanted))
    verdicts = {code: passing.verdict(code) for code in CODES}
    return {
        code: verdict.conflict for code, verdict in verdicts.items() if verdict.passes and verdict.conflict
    }


SUGGESTED = set(CODES) - {"E11", "E11.7", "U13.0"}

# Source: coding.md, "May this code be used, and where": code, ambulant, stationaer, role.
BILLABLE = [
    ("E11.72", True, True, "primary"),
    ("E11", False, False, None),
    ("U13.0", False, False, None),
    ("U69.80", False, True, "addon"),
    ("G63.2", True, True, "aster"),
    ("U80.00", True, True, "addon"),
]


@pytest.mark.parametrize(("code", "ambulant", "stationaer", "role"), BILLABLE)
def test_where_a_code_is_billable(
    codes: CodeTable, code: str, ambulant: bool, stationaer: bool, role: str | None
) -> None:
    """Terminal, with content, and not V in the sector's own field; any is one of both."""
    _check_billable(codes, code, ambulant, stationaer, role)


@pytest.mark.full
@needs_shared
@pytest.mark.parametrize(("code", "ambulant", "stationaer", "role"), BILLABLE)
def test_where_a_code_of_2025_is_billable(
    full: Suggester, code: str, ambulant: bool, stationaer: bool, role: str | None
) -> None:
    """The six examples, as the edition has them."""
    _check_billable(full.build.codes, code, ambulant, stationaer, role)


def _check_billable(codes: CodeTable, code: str, ambulant: bool, stationaer: bool, role: str | None) -> None:
    tags = codes.tags(code, valid=True)
    assert (tags.billable_ambulant, tags.billable_stationaer) == (ambulant, stationaer)
    assert (tags.billable, tags.role) == (ambulant or stationaer, role)

    def passes(sector: str) -> bool:
        wanted = Filter(billable_only=True, sector=sector)  # type: ignore[arg-type]
        return CodeFilter(codes, wanted).verdict(code).passes

    assert (passes("ambulant"), passes("stationaer"), passes("any")) == (ambulant, stationaer, tags.billable)


@pytest.mark.full
@needs_shared
def test_the_figures_of_2025_are_met(full: Suggester) -> None:
    """393 placeholders, eight codes inpatient only, and no code of a role without the usage for it."""
    codes = full.build.codes
    terminal = [
        tags
        for code in codes._row
        if codes.value(code, "kind") == "category" and (tags := codes.tags(code, valid=True)).terminal
    ]
    inpatient = [tags for tags in terminal if tags.billable_stationaer and not tags.billable_ambulant]

    assert (len(terminal), sum(not tags.content for tags in terminal), len(inpatient)) == (14_309, 393, 8)
    roles = {(tags.role, tags.usage) for tags in terminal if tags.content}
    assert roles == {
        ("primary", None),
        ("primary", "dagger"),
        ("aster", "aster"),
        ("addon", "optional"),
    }


def test_without_any_filter_only_terminal_codes_with_content_pass(codes: CodeTable) -> None:
    """Placeholders and subdivided codes never appear; O and Z codes do."""
    assert _passing(codes) == SUGGESTED


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (("I",), {"I10.90", "I15.00", "I16"}),
        (("i",), {"I10.90", "I15.00", "I16"}),
        (("1",), {"A00.0", "B96.2"}),
        (("9",), {"I10.90", "I15.00", "I16"}),
        (("IX",), {"I10.90", "I15.00", "I16"}),
        (("ix",), {"I10.90", "I15.00", "I16"}),
        (("C",), {"C61", "C62.9"}),
        (("II",), {"C61", "C62.9"}),
        (("22",), {"U69.80", "U80.00"}),
        (("XXII", "A"), {"U69.80", "U80.00", "A00.0"}),
        (("X",), set()),
    ],
)
def test_a_letter_is_a_codes_first_a_number_or_longer_numeral_a_chapter(
    codes: CodeTable, values: tuple[str, ...], wanted: set[str]
) -> None:
    """I means the circulation's codes and not chapter I; several are joined by or."""
    assert _passing(codes, chapters=values) == wanted


def test_prefixes_and_groups_choose_codes(codes: CodeTable) -> None:
    """Both ends of a group are part of it; several are joined by or, different filters by and."""
    assert _passing(codes, prefix=("E11", "I1")) == {"E11.72", "I10.90", "I15.00", "I16"}
    assert _passing(codes, prefix=("e11.7",)) == {"E11.72"}
    assert _passing(codes, groups=("I10-I15",)) == {"I10.90", "I15.00"}
    assert _passing(codes, groups=("i16", "A00-B99")) == {"I16", "A00.0", "B96.2"}
    assert _passing(codes, groups=("I10-I15",), prefix=("I15",)) == {"I15.00"}
    assert _passing(codes, chapters=("E",), groups=("I10-I15",)) == set()


@pytest.mark.parametrize(
    "wanted",
    [
        {"chapters": ("23",)},
        {"chapters": ("0",)},
        {"chapters": ("IIX",)},
        {"chapters": ("",)},
        {"chapters": ("Ä",)},
        {"prefix": ("11E",)},
        {"prefix": ("",)},
        {"prefix": ("E11.722",)},
        {"groups": ("I15-I10",)},
        {"groups": ("I1",)},
        {"groups": ("IX",)},
        {"age": "alt"},
        {"age": "-1"},
        {"age": "45w"},
        {"age": "125"},
        {"age": ""},
        {"age": "4,5"},
    ],
)
def test_a_value_that_cannot_be_meant_is_wrong_use(codes: CodeTable, wanted: dict[str, Any]) -> None:
    """The error names the option."""
    [name] = wanted
    with pytest.raises(UsageError, match=f"--{name}"):
        CodeFilter(codes, Filter(**wanted))


def test_exotic_and_reportable_codes_are_told_by_the_edition(codes: CodeTable) -> None:
    """Exotic J goes, Infectious J stays."""
    assert _passing(codes, exclude_exotic=True) == SUGGESTED - {"A00.0"}
    assert _passing(codes, ifsg_only=True) == {"A00.0"}


def test_must_reject_goes_and_can_reject_stays_marked(codes: CodeTable) -> None:
    """For a woman C62.9 is impossible, C61 in conflict; strict removes it, too."""
    assert _passing(codes, sex="w") == SUGGESTED - {"C62.9"}
    assert _conflicts(codes, sex="w") == {"C61": ("sex",)}
    assert _passing(codes, sex="w", strict=True) == SUGGESTED - {"C62.9", "C61"}
    assert _passing(codes, sex="m") == SUGGESTED
    assert _conflicts(codes, sex="m") == {"N92.0": ("sex",)}


@pytest.mark.parametrize("sex", ["d", "x", None])
def test_divers_and_unbestimmt_are_never_in_conflict(codes: CodeTable, sex: str | None) -> None:
    """Not even with a must-reject, and not under strict."""
    assert _passing(codes, sex=sex, strict=True) == SUGGESTED
    assert _conflicts(codes, sex=sex) == {}


def test_both_conflicts_are_named(codes: CodeTable) -> None:
    """A boy of five and heavy menstruation."""
    assert _conflicts(codes, sex="m", age="5")["N92.0"] == ("sex", "age")


@pytest.mark.parametrize(
    ("age", "passes"),
    [
        ("0d", True),
        ("3d", True),
        ("28d", True),
        ("29d", False),
        ("28t", True),
        ("0m", True),
        ("1m", False),
        ("0", True),
        ("1", False),
        ("45", False),
    ],
)
def test_the_day_limits_of_newborns_are_inclusive(codes: CodeTable, age: str, passes: bool) -> None:
    """t000 to t028 in completed days; of completed years 0 alone the day is not known."""
    assert ("P59.9" in _passing(codes, age=age)) is passes
    assert ("P92.2" not in _conflicts(codes, age=age)) is passes


@pytest.mark.parametrize(
    ("age", "conflict"),
    [
        ("2", True),
        ("3", False),
        ("18", False),
        ("19", True),
        ("35m", True),
        ("36m", False),
        ("227m", False),
        ("228m", True),
        ("3d", True),
        ("18j", False),
        ("18 J", False),
    ],
)
def test_bounds_in_years_are_inclusive(codes: CodeTable, age: str, conflict: bool) -> None:
    """j003 to j018 in completed years, whatever unit the age is given in."""
    assert ("E66.05" in _conflicts(codes, age=age)) is conflict


def test_a_bound_without_reject_is_no_conflict(codes: CodeTable) -> None:
    """AgeReject 9."""
    assert "E11.72" in _passing(codes, age="3d", strict=True)
    assert "E11.72" not in _conflicts(codes, age="3d")


@pytest.mark.parametrize("age", ["1m", "5m", "11m"])
def test_an_infant_of_months_is_younger_than_a_year(codes: CodeTable, age: str) -> None:
    """And older than the newborn."""
    assert not {"P59.9"} & _passing(codes, age=age)
    assert "E66.05" in _conflicts(codes, age=age)
