"""Embeds a corpus from a test hub through the gate into a cache, as a process of its own that can be killed.

Usage: ``embed_worker.py STORAGE CORPUS.json BASE_URL``; the corpus maps content hashes to texts.
``embed_all`` is the same within a test.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hub_server import TOKEN

from alpha_id_assets.gate import check_gate
from alpha_id_assets.ledger import Ledger
from alpha_id_assets.vectors import PARTITIONS, EmbedReport, VectorCache, embed_missing
from alpha_id_runtime.hub import HubClient, HubSettings
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.text import content_hash

if TYPE_CHECKING:
    from collections.abc import Mapping

CORPUS_HASH = "corpus-of-the-test"
PRICE = 0.5


def settings_of(url: str) -> HubSettings:
    """Return settings with small batches, two in flight, and a price."""
    return HubSettings(
        base_url=url,
        provider="test-hub",
        dimension=16,
        batch_size=5,
        concurrency=2,
        price_per_million_tokens=PRICE,
    )


def corpus(size: int) -> dict[str, str]:
    """Return distinct texts by content hash."""
    texts = [f"Befund der Kategorie {number % 7}, Ausprägung {number}" for number in range(size)]
    return {content_hash(text): text for text in texts}


def embed_all(storage: Path, texts_by_hash: Mapping[str, str], url: str) -> list[EmbedReport]:
    """Embed all partitions, one after the other, as the asset does."""
    layout = StorageLayout(storage)
    with HubClient(settings_of(url), TOKEN) as client:
        gate_check = partial(
            check_gate,
            layout.gate,
            fingerprint=client.fingerprint,
            corpus_hash=CORPUS_HASH,
            costs_money=client.costs_money,
            price=PRICE,
        )
        return [
            embed_missing(
                VectorCache(layout.vectors),
                client,
                texts_by_hash,
                partition,
                gate_check=lambda order: gate_check(to_spend=order),
                ledger=Ledger(layout.gate),
            )
            for partition in PARTITIONS
        ]


if __name__ == "__main__":
    embed_all(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), sys.argv[3])
