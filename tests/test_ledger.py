"""The ledger: what is half-written counts nothing, what is damaged stops everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alpha_id_assets.ledger import Ledger, LedgerEntry, new_key, spent
from alpha_id_runtime.errors import GateError

if TYPE_CHECKING:
    from pathlib import Path


def book(gate: Path, tokens: int, euros: float | None = None) -> LedgerEntry:
    """Note a request as reserved."""
    entry = LedgerEntry(new_key(), "hub_bge-m3", "0", "approval", texts=1, tokens=tokens, euros=euros)
    return Ledger(gate).reserve(lambda: entry)


def test_requests_are_read_in_their_last_state(tmp_path: Path) -> None:
    """Reserved counts as estimated, settled as billed, released not at all; unknown euros follow a price."""
    ledger = Ledger(tmp_path)
    assert ledger.entries() == []
    lost, settled, released = (book(tmp_path, 100) for _ in range(3))
    ledger.settle(settled.key, 70, 0.5)
    ledger.release(released.key)
    assert [entry.state for entry in ledger.entries()] == ["reserved", "settled", "released"]
    account = spent(ledger.entries(), 10_000)
    assert (account.requests, account.tokens) == (2, 170)
    assert account.euros == pytest.approx(1.5)
    assert lost in ledger.entries()


def test_a_line_that_a_kill_left_half_written_counts_nothing(tmp_path: Path) -> None:
    """Its request never left; the next line is written in its place, whole."""
    book(tmp_path, 10)
    with Ledger(tmp_path).path.open("a") as out:
        out.write('{"key": "torn", "state": "reser')
    assert [entry.tokens for entry in Ledger(tmp_path).entries()] == [10]
    book(tmp_path, 20)
    assert [entry.tokens for entry in Ledger(tmp_path).entries()] == [10, 20]


def test_a_settlement_without_its_reservation_is_damage(tmp_path: Path) -> None:
    """A ledger with a line cut out cannot say what was spent, so nothing more may be."""
    entry = book(tmp_path, 10)
    Ledger(tmp_path).settle(entry.key, 10, 0.1)
    lines = Ledger(tmp_path).path.read_text().splitlines(keepends=True)
    Ledger(tmp_path).path.write_text("".join(lines[1:]))
    with pytest.raises(GateError, match="Line 1 of the ledger"):
        Ledger(tmp_path).entries()
