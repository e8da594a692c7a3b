"""The texts to match: Alpha-ID entries, titles and inclusion terms, each with the code it stands for today.

Holds: the joining of one Alpha-ID edition with one ClaML edition, as a pure function of their tables, and the
report of what did not fit. Refuses: reading files, and codes that the ClaML edition does not have.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import polars as pl

from alpha_id_runtime.hierarchy import leaves_unspecified_first
from alpha_id_runtime.text import canonical, content_hash, normalise

COMPLEMENTS: Final = pl.List(pl.Struct({"icd_code": pl.String(), "usage": pl.String()}))
PHRASES_SCHEMA: Final[dict[str, pl.DataType]] = {
    "text": pl.String(),
    "norm": pl.String(),
    "hash": pl.String(),
    "origin": pl.String(),
    "valid": pl.Boolean(),
    "alpha_id": pl.String(),
    "orpha": pl.String(),
    "icd_code": pl.String(),
    "secondary_only": pl.Boolean(),
    "edition_gap": pl.Boolean(),
    "gap_rank": pl.Int64(),
    "complements": COMPLEMENTS,
}
# Which field of an entry is which complement, and the order in which they stand in for a missing primary.
_PARTNERS: Final = {"aster": "aster", "addon": "optional", "primary2": "second_primary"}
_PLACEHOLDER = "Nicht belegte Schlüsselnummer"
_SECONDARY_USAGES = ["aster", "optional"]


@dataclass(frozen=True)
class CodeCount:
    """A code of the Alpha-ID edition and how many of its entries have it."""

    code: str
    entries: int


@dataclass(frozen=True)
class Gap:
    """A code that is no longer terminal, with the codes that stand for it, the unspecified one first."""

    code: str
    entries: int
    children: tuple[str, ...]


@dataclass(frozen=True)
class CorpusReport:
    """What became of the sources.

    Attributes:
        entries: rows of the Alpha-ID edition.
        phrases: rows of the corpus by origin.
        duplicates: titles and inclusion terms left out because a phrase says the same of the same code.
        gaps: codes that became non-terminal.
        unknown_codes: codes that ClaML lacks; their entries are left out.
        unassigned_codes: codes without content in ClaML; their entries are left out.
        dropped_complements: partners that ClaML lacks or has no content for; the entries stay without them.
    """

    entries: int
    phrases: dict[str, int]
    duplicates: dict[str, int]
    gaps: tuple[Gap, ...]
    unknown_codes: tuple[CodeCount, ...]
    unassigned_codes: tuple[CodeCount, ...]
    dropped_complements: tuple[CodeCount, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for ``json.dumps``."""
        return asdict(self)


@dataclass(frozen=True)
class Corpus:
    """The corpus and how it came about; ``phrases`` has the schema ``PHRASES_SCHEMA``, in index order."""

    phrases: pl.DataFrame
    report: CorpusReport


def build_corpus(entries: pl.DataFrame, codes: pl.DataFrame, rubrics: pl.DataFrame) -> Corpus:
    """Join an Alpha-ID edition with a ClaML edition.

    An entry's code is its primary; without one its star or addon code, which then never stands alone. The
    other codes of the entry are its complements. A code that is no longer terminal stands for its terminal
    descendants, one row each (``edition_gap``); only terminal codes with content are in the corpus.

    Args:
        entries: table ``alpha_id_entries``.
        codes: table ``icd_meta``, in classification order.
        rubrics: table ``icd_rubrics``.

    Returns:
        Alpha-ID rows in the order of the file, then titles, then inclusion terms in classification order.
    """
    categories = codes.filter(pl.col("kind") == "category").with_columns(
        (
            pl.col("terminal") & (pl.col("content") == "J") & ~pl.col("title").str.starts_with(_PLACEHOLDER)
        ).alias("usable"),
        pl.col("usage").is_in(_SECONDARY_USAGES).fill_null(value=False).alias("secondary"),
    )
    numbered = entries.with_columns(
        pl.coalesce("primary", *_PARTNERS).alias("main"),
        pl.coalesce(
            pl.when(pl.col(field).is_not_null()).then(pl.lit(field)) for field in ("primary", *_PARTNERS)
        ).alias("main_field"),
    ).with_row_index("entry")
    partners = _partners(numbered)
    said = pl.concat([numbered["main"], partners["code"]]).drop_nulls().unique()
    today = _codes_of_today(said, categories)

    complements, dropped = _complements(partners, today)
    alpha_id = _alpha_id_rows(numbered, today, categories, complements)
    titles = _titles(categories)
    inclusions = _inclusions(rubrics, categories)
    phrases = _with_norm_and_hash(pl.concat([alpha_id, titles, inclusions]))
    phrases, duplicates = _without_duplicates(phrases)

    unknown, unassigned, gaps = _left_over(numbered, categories, today)
    counts = dict(phrases["origin"].value_counts().iter_rows())
    report = CorpusReport(
        entries=entries.height,
        phrases={origin: counts.get(origin, 0) for origin in ("alpha_id", "title", "inclusion")},
        duplicates=duplicates,
        gaps=gaps,
        unknown_codes=unknown,
        unassigned_codes=unassigned,
        dropped_complements=dropped,
    )
    return Corpus(phrases, report)


def _partners(numbered: pl.DataFrame) -> pl.DataFrame:
    """Return the codes of each entry besides its main one: ``entry``, ``code``, ``usage``, in their order."""
    parts = [
        numbered.filter(pl.col(field).is_not_null() & (pl.col("main_field") != field)).select(
            "entry", pl.col(field).alias("code"), pl.lit(usage).alias("usage")
        )
        for field, usage in _PARTNERS.items()
    ]
    return pl.concat(parts).sort("entry", maintain_order=True)


def _codes_of_today(said: pl.Series, categories: pl.DataFrame) -> pl.DataFrame:
    """Return what each code stands for in ClaML: ``code``, ``icd_code``, ``gap_rank``, ``edition_gap``.

    A terminal code stands for itself, any other one for its terminal descendants with content; a code that
    ClaML lacks or has no content for has no row.
    """
    known = categories.filter(pl.col("code").is_in(said.implode()))
    terminal = known.filter("usable")["code"].to_list()
    rows = [(code, code, 0, False) for code in terminal]
    split = known.filter(~pl.col("terminal"))["code"].to_list()
    if split:
        usable = set(categories.filter("usable")["code"])
        title = dict(categories.select("code", "title").iter_rows())
        # A category below another begins with its code: not even a broken source can run in circles.
        below = (pl.col("code") != pl.col("parent")) & pl.col("code").str.starts_with(pl.col("parent"))
        living = categories.filter(below & (~pl.col("terminal") | pl.col("usable")))
        children: dict[str, list[str]] = {}
        for code, parent in living.select("code", "parent").iter_rows():
            children.setdefault(parent, []).append(code)
        for code in split:
            leaves = leaves_unspecified_first(code, children, title.__getitem__)
            rows.extend((code, c, rank, True) for rank, c in enumerate(c for c in leaves if c in usable))
    schema = {"code": pl.String, "icd_code": pl.String, "gap_rank": pl.Int64, "edition_gap": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _complements(partners: pl.DataFrame, today: pl.DataFrame) -> tuple[pl.DataFrame, tuple[CodeCount, ...]]:
    """Return ``entry``, ``complements``, and the partners that ClaML does not have.

    A partner that became non-terminal is kept as its unspecified terminal code.
    """
    first = today.filter(pl.col("gap_rank") == 0)
    joined = partners.join(first, on="code", how="left", maintain_order="left")
    lists = (
        joined.filter(pl.col("icd_code").is_not_null())
        .group_by("entry", maintain_order=True)
        .agg(pl.struct("icd_code", "usage").alias("complements"))
    )
    return lists, _counted(joined.filter(pl.col("icd_code").is_null())["code"])


def _alpha_id_rows(
    numbered: pl.DataFrame, today: pl.DataFrame, categories: pl.DataFrame, complements: pl.DataFrame
) -> pl.DataFrame:
    stands_alone = pl.col("main_field").is_in(["primary", "primary2"]) & ~pl.col("secondary")
    return (
        numbered.join(today, left_on="main", right_on="code", how="inner", maintain_order="left_right")
        .join(
            categories.select("code", "secondary"),
            left_on="icd_code",
            right_on="code",
            how="left",
            maintain_order="left",
        )
        .join(complements, on="entry", how="left", maintain_order="left")
        .with_columns(
            pl.lit("alpha_id").alias("origin"),
            (~stands_alone).alias("secondary_only"),
            pl.col("complements").fill_null(pl.lit([], dtype=COMPLEMENTS)),
        )
        .select(_WITHOUT_NORM_AND_HASH)
    )


_WITHOUT_NORM_AND_HASH = [name for name in PHRASES_SCHEMA if name not in ("norm", "hash")]


def _titles(categories: pl.DataFrame) -> pl.DataFrame:
    usable = categories.filter("usable")
    return _classification_rows(
        "title", usable.select(pl.col("title").alias("text"), pl.col("code").alias("icd_code"), "secondary")
    )


def _inclusions(rubrics: pl.DataFrame, categories: pl.DataFrame) -> pl.DataFrame:
    usable = categories.filter("usable").select("code", "secondary")
    of_kind = rubrics.filter((pl.col("kind") == "inclusion") & ~pl.col("from_modifier"))
    joined = usable.join(of_kind, on="code", how="inner", maintain_order="left_right")
    return _classification_rows(
        "inclusion", joined.select("text", pl.col("code").alias("icd_code"), "secondary")
    )


def _classification_rows(origin: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Make phrases of ``text``, ``icd_code``, ``secondary``; no-break spaces of ClaML become plain ones."""
    texts = pl.Series("text", [canonical(text) for text in rows["text"]], dtype=pl.String)
    return (
        rows.with_columns(
            texts,
            pl.lit(origin).alias("origin"),
            pl.lit(value=True).alias("valid"),
            pl.lit(None, dtype=pl.String).alias("alpha_id"),
            pl.lit(None, dtype=pl.String).alias("orpha"),
            pl.col("secondary").alias("secondary_only"),
            pl.lit(value=False).alias("edition_gap"),
            pl.lit(0, dtype=pl.Int64).alias("gap_rank"),
            pl.lit([], dtype=COMPLEMENTS).alias("complements"),
        )
        .filter(pl.col("text") != "")
        .select(_WITHOUT_NORM_AND_HASH)
    )


def _with_norm_and_hash(phrases: pl.DataFrame) -> pl.DataFrame:
    texts = phrases["text"].unique(maintain_order=True).to_list()
    derived = pl.DataFrame(
        {
            "text": texts,
            "norm": [normalise(text) for text in texts],
            "hash": [content_hash(text) for text in texts],
        },
        schema={"text": pl.String, "norm": pl.String, "hash": pl.String},
    )
    return phrases.join(derived, on="text", how="left", maintain_order="left").select(list(PHRASES_SCHEMA))


def _without_duplicates(phrases: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Leave out titles and inclusion terms that say what an earlier phrase says of the same code.

    Every Alpha-ID row stays. A row that is invalid, a stand-in for a split code or has complements is no twin
    of a title: the title says more than it does.
    """
    from_classification = pl.col("origin") != "alpha_id"
    plain = pl.col("valid") & ~pl.col("edition_gap") & (pl.col("complements").list.len() == 0)
    first = pl.struct("hash", "icd_code").is_first_distinct()
    marked = phrases.with_row_index("row")
    twins = marked.filter(plain).filter(~first & from_classification)
    duplicates = dict(twins["origin"].value_counts().iter_rows())
    kept = marked.filter(~pl.col("row").is_in(twins["row"].implode())).drop("row")
    return kept, {origin: duplicates.get(origin, 0) for origin in ("title", "inclusion")}


def _left_over(
    numbered: pl.DataFrame, categories: pl.DataFrame, today: pl.DataFrame
) -> tuple[tuple[CodeCount, ...], tuple[CodeCount, ...], tuple[Gap, ...]]:
    """Return the unknown codes, those without content, and the gaps, each with their number of entries."""
    main = numbered["main"].drop_nulls()
    known = categories["code"].implode()
    missing = main.filter(~main.is_in(today["code"].unique().implode()))
    is_known = missing.is_in(known)
    children = dict(
        today.filter("edition_gap")
        .group_by("code", maintain_order=True)
        .agg(pl.col("icd_code"))
        .select("code", "icd_code")
        .iter_rows()
    )
    gaps = _counted(main.filter(main.is_in(list(children))))
    return (
        _counted(missing.filter(~is_known)),
        _counted(missing.filter(is_known)),
        tuple(Gap(gap.code, gap.entries, tuple(children[gap.code])) for gap in gaps),
    )


def _counted(codes: pl.Series) -> tuple[CodeCount, ...]:
    counts: dict[str, int] = dict(codes.value_counts().iter_rows())
    return tuple(CodeCount(code, counts[code]) for code in sorted(counts))
