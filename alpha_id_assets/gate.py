"""The gate: whether a request that may cost money may leave. Pure over the files in ``storage/gate/``.

Holds: the sample report, the estimate, a person's approval, ``check_gate`` and the watch that asks it before
every single request. Refuses: sending anything, and any knowledge of Dagster or of the cache. Every doubt
(a file that is absent, damaged, old, or about something else) is a refusal with its cure.

A price that is not configured counts as one that costs: then an approval must hold a limit in tokens, as a
limit in euros could not be held. The limit is held against all requests made under one approval, whatever
their partition; a new approval starts a new account.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from alpha_id_assets.gate_files import (
    APPROVE_CURE,
    SAMPLE_CURE,
    Approval,
    Estimate,
    SampleReport,
    number_problem,
    read_approval,
    read_sample_report,
    write_approval,
    write_sample_report,
)
from alpha_id_assets.ledger import Ledger, LedgerEntry, new_key, spent
from alpha_id_runtime.errors import GateError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from alpha_id_runtime.provider import Pricing

__all__ = [
    "Approval",
    "Estimate",
    "GateDecision",
    "LedgerWatch",
    "SampleReport",
    "approve",
    "check_gate",
    "check_sample",
    "estimate",
    "read_approval",
    "read_sample_report",
    "write_sample_report",
]

APPROVAL_DAYS = 30
"""An approval older than this is stale."""
SAMPLE_TEXTS = 1_000
"""Texts that samples may send of one fingerprint, all samples together, without an approval."""

_ROUNDING = 1e-9  # euros; the last digits of a sum of floats must not stop a run


@dataclass(frozen=True)
class GateDecision:
    """Whether requests may leave, why, and under which approval (None where none is needed)."""

    allowed: bool
    reason: str
    approval: str | None = None


def estimate(texts_by_hash: Mapping[str, str], missing: Collection[str], pricing: Pricing) -> Estimate:
    """Return what sending the ``missing`` ones of ``texts_by_hash`` (content hash to text) would take."""
    tokens = pricing.tokens(texts_by_hash[key] for key in missing)
    return Estimate(len(texts_by_hash), len(texts_by_hash) - len(missing), tokens, pricing.euros(tokens))


def approve(
    gate_folder: Path,
    *,
    confirm: bool,
    fingerprint: str,
    corpus_hash: str,
    by: str,
    limit_euros: float | None = None,
    limit_tokens: int | None = None,
    now: datetime | None = None,
) -> tuple[Approval | None, str]:
    """Write an approval of the run that the sample report estimates; return it and what happened in words.

    Without ``confirm`` nothing is written and the approval returned is None.

    Args:
        gate_folder: ``storage/gate``.
        confirm: the yes.
        fingerprint: of the provider approved; the sample report must be of the same.
        corpus_hash: of the corpus approved; likewise.
        by: who says so.
        limit_euros: most that may be spent, where the price is known.
        limit_tokens: most that may be sent, where it is not.
        now: stand-in for the present time.

    Raises:
        GateError: no valid sample report, or no limit that can be held or reaches the estimate.
    """
    report = read_sample_report(gate_folder)
    problem = _sample_problem(report, fingerprint, corpus_hash)
    if problem or report is None:
        raise GateError(f"Nothing was approved: {problem} {SAMPLE_CURE}.")
    asked = _in_words(report.estimate)
    if not confirm:
        return None, f"Nothing was approved and nothing written, as confirm is not true. To approve: {asked}."
    approval = Approval(
        id=new_key(),
        confirm=True,
        limit_euros=limit_euros,
        limit_tokens=limit_tokens,
        fingerprint=fingerprint,
        corpus_hash=corpus_hash,
        estimate=report.estimate,
        by=by,
        at=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
    )
    problem = number_problem(approval) or _limit_problem(approval, report.estimate.euros)
    if problem:
        raise GateError(f"Nothing was approved: {problem} Estimated: {asked}.")
    write_approval(gate_folder, approval)
    return approval, f"Approved by {by}: {asked}."


def check_gate(
    gate_folder: Path,
    *,
    fingerprint: str,
    corpus_hash: str,
    costs_money: bool,
    price: float | None,
    to_spend: Estimate,
    max_age_days: float = APPROVAL_DAYS,
    now: datetime | None = None,
) -> GateDecision:
    """Return whether what ``to_spend`` says may be sent now. Reads files, writes and sends nothing.

    Args:
        gate_folder: ``storage/gate``.
        fingerprint: of the provider that would be sent to.
        corpus_hash: of the corpus that would be embedded.
        costs_money: of the provider; False lets everything pass.
        price: euros a million tokens as configured now, None where unknown.
        to_spend: what is about to be sent: a run, a partition or a single request.
        max_age_days: an approval older than this is stale.
        now: stand-in for the present time.
    """
    if not costs_money or to_spend.missing == 0:
        reason = "Nothing is to be sent." if costs_money else "This provider costs nothing."
        return GateDecision(allowed=True, reason=reason)
    try:
        problem = _sample_problem(read_sample_report(gate_folder), fingerprint, corpus_hash)
        approval = read_approval(gate_folder)
        if problem:
            return _refused(problem, SAMPLE_CURE)
        if approval is None:
            return _refused(f"there is no approval; to be sent: {_in_words(to_spend)}.", APPROVE_CURE)
        problem = (
            _approval_problem(approval, fingerprint, corpus_hash, now or datetime.now(UTC), max_age_days)
            or _limit_problem(approval, _euros(approval.estimate.tokens, price))
            or _growth_problem(approval, to_spend)
            or _account_problem(approval, Ledger(gate_folder).entries(), to_spend, price)
        )
    except GateError as error:
        return GateDecision(allowed=False, reason=str(error))
    if problem:
        return _refused(problem, APPROVE_CURE)
    return GateDecision(allowed=True, reason=f"Approved by {approval.by}.", approval=approval.id)


def check_sample(
    gate_folder: Path, *, fingerprint: str, costs_money: bool, to_spend: Estimate
) -> GateDecision:
    """Return whether a sample may be sent without an approval: at most 1,000 texts of one fingerprint ever.

    Counted over all samples in the ledger, so that no series of samples passes for a full run.
    """
    if not costs_money:
        return GateDecision(allowed=True, reason="This provider costs nothing.")
    try:
        entries = Ledger(gate_folder).entries()
    except GateError as error:
        return GateDecision(allowed=False, reason=str(error))
    samples = [entry for entry in entries if entry.approval is None and entry.fingerprint == fingerprint]
    used = spent(samples, None).texts
    if used + to_spend.missing > SAMPLE_TEXTS:
        return _refused(
            f"samples may send {SAMPLE_TEXTS} texts without an approval; {used} were sent, "
            f"{to_spend.missing} more are asked for.",
            "Take a smaller sample",
        )
    return GateDecision(allowed=True, reason="A sample needs no approval.")


class LedgerWatch:
    """A ``SpendWatch``: asks the gate and writes the ledger before each request, for one partition.

    Args:
        ledger: where requests are noted.
        gate_check: the decision for what is about to be sent, as by ``check_gate`` or ``check_sample``.
        texts: the texts that batches are slices of.
        pricing, fingerprint: of the provider.
        partition: hex digit, or what else names the part.
    """

    def __init__(
        self,
        ledger: Ledger,
        gate_check: Callable[[Estimate], GateDecision],
        *,
        texts: Sequence[str],
        pricing: Pricing,
        fingerprint: str,
        partition: str,
    ) -> None:
        """Start with nothing spent."""
        self.tokens = 0
        """Tokens of the requests answered so far."""
        self._ledger, self._gate_check, self._texts, self._pricing = ledger, gate_check, texts, pricing
        self._fingerprint, self._partition = fingerprint, partition
        self._reserved: dict[str, LedgerEntry] = {}
        self._lock = threading.Lock()

    def reserve(self, batch: slice) -> str:
        """Note ``batch`` in the ledger, if the gate allows it.

        Raises:
            GateError: it does not; the batch must stay.
        """
        texts = self._texts[batch]
        tokens = self._pricing.tokens(texts)
        order = Estimate(len(texts), 0, tokens, self._pricing.euros(tokens))

        def make() -> LedgerEntry:
            decision = self._gate_check(order)
            if not decision.allowed:
                raise GateError(decision.reason)
            return LedgerEntry(
                key=new_key(),
                fingerprint=self._fingerprint,
                partition=self._partition,
                approval=decision.approval,
                texts=order.phrases,
                tokens=order.tokens,
                euros=order.euros,
            )

        entry = self._ledger.reserve(make)
        with self._lock:
            self._reserved[entry.key] = entry
        return entry.key

    def settle(self, key: str, tokens: int | None) -> None:
        """Note the tokens billed; the estimate stands where the answer does not say."""
        with self._lock:
            entry = self._reserved.pop(key)
            billed = entry.tokens if tokens is None else tokens
            self.tokens += billed
        self._ledger.settle(key, billed, self._pricing.euros(billed))

    def release(self, key: str) -> None:
        """Note that the request was not billed."""
        with self._lock:
            self._reserved.pop(key, None)
        self._ledger.release(key)


def _refused(problem: str, cure: str) -> GateDecision:
    return GateDecision(allowed=False, reason=f"Nothing is sent: {problem} {cure}.")


def _sample_problem(report: SampleReport | None, fingerprint: str, corpus_hash: str) -> str | None:
    if report is None:
        return "no sample has been run, so what the full run takes is not known."
    if report.fingerprint != fingerprint:
        return f"the sample was run with {report.fingerprint}, configured is {fingerprint}."
    if report.corpus_hash != corpus_hash:
        return "the corpus has changed since the sample was run."
    if not report.passed:
        return "the last sample failed."
    return None


def _approval_problem(
    approval: Approval, fingerprint: str, corpus_hash: str, now: datetime, max_age_days: float
) -> str | None:
    if approval.confirm is not True:
        return "the approval is not confirmed."
    if approval.fingerprint != fingerprint:
        return f"the approval is for {approval.fingerprint}, configured is {fingerprint}."
    if approval.corpus_hash != corpus_hash:
        return "the corpus has changed since the approval."
    age = now - datetime.fromisoformat(approval.at)
    if age > timedelta(days=max_age_days):
        return f"the approval is {age.days} days old; it holds for {max_age_days:g} days."
    if age < timedelta(days=-1):
        return "the approval is dated in the future."
    return None


def _euros(tokens: int, price: float | None) -> float | None:
    return None if price is None else tokens * price / 1_000_000


def _limit_problem(approval: Approval, expected: float | None) -> str | None:
    """Say why the limit cannot be held, or is below the estimate that it was set for (``expected`` euros)."""
    if expected is None:
        if approval.limit_tokens is None:
            return "the price is not known, so a limit in tokens is needed (limit_tokens)."
        if approval.limit_tokens < approval.estimate.tokens:
            return (
                f"the limit of {approval.limit_tokens} tokens is below the estimate of "
                f"{approval.estimate.tokens}."
            )
        return None
    if approval.limit_euros is None:
        return "a limit in euros is needed (limit_euros)."
    if approval.limit_euros + _ROUNDING < expected:
        return f"the limit of {approval.limit_euros:.4f} euros is below the estimate of {expected:.4f}."
    return None


def _growth_problem(approval: Approval, to_spend: Estimate) -> str | None:
    if to_spend.tokens > approval.estimate.tokens:
        return (
            f"more is to be sent ({to_spend.tokens} tokens) than was estimated when it was approved "
            f"({approval.estimate.tokens})."
        )
    return None


def _account_problem(
    approval: Approval, entries: list[LedgerEntry], to_spend: Estimate, price: float | None
) -> str | None:
    account = spent((entry for entry in entries if entry.approval == approval.id), price)
    if approval.limit_tokens is not None and account.tokens + to_spend.tokens > approval.limit_tokens:
        return (
            f"{account.tokens} of {approval.limit_tokens} approved tokens are spent, {to_spend.tokens} more "
            "are needed."
        )
    if price is None or approval.limit_euros is None:
        return None
    euros = to_spend.tokens * price / 1_000_000
    if account.euros + euros > approval.limit_euros + _ROUNDING:
        return (
            f"{account.euros:.4f} of {approval.limit_euros:.4f} approved euros are spent, {euros:.4f} more "
            "are needed."
        )
    return None


def _in_words(what: Estimate) -> str:
    price = "at an unknown price" if what.euros is None else f"about {what.euros:.4f} euros"
    return f"{what.missing} of {what.phrases} phrases, about {what.tokens} tokens, {price}"
