"""Mode C on phrases of real coders' cases: the bar it must not fall below."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from tests.reference import SHARED, needs_shared

if TYPE_CHECKING:
    from alpha_id_runtime.pipeline import Suggester

BAR = 0.89


@pytest.mark.full
@needs_shared
def test_recall_at_ten_on_the_scored_rows_meets_the_bar(full: Suggester) -> None:
    """A hit: the gold code suggested or among complements; one that is not terminal counts as its prefix."""
    with (SHARED / "eval" / "real_phrases_dev.tsv").open(encoding="utf-8", newline="") as stream:
        rows = [
            row
            for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
            if row["kind"].startswith(("coder_gold", "author"))
        ]

    def is_hit(row: dict[str, str]) -> bool:
        gold = row["icd_code"]
        found = [
            code
            for each in full.suggest(row["phrase"]).suggestions
            for code in (each.icd_code, *(complement.icd_code for complement in each.complements))
        ]
        if full.build.codes.is_terminal(gold):
            return gold in found
        return any(code.startswith(gold) for code in found)

    assert len(rows) == 102
    assert sum(map(is_hit, rows)) / len(rows) >= BAR
