"""The gate: no request that may cost money leaves without a valid approval, and no spend is forgotten."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from embed_worker import CORPUS_HASH, embed_all, settings_of
from hub_server import HubServer

from alpha_id_assets.gate import (
    Estimate,
    GateDecision,
    LedgerWatch,
    SampleReport,
    approve,
    check_gate,
    check_sample,
    estimate,
    read_approval,
    write_sample_report,
)
from alpha_id_assets.ledger import Ledger, LedgerEntry, spent
from alpha_id_runtime.errors import GateError
from alpha_id_runtime.provider import FREE, Pricing
from alpha_id_runtime.text import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL, CORPUS = "hub_bge-m3", "corpus-1"
PRICE = 10.0  # euros a million tokens
RUN = Estimate(phrases=1000, cached=0, tokens=10_000, euros=0.1)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A gate folder with a sample report of the run."""
    write_sample_report(tmp_path, SampleReport(MODEL, CORPUS, passed=True, estimate=RUN, at=NOW.isoformat()))
    return tmp_path


def yes(gate: Path, **options: Any) -> None:
    """Approve the run with a limit of twice its price, or as ``options`` say."""
    defaults = {"confirm": True, "fingerprint": MODEL, "corpus_hash": CORPUS, "by": "K. Meier", "now": NOW}
    if "limit_tokens" not in options:
        defaults["limit_euros"] = 0.2
    approve(gate, **{**defaults, **options})


def ask(gate: Path, **options: Any) -> GateDecision:
    """Ask for the whole run, or as ``options`` say."""
    defaults = {
        "fingerprint": MODEL,
        "corpus_hash": CORPUS,
        "costs_money": True,
        "price": PRICE,
        "to_spend": RUN,
        "now": NOW + timedelta(days=1),
    }
    return check_gate(gate, **{**defaults, **options})


def book(gate: Path, tokens: int, partition: str = "0", **options: Any) -> LedgerEntry:
    """Note a request under the present approval as reserved."""
    approval = read_approval(gate)
    entry = LedgerEntry(
        key=f"key-{len(Ledger(gate).entries())}",
        fingerprint=MODEL,
        partition=partition,
        approval=approval.id if approval else None,
        texts=1,
        tokens=tokens,
        euros=tokens * PRICE / 1e6,
    )
    return Ledger(gate).reserve(lambda: replace(entry, **options))


def test_a_valid_approval_lets_the_run_pass(gate: Path) -> None:
    """With a sample, a yes and a limit that suffices, requests may leave under that approval."""
    yes(gate)
    decision = ask(gate)
    assert decision.allowed
    approval = read_approval(gate)
    assert approval is not None
    assert decision.approval == approval.id
    assert "K. Meier" in decision.reason


def test_what_costs_nothing_needs_no_approval(tmp_path: Path) -> None:
    """The built-in encoder passes an empty gate folder; so does a run with nothing to send."""
    assert ask(tmp_path, costs_money=False, price=None).allowed
    assert ask(tmp_path, to_spend=Estimate(1000, 1000, 0, 0.0)).allowed
    assert not list(tmp_path.iterdir())


def rewrite(name: str, **values: Any) -> Callable[[Path], None]:
    """Return a change of fields in a file of the gate folder."""

    def change(gate: Path) -> None:
        file = gate / name
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    return change


def write(name: str, text: str) -> Callable[[Path], None]:
    """Return a replacement of a file of the gate folder."""
    return lambda gate: (gate / name).write_text(text) and None


REFUSALS: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = {
    "no sample": (lambda gate: (gate / "sample.json").unlink(), {}, "no sample.*embeddings_sample"),
    "failed sample": (rewrite("sample.json", passed=False), {}, "last sample failed.*embeddings_sample"),
    "passed by word": (rewrite("sample.json", passed="yes"), {}, "last sample failed"),
    "sample damaged": (write("sample.json", "{"), {}, "sample.json is damaged.*embeddings_sample"),
    "sample of another model": (lambda _: None, {"fingerprint": "other"}, "sample was run with hub_bge-m3"),
    "sample of another corpus": (lambda _: None, {"corpus_hash": "corpus-2"}, "corpus has changed"),
    "absent": (lambda gate: (gate / "approval.json").unlink(), {}, "no approval.*confirm"),
    "damaged": (write("approval.json", '{"id": 1}'), {}, "approval.json does not hold.*confirm"),
    "a list": (write("approval.json", "[]"), {}, "approval.json does not hold"),
    "not confirmed": (rewrite("approval.json", confirm=False), {}, "not confirmed.*confirm: true"),
    "confirmed by word": (rewrite("approval.json", confirm="true"), {}, "not confirmed"),
    "another model": (rewrite("approval.json", fingerprint="other"), {}, "approval is for other"),
    "another corpus": (
        rewrite("approval.json", corpus_hash="corpus-0"),
        {},
        "corpus has changed since the app",
    ),
    "old": (lambda _: None, {"now": NOW + timedelta(days=31)}, "31 days old; it holds for 30"),
    "old by configuration": (lambda _: None, {"max_age_days": 0.5}, "holds for 0.5 days"),
    "from the future": (lambda _: None, {"now": NOW - timedelta(days=2)}, "in the future"),
    "no date": (rewrite("approval.json", at="yesterday"), {}, "does not hold"),
    "too small": (
        rewrite("approval.json", limit_euros=0.09),
        {},
        "0.0900 euros is below the estimate of 0.1000",
    ),
    "limit of nothing": (rewrite("approval.json", limit_euros=None), {}, "limit in euros is needed"),
    "limit undefined": (rewrite("approval.json", limit_euros=float("nan")), {}, "does not hold"),
    "limit negative": (rewrite("approval.json", limit_euros=-1), {}, "does not hold"),
    "price has risen": (lambda _: None, {"price": 30.0}, "below the estimate of 0.3000"),
    "price is gone": (lambda _: None, {"price": None}, "limit in tokens is needed"),
    "more than estimated": (lambda _: None, {"to_spend": replace(RUN, tokens=10_001)}, "more is to be sent"),
    "ledger damaged": (write("ledger.jsonl", "{}\n"), {}, "Line 1 of the ledger.*damaged"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_every_doubt_is_a_refusal_with_its_cure(gate: Path, name: str) -> None:
    """Whatever is absent, damaged, old, too small or about something else refuses, and says what to do."""
    yes(gate)
    change, options, reason = REFUSALS[name]
    change(gate)
    decision = ask(gate, **options)
    assert not decision.allowed
    with pytest.raises(AssertionError, match=f"(?s){reason}"):
        raise AssertionError(decision.reason)


def test_the_limit_is_held_against_all_partitions_together(gate: Path) -> None:
    """Spend of every partition under the approval counts, settled or not; another approval's does not."""
    yes(gate)
    part = Estimate(phrases=100, cached=0, tokens=5_000, euros=0.05)
    book(gate, 100_000, approval="an earlier one")
    settled = book(gate, 1, partition="1")
    Ledger(gate).settle(settled.key, 9_000, 0.09)
    book(gate, 6_000, partition="2")
    assert ask(gate, to_spend=part).allowed
    book(gate, 1, partition="3")
    refused = ask(gate, to_spend=part)
    assert not refused.allowed
    assert "0.1500 of 0.2000 approved euros are spent" in refused.reason


def test_a_new_approval_opens_a_new_account(gate: Path) -> None:
    """What was spent under the last approval does not weigh on the next."""
    yes(gate)
    book(gate, 20_000)
    assert not ask(gate).allowed
    yes(gate)
    assert ask(gate).allowed


def test_released_requests_weigh_nothing(gate: Path) -> None:
    """A request that surely was not billed is taken off the account."""
    yes(gate)
    entry = book(gate, 20_000)
    Ledger(gate).release(entry.key)
    assert ask(gate).allowed


def test_an_unknown_price_needs_a_limit_in_tokens(gate: Path) -> None:
    """Where no price is configured, euros cannot be held: the limit is one of tokens, and it is kept."""
    report = SampleReport(MODEL, CORPUS, passed=True, estimate=replace(RUN, euros=None), at="")
    write_sample_report(gate, report)
    with pytest.raises(GateError, match="limit in tokens is needed"):
        yes(gate, limit_euros=1000.0)
    with pytest.raises(GateError, match="below the estimate of 10000"):
        yes(gate, limit_tokens=9_999)
    yes(gate, limit_tokens=12_000)
    order = replace(RUN, euros=None)
    assert ask(gate, price=None, to_spend=order).allowed
    book(gate, 2_001, euros=None)
    refused = ask(gate, price=None, to_spend=order)
    assert not refused.allowed
    assert "2001 of 12000 approved tokens" in refused.reason


def test_without_confirm_nothing_is_approved(gate: Path) -> None:
    """It succeeds, writes nothing, and says what it would be a yes to."""
    approval, message = approve(
        gate, confirm=False, fingerprint=MODEL, corpus_hash=CORPUS, by="K. Meier", limit_euros=1
    )
    assert approval is None
    assert "1000 of 1000 phrases" in message
    assert "0.1000 euros" in message
    assert [file.name for file in gate.iterdir()] == ["sample.json"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"limit_euros": 0.05}, "below the estimate"),
        ({"limit_euros": None}, "limit in euros is needed"),
        ({"limit_euros": float("nan")}, "no amount"),
        ({"limit_euros": float("inf")}, "no amount"),
        ({"limit_euros": -1}, "no amount"),
        ({"fingerprint": "other"}, "sample was run with"),
        ({"corpus_hash": "corpus-2"}, "corpus has changed"),
    ],
)
def test_a_yes_that_cannot_hold_is_not_written(gate: Path, options: dict[str, Any], reason: str) -> None:
    """An approval that the gate would refuse is refused when it is given; an earlier one stays."""
    yes(gate)
    before = (gate / "approval.json").read_bytes()
    with pytest.raises(GateError, match=reason):
        yes(gate, **options)
    assert (gate / "approval.json").read_bytes() == before


def test_the_estimate_counts_what_is_not_cached() -> None:
    """Tokens are characters and prefix over the ratio, rounded up a text, plus two; euros follow."""
    texts = {content_hash(text): text for text in ("abcdef", "abcdefg", "xyz")}
    missing = [content_hash("abcdef"), content_hash("abcdefg")]
    pricing = Pricing(price_per_million_tokens=2.0, chars_per_token=3.0, prefix_length=3)
    assert estimate(texts, missing, pricing) == Estimate(phrases=3, cached=1, tokens=11, euros=22e-6)
    assert estimate(texts, missing, Pricing(None)).euros is None
    assert estimate(texts, missing, FREE).euros == 0
    assert estimate(texts, [], pricing) == Estimate(3, 3, 0, 0.0)


def test_a_reservation_outlives_a_kill(gate: Path) -> None:
    """A process killed right after it reserved leaves the spend in the ledger."""
    yes(gate)
    code = (
        "import os, signal, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "import test_gate; test_gate.book(Path(sys.argv[1]), 20_000); os.kill(os.getpid(), signal.SIGKILL)"
    )
    here = os.path.dirname(__file__)  # noqa: PTH120 -- a string for the command line
    done = subprocess.run([sys.executable, "-c", code, str(gate), here], check=False)
    assert done.returncode == -signal.SIGKILL
    assert spent(Ledger(gate).entries(), PRICE).tokens == 20_000
    assert not ask(gate).allowed


def test_the_last_of_a_limit_goes_to_one_only(gate: Path) -> None:
    """Many at once ask for more than is left: exactly as many pass as the limit holds."""
    yes(gate, limit_euros=0.1)
    texts = ["x" * 2994]  # a thousand tokens: a tenth of the limit
    passed: list[str] = []
    refused: list[str] = []

    def work(partition: str) -> None:
        watch = LedgerWatch(
            Ledger(gate),
            lambda order: ask(gate, to_spend=order),
            texts=texts,
            pricing=Pricing(PRICE),
            fingerprint=MODEL,
            partition=partition,
        )
        try:
            passed.append(watch.reserve(slice(0, 1)))
        except GateError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work, args=(digit,)) for digit in "0123456789abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(passed), len(refused)) == (10, 6)
    assert spent(Ledger(gate).entries(), PRICE).tokens == 10_000


def test_samples_are_counted_together(gate: Path) -> None:
    """Samples need no approval, up to a thousand texts of one model, all samples together."""
    fifty = Estimate(50, 0, 500, 0.005)

    def may(fingerprint: str = MODEL, *, costs_money: bool = True) -> bool:
        return check_sample(gate, fingerprint=fingerprint, costs_money=costs_money, to_spend=fifty).allowed

    assert may()
    book(gate, 9_000, texts=951)
    assert not may()
    assert may("another model")
    assert may(costs_money=False)


def test_no_request_leaves_without_a_valid_approval(tmp_path: Path) -> None:
    """Absent, too small, stale and foreign approvals: the run ends in words and the hub has seen nothing."""
    texts = {content_hash(f"Befund {number}"): f"Befund {number}" for number in range(200)}
    gate = tmp_path / "gate"
    with HubServer(dimension=16) as hub:
        settings = settings_of(hub.url)
        order = estimate(texts, list(texts), settings.pricing)
        write_sample_report(
            gate, SampleReport(settings.fingerprint, CORPUS_HASH, passed=True, estimate=order, at="")
        )

        def refused() -> str:
            with pytest.raises(GateError) as caught:
                embed_all(tmp_path, texts, hub.url)
            assert hub.count == 0
            return str(caught.value)

        def give(days_ago: float = 0) -> None:
            approve(
                gate,
                confirm=True,
                fingerprint=settings.fingerprint,
                corpus_hash=CORPUS_HASH,
                by="test",
                limit_euros=1,
                now=datetime.now(UTC) - timedelta(days=days_ago),
            )

        assert "no approval" in refused()
        give(days_ago=40)
        assert "40 days old" in refused()
        give()
        rewrite("approval.json", limit_euros=1e-9)(gate)
        assert "below the estimate" in refused()
        give()
        rewrite("approval.json", fingerprint="other")(gate)
        assert "approval is for other" in refused()
        give()
        embed_all(tmp_path, texts, hub.url)
        assert set(hub.texts.values()) == {1}


def test_a_limit_reached_midway_stops_before_the_next_request(tmp_path: Path) -> None:
    """Where more is billed than estimated, the run ends at the limit, and what was bought is kept."""
    texts = {content_hash(f"a {n}"): f"a {n}" for n in range(200)}
    gate = tmp_path / "gate"
    with HubServer(dimension=16) as hub:
        settings = settings_of(hub.url)
        # The estimate is too low by far, as with a wrong ratio of characters to tokens.
        low = Estimate(200, 0, 500, settings.pricing.euros(500))
        write_sample_report(
            gate, SampleReport(settings.fingerprint, CORPUS_HASH, passed=True, estimate=low, at="")
        )
        limit = settings.pricing.euros(500)
        approve(
            gate,
            confirm=True,
            fingerprint=settings.fingerprint,
            corpus_hash=CORPUS_HASH,
            by="test",
            limit_euros=limit,
        )
        with pytest.raises(GateError, match="approved euros are spent"):
            embed_all(tmp_path, texts, hub.url)
        # Two requests in flight, five texts each, may each be billed one token a text more than reserved.
        assert 0 < hub.tokens <= 510
        account = spent(Ledger(gate).entries(), settings.pricing.price_per_million_tokens)
    assert account.tokens == hub.tokens
