"""One code as the edition has it: tags, hierarchy, rubrics, phrases, and why it is not suggested. Pure.

Holds: what ``alpha-id code`` answers. Refuses: retrieval, and printing.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from alpha_id_runtime.codes import parse_code
from alpha_id_runtime.errors import ArtefactsIncompatibleError, UsageError
from alpha_id_runtime.manifest import BUILD_CURE

if TYPE_CHECKING:
    from alpha_id_runtime.build import Build


def describe_code(build: Build, text: str) -> dict[str, Any]:
    """Return everything the edition and the corpus say of a code, block or chapter.

    Raises:
        UsageError: the edition has no such code.
        ArtefactsIncompatibleError: the rubrics of the build are gone or damaged.
    """
    code = _resolve(build, text)
    codes = build.codes
    plain: dict[str, Any] = {
        "icd_code": code,
        "printed": codes.printed(code),
        "kind": codes.value(code, "kind"),
        "description": codes.title(code),
        "suggested": codes.is_terminal(code) and codes.has_content(code),
        "why_not": why_not(build, code),
        "tags": asdict(codes.tags(code, valid=True)) if codes.value(code, "kind") == "category" else None,
        "hierarchy": [_named(build, each) for each in reversed(codes.ancestors(code))],
        "children": [_named(build, each) for each in codes.children(code)],
        "rubrics": _rubrics(build, code),
        "phrases": _phrases(build, code),
        "editions": {"alpha_id": build.manifest.alpha_id.edition, "claml": build.manifest.claml.edition},
    }
    return plain


def why_not(build: Build, code: str) -> str | None:
    """Return why a class is never suggested, None where it is."""
    codes = build.codes
    if codes.value(code, "kind") != "category":
        return f"{code} is a {codes.value(code, 'kind')}, not a code."
    if not codes.has_content(code):
        return f"{code} is not assigned (Content N): a placeholder without meaning."
    if codes.is_terminal(code):
        return None
    why = f"{code} is subdivided: only its terminal codes are suggested."
    if codes.value(code, "para295") == "P":
        why += (
            " Para295 is P although it is not terminal: § 295 tolerates the four-character code in GP care "
            "and in the emergency service only."
        )
    return why


def _resolve(build: Build, text: str) -> str:
    wanted = text.strip().upper()
    for code in (parse_code(text), wanted, wanted.rstrip("-")):
        if code is not None and code in build.codes:
            return code
    edition = build.manifest.claml.edition
    raise UsageError(
        f"ICD-10-GM {edition} has no code {text}. A code is written as in E11.72, I10 or I10-I15."
    )


def _named(build: Build, code: str) -> dict[str, Any]:
    return {"icd_code": build.codes.printed(code), "description": build.codes.title(code)}


def _rubrics(build: Build, code: str) -> dict[str, list[str]]:
    try:
        table = pq.read_table(build.layout.rubrics, filters=pc.field("code") == code)
    except (OSError, ValueError) as error:
        raise ArtefactsIncompatibleError(
            f"{build.layout.rubrics} is missing or damaged. {BUILD_CURE}"
        ) from error
    found: dict[str, list[str]] = {}
    for row in table.select(["kind", "text"]).to_pylist():
        found.setdefault(row["kind"], []).append(row["text"])
    return found


def _phrases(build: Build, code: str) -> list[dict[str, Any]]:
    rows = build.phrases.rows_of(code)
    return [
        {
            "text": entry.text,
            "origin": entry.origin,
            "alpha_id": entry.alpha_id,
            "orpha": entry.orpha,
            "valid": entry.valid,
            "complements": [asdict(each) for each in entry.complements],
        }
        for entry in build.phrases.entries(rows.tolist())
    ]
