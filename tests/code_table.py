"""A code table in a few lines: what a test says of a code, and defaults for all else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from alpha_id_runtime.codes import CodeTable

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: dict[str, Any] = {
    "kind": "category",
    "parent": None,
    "group": None,
    "usage": None,
    "terminal": True,
    "explicit": True,
    "para295": "P",
    "para301": "P",
    "sex_code": "9",
    "sex_reject": "9",
    "age_low": "9999",
    "age_high": "9999",
    "age_reject": "9",
    "exotic": "N",
    "content": "J",
    "infectious": "N",
    "ebm_labor": "J",
}
CHAPTERS = {
    "A": "I",
    "B": "I",
    "C": "II",
    "E": "IV",
    "G": "VI",
    "I": "IX",
    "N": "XIV",
    "P": "XVI",
    "U": "XXII",
}


def code_table(codes: Mapping[str, Mapping[str, Any]]) -> CodeTable:
    """Return the table of ``{code: {field: value}}``."""
    rows = [
        {"code": code, "title": f"Titel von {code}", "chapter": CHAPTERS[code[0]]} | DEFAULTS | dict(said)
        for code, said in codes.items()
    ]
    return CodeTable(pa.Table.from_pylist(rows))
