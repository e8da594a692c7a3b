"""The files that the gate reads: the sample report and a person's approval.

Holds: their shapes, reading and writing. Refuses: a file that is damaged or holds no sound numbers, with its
cure; and deciding anything (``gate.py`` does).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from alpha_id_runtime.errors import ArtefactsIncompatibleError, GateError
from alpha_id_runtime.files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAMPLE_FILE = "sample.json"
APPROVAL_FILE = "approval.json"
SAMPLE_CURE = "Run the sample: dagster asset materialize --select embeddings_sample"
APPROVE_CURE = (
    "Approve it: materialise embedding_approval with confirm: true and a limit, or run "
    "python -m alpha_id_runtime index build --full --confirm"
)


T = TypeVar("T")


@dataclass(frozen=True)
class Estimate:
    """What embedding would take. ``euros`` is None where the price is unknown, 0 where it is free."""

    phrases: int
    cached: int
    tokens: int
    euros: float | None

    @property
    def missing(self) -> int:
        """Number of texts that would be sent."""
        return self.phrases - self.cached


@dataclass(frozen=True)
class SampleReport:
    """What the sample showed. ``details`` are for people: checks, example answers over corpus phrases."""

    fingerprint: str
    corpus_hash: str
    passed: bool
    estimate: Estimate
    at: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Approval:
    """A person's yes, with what it was said to."""

    id: str
    confirm: bool
    limit_euros: float | None
    limit_tokens: int | None
    fingerprint: str
    corpus_hash: str
    estimate: Estimate
    by: str
    at: str


def write_sample_report(gate_folder: Path, report: SampleReport) -> None:
    """Write the report, replacing the last one."""
    write_json(gate_folder / SAMPLE_FILE, asdict(report))


def read_sample_report(gate_folder: Path) -> SampleReport | None:
    """Return the last report, None where there is none.

    Raises:
        GateError: it is damaged.
    """
    return _read(gate_folder / SAMPLE_FILE, SAMPLE_CURE, _sample_from)


def read_approval(gate_folder: Path) -> Approval | None:
    """Return the approval, None where there is none.

    Raises:
        GateError: it is damaged.
    """
    return _read(gate_folder / APPROVAL_FILE, APPROVE_CURE, _approval_from)


def write_approval(gate_folder: Path, approval: Approval) -> None:
    """Write the approval, replacing the last one. Only ``gate.approve`` has reason to."""
    write_json(gate_folder / APPROVAL_FILE, asdict(approval))


def number_problem(approval: Approval) -> str | None:
    """Say which limit is no amount of money or tokens; None where both are, or are absent."""
    # NaN would pass every comparison that is meant to refuse.
    for limit in (approval.limit_euros, approval.limit_tokens):
        if limit is not None and not (_is_number(limit) and limit >= 0):
            return f"the limit {limit} is no amount."
    return None


def _read(path: Path, cure: str, build: Callable[[dict[str, Any]], T]) -> T | None:
    try:
        return build(read_json(path, f"{cure}."))
    except FileNotFoundError:
        return None
    except ArtefactsIncompatibleError as error:
        raise GateError(f"Nothing is sent: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise GateError(f"Nothing is sent: {path} does not hold what it must. {cure}.") from None


def _sample_from(value: dict[str, Any]) -> SampleReport:
    return SampleReport(**{**value, "passed": value["passed"] is True, "estimate": _estimate_from(value)})


def _approval_from(value: dict[str, Any]) -> Approval:
    approval = Approval(**{**value, "estimate": _estimate_from(value)})
    if number_problem(approval):
        raise ValueError
    if datetime.fromisoformat(approval.at).tzinfo is None:
        raise ValueError
    return approval


def _estimate_from(value: dict[str, Any]) -> Estimate:
    found = Estimate(**value["estimate"])
    for number in (found.phrases, found.cached, found.tokens, found.euros):
        if not ((number is None and number is found.euros) or _is_number(number)):
            raise ValueError
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
