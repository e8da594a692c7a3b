"""Mode C on input that nobody meant: empty, huge, full of control characters; and without a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alpha_id_runtime.config import Config
from alpha_id_runtime.errors import ArtefactsMissingError
from alpha_id_runtime.pipeline import Suggester

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import SuggestResult


def _codes(result: SuggestResult) -> list[str]:
    return [each.icd_code for each in result.suggestions]


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        ("", 0, "The input holds no non-empty line."),
        (" \n\t\r\n", 0, "The input holds no non-empty line."),
        ("\ufeff", 0, "The input holds no non-empty line."),
        ("-\n*\n", 0, "The input holds no non-empty line."),
        ("???", 1, "The line holds no letter and no digit."),
    ],
)
def test_input_without_a_phrase_is_answered_with_the_reason(
    sample: Suggester, text: str, count: int, reason: str
) -> None:
    """An empty list, no error."""
    result = sample.suggest(text)

    assert result.suggestions == ()
    assert (result.diagnostics.segment_count, result.diagnostics.reason) == (count, reason)


def test_each_line_without_code_is_named_with_its_reason(sample: Suggester) -> None:
    """The others are answered."""
    result = sample.suggest("Gicht\n!!!\nAsiatische Cholera\n…")

    assert [each.segment for each in result.diagnostics.skipped] == [1, 3]
    assert result.diagnostics.reason is None
    assert "A00.0" in _codes(result)


def test_500_lines_are_answered_and_none_is_lost(sample: Suggester) -> None:
    """Ten codes; every line has its best code in the list, is unrepresented or skipped."""
    texts = [text for text in sample.build.phrases.column("text") if text][:500]
    result = sample.suggest("\n".join(texts))
    diagnostics = result.diagnostics

    assert (diagnostics.segment_count, len(result.suggestions)) == (500, 10)
    told = {*diagnostics.unrepresented, *(each.segment for each in diagnostics.skipped)}
    listed = {segment for each in result.suggestions for segment in each.source_segments}
    assert told | listed == set(range(500))
    assert len(told) > 400


@pytest.mark.parametrize("unit", ["Hypertonie ", "x", "I10 ", "- ", "( ", "1. ", "ä\u0308", "Ⅻ"])
def test_a_line_of_a_megabyte_is_answered(sample: Suggester, unit: str) -> None:
    """Its head is read, and that is said."""
    result = sample.suggest(unit * (1_000_000 // len(unit)))

    assert result.diagnostics.segment_count <= 1
    if result.diagnostics.segment_count:
        assert any("1000 characters" in warning for warning in result.diagnostics.warnings)


def test_control_characters_neither_hurt_nor_hide(sample: Suggester) -> None:
    """NUL, escape sequences, direction marks, emoji, unpaired surrogates."""
    for text in (
        "Geh\u200birnschlag",
        "\x1b[31mGehirnschlag\x1b[0m",
        "\u202eGehirnschlag",
        "Gehirnschlag 🧠\x00",
    ):
        assert "I64" in _codes(sample.suggest(text))
    assert sample.suggest("\x00\x01\x7f").suggestions == ()
    assert sample.suggest("Gehirnschlag \ud800").suggestions[0].icd_code == "I64"


@pytest.mark.parametrize("top", [1, 3, 25])
def test_the_list_is_as_long_as_asked(sample: Suggester, top: int) -> None:
    """At most."""
    assert len(sample.suggest("Hypertonie\nDiabetes", top=top).suggestions) == top


def test_without_a_build_the_error_names_the_command(tmp_path: Path) -> None:
    """Exit code 3 at the command line."""
    with pytest.raises(ArtefactsMissingError, match="alpha-id index build"):
        Suggester.open(Config(storage=tmp_path / "none", mode="c"))
