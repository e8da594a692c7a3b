"""What turns texts into vectors: the protocol, what a text costs, and the built-in encoder behind it.

Holds: ``EmbeddingProvider``, ``Pricing``, ``SpendWatch`` (who is told before money leaves) and
``BuiltinProvider``. Refuses: HTTP (see ``hub.py``), files, and deciding whether money may be spent (gate).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TOKENS_PER_TEXT = 2
"""Begin and end marks that a model adds to each text and that are billed with it."""

BUILTIN_BATCH = 2048


@dataclass(frozen=True)
class Pricing:
    """What texts cost, estimated before they are sent.

    ``price_per_million_tokens`` is in euros; None means unknown, which counts as costing; 0 is free.
    ``prefix_length`` is the number of characters put before each text.
    """

    price_per_million_tokens: float | None = None
    chars_per_token: float = 3.0
    prefix_length: int = 0

    @property
    def costs_money(self) -> bool:
        """False only where the price is known to be nothing."""
        return self.price_per_million_tokens is None or self.price_per_million_tokens > 0

    def tokens(self, texts: Iterable[str]) -> int:
        """Return the estimated number of tokens of ``texts``, each rounded up on its own."""
        return sum(
            math.ceil((len(text) + self.prefix_length) / self.chars_per_token) + TOKENS_PER_TEXT
            for text in texts
        )

    def euros(self, tokens: int) -> float | None:
        """Return what ``tokens`` cost in euros; None where the price is unknown."""
        if self.price_per_million_tokens is None:
            return None
        return tokens * self.price_per_million_tokens / 1_000_000


FREE = Pricing(price_per_million_tokens=0.0)


class SpendWatch(Protocol):
    """Is told of each request before it leaves and after it is known what became of it.

    Called from several threads at once, once for each attempt: a repeated request may be billed again.
    """

    def reserve(self, batch: slice) -> str:
        """Note durably that ``batch`` is about to be sent; return a key for it. Raising keeps it unsent."""

    def settle(self, key: str, tokens: int | None) -> None:
        """Note that the request was answered; ``tokens`` as billed, None where the answer does not say."""

    def release(self, key: str) -> None:
        """Note that the request certainly was not billed: never connected, or refused by its status."""


class EmbeddingProvider(Protocol):
    """Texts to vectors. Rows have unit length, or are zero where a text holds nothing the model knows."""

    @property
    def fingerprint(self) -> str:
        """Names provider, model, version, dimension and prefix; vectors of two fingerprints never mix."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def costs_money(self) -> bool:
        """Whether a request may be billed, so that the gate must be asked."""

    @property
    def pricing(self) -> Pricing:
        """What texts cost."""

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Vectors:
        """Return (len(texts), dimension), float32.

        ``deadline`` is a reading of ``time.monotonic()`` by which an answer or a ``ProviderError`` is due;
        None waits as long as the provider's own limits say.
        """

    def embed_batches(
        self, texts: Sequence[str], *, watch: SpendWatch | None = None
    ) -> Iterator[tuple[slice, Vectors]]:
        """Yield (place in ``texts``, vectors) as batches are answered, in any order.

        No further batch is sent before the caller comes back for the next one. Where one batch fails, those
        in flight are still yielded; then the error is raised.
        """


class TextEncoder(Protocol):
    """What the adapter needs of ``alpha_id_runtime.encoder.Encoder``."""

    @property
    def fingerprint(self) -> str:
        """Names the trained weights."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (len(texts), dimension), float32, unit length."""


@dataclass(frozen=True)
class BuiltinProvider:
    """The built-in encoder as a provider: offline, free, too fast to need a deadline."""

    encoder: TextEncoder
    pricing: Pricing = FREE

    @property
    def fingerprint(self) -> str:
        """The encoder's own fingerprint."""
        return self.encoder.fingerprint

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.encoder.dimension

    @property
    def costs_money(self) -> bool:
        """Never."""
        return False

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Vectors:
        """Return (len(texts), dimension), float32; ``deadline`` is met in any case that matters."""
        del deadline
        return self.encoder.encode(texts)

    def embed_batches(
        self, texts: Sequence[str], *, watch: SpendWatch | None = None
    ) -> Iterator[tuple[slice, Vectors]]:
        """Yield the vectors of 2,048 texts at a time, in order; ``watch`` has nothing to see."""
        del watch
        for start in range(0, len(texts), BUILTIN_BATCH):
            batch = slice(start, min(start + BUILTIN_BATCH, len(texts)))
            yield batch, self.encoder.encode(texts[batch])
