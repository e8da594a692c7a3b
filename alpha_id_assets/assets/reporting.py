"""How an asset says what it did: metadata for the UI, one line for the console, one paragraph for an error.

Holds: the way from a ``Step`` to a ``MaterializeResult`` and from an ``AlphaIdError`` to a failed run.
Refuses: any asset's own knowledge. Only phrases of the corpus are ever shown, which are public.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg
import polars as pl

from alpha_id_assets.building import Step
from alpha_id_runtime.errors import AlphaIdError

PREVIEW_ROWS = 5
_CELL = 60
TEAM = ["team:alpha-id"]


@contextmanager
def failing_in_words() -> Iterator[None]:
    """Turn an error raised on purpose into a failed step: its paragraph, no retry.

    The paragraph goes to the console too, as the environment file keeps Dagster's own traces out of it.

    Raises:
        dagster.Failure: in place of an ``AlphaIdError``.
    """
    try:
        yield
    except AlphaIdError as error:
        say(f"alpha-id: {error}")
        raise dg.Failure(description=str(error), allow_retries=False) from error


def say(line: str) -> None:
    """Write a line to the console and to the step's log."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def materialised(
    step: Step,
    extra: Mapping[str, Any] | None = None,
    *,
    preview: pl.DataFrame | None = None,
    rows: int = PREVIEW_ROWS,
) -> dg.MaterializeResult[Any]:
    """Return what the UI shows of ``step``: counts, seconds, source, warnings, a preview, and ``extra``."""
    counts = ", ".join(f"{name} {count:,}" for name, count in step.counts.items())
    say(f"{step.name:<18} {step.seconds:6.1f} s  {counts}")
    for warning in step.warnings:
        say(f"{'':<18} warning: {warning}")
    metadata: dict[str, Any] = {**step.counts, "seconds": step.seconds}
    if source := step.details.get("source"):
        metadata |= {"edition": source["edition"], "source": source["name"]}
    if step.warnings:
        metadata["warnings"] = dg.MetadataValue.md("\n".join(f"- {each}" for each in step.warnings))
    if preview is not None:
        metadata["preview"] = dg.MetadataValue.md(markdown_table(preview, rows))
    version = step.details.get("hash")
    return dg.MaterializeResult(
        metadata=metadata | dict(extra or {}), data_version=dg.DataVersion(version) if version else None
    )


def markdown_table(frame: pl.DataFrame, rows: int) -> str:
    """Return the first rows of ``frame`` as a markdown table; long cells are cut, nulls are blank."""
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + " --- |" * len(frame.columns)]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in frame.head(rows).iter_rows()]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    text = text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"
    return text.replace("|", "\\|").replace("\n", " ")
