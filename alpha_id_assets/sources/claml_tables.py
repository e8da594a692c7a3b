"""The two tables a ClaML edition becomes: the code table ``icd_meta`` and the rubrics.

Holds: their schemas and how they are filled. Refuses: reading and judging.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from alpha_id_assets.sources.claml_model import META_COLUMNS, META_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_assets.sources.expansion import Code

CODE_SCHEMA = pl.Schema(
    {
        "code": pl.String(),
        "kind": pl.String(),
        "title": pl.String(),
        "parent": pl.String(),
        "chapter": pl.String(),
        "group": pl.String(),
        "usage": pl.String(),
        "terminal": pl.Boolean(),
        "explicit": pl.Boolean(),
        **{column: pl.String() for column in META_COLUMNS.values()},
    }
)
"""``icd_meta``: one row a class or combined code, in classification order."""

RUBRIC_SCHEMA = pl.Schema(
    {
        "code": pl.String(),
        "kind": pl.String(),
        "text": pl.String(),
        "references": pl.List(pl.Struct({"code": pl.String(), "usage": pl.String(), "text": pl.String()})),
        "from_modifier": pl.Boolean(),
    }
)
"""``icd_rubrics``: one row a rubric; those of a modifier class are repeated for each code it makes."""


def code_frame(codes: Sequence[Code]) -> pl.DataFrame:
    """Return the code table, ``CODE_SCHEMA``, one row a code in the order given."""
    none: tuple[None, ...] = (None,) * len(META_NAMES)
    columns: list[Sequence[object]] = [
        [code.element.code for code in codes],
        [code.element.kind for code in codes],
        [code.element.title for code in codes],
        [code.element.parent for code in codes],
        [code.chapter for code in codes],
        [code.group for code in codes],
        [code.element.usage for code in codes],
        [code.terminal for code in codes],
        [code.element.explicit for code in codes],
        *zip(*(none if code.metas is None else code.metas for code in codes), strict=True),
    ]
    return pl.DataFrame(dict(zip(CODE_SCHEMA, columns, strict=True)), schema=CODE_SCHEMA)


def rubric_frame(codes: Sequence[Code]) -> pl.DataFrame:
    """Return all rubrics, ``RUBRIC_SCHEMA``, by code in the order given, then as in the file."""
    elements = [code.element for code in codes]
    known = {each.code for each in elements}
    rubrics = [(each.code, rubric, not each.explicit) for each in elements for rubric in each.rubrics]
    pointed = [(row, each) for row, (_, rubric, _) in enumerate(rubrics) for each in rubric.references]
    # Built flat and gathered: a list of dictionaries a row would take longer than reading the file.
    references = pl.DataFrame(
        {
            "row": pl.Series([row for row, _ in pointed], dtype=pl.UInt32()),
            # The source leaves the code attribute out where the printed text is the very code.
            "code": [each.code or (each.text if each.text in known else None) for _, each in pointed],
            "usage": [each.usage for _, each in pointed],
            "text": [each.text for _, each in pointed],
        },
        schema_overrides={"code": pl.String(), "usage": pl.String(), "text": pl.String()},
    )
    gathered = references.group_by("row").agg(pl.struct("code", "usage", "text").alias("references"))
    frame = pl.DataFrame(
        {
            "code": [code for code, _, _ in rubrics],
            "kind": [rubric.kind for _, rubric, _ in rubrics],
            "text": [rubric.text for _, rubric, _ in rubrics],
            "from_modifier": [from_modifier for _, _, from_modifier in rubrics],
        },
    ).with_row_index("row")
    joined = frame.join(gathered, on="row", how="left", maintain_order="left")
    return joined.select(pl.col("references").fill_null([]), pl.exclude("row", "references")).select(
        pl.col(column).cast(dtype) for column, dtype in RUBRIC_SCHEMA.items()
    )
