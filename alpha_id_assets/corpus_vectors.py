"""What stands between a corpus and its vectors: its texts, the configured provider, the gate bound to both.

Holds: ``CorpusTexts``, ``Target`` (which vectors the configuration wants, and who would be paid), the bound
gate, and which vector index may be published. Refuses: sending, training, indexing (``embedding``).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alpha_id_assets.gate import check_gate, check_sample
from alpha_id_assets.tables import read_note, read_table
from alpha_id_runtime.encoder import Encoder
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError
from alpha_id_runtime.provider import FREE, BuiltinProvider
from alpha_id_runtime.retrieval.dense import DenseIndex
from alpha_id_runtime.semantic import open_hub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from alpha_id_assets.gate import Estimate, GateDecision
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import BuildLayout, StorageLayout
    from alpha_id_runtime.provider import EmbeddingProvider, Pricing

TRAIN_CURE = "Train it with: dagster asset materialize --select encoder (or alpha-id index build --full)"


@dataclass(frozen=True)
class CorpusTexts:
    """The corpus as what is to be embedded.

    Attributes:
        hash: of the table ``corpus_phrases``.
        hashes: content hash of each row, in row order; rows with one text share one.
        codes: code of each row.
        by_hash: content hash to text.
    """

    hash: str
    hashes: list[str]
    codes: list[str]
    by_hash: dict[str, str]


def read_corpus_texts(storage: StorageLayout) -> CorpusTexts:
    """Return the texts of ``corpus_phrases``.

    Raises:
        ArtefactsMissingError: it has not been materialised.
    """
    digest = str(read_note(storage, storage.corpus_phrases)["hash"])
    rows = read_table(storage.corpus_phrases)
    hashes, texts = rows["hash"].to_list(), rows["text"].to_list()
    return CorpusTexts(digest, hashes, rows["icd_code"].to_list(), dict(zip(hashes, texts, strict=True)))


@dataclass(frozen=True)
class Target:
    """Which vectors are wanted: of this corpus, by this fingerprint, at this price."""

    corpus_hash: str
    fingerprint: str
    pricing: Pricing

    @property
    def costs_money(self) -> bool:
        """Whether a request may be billed."""
        return self.pricing.costs_money


def find_target(storage: StorageLayout, config: Config) -> Target:
    """Return which vectors the configuration wants for the present corpus. Reads small files, no token.

    Raises:
        ArtefactsMissingError: no corpus yet, or no encoder where the built-in one is configured.
        ArtefactsIncompatibleError: the encoder was trained on another corpus.
    """
    corpus_hash = str(read_note(storage, storage.corpus_phrases)["hash"])
    if config.provider == "hub":
        return Target(corpus_hash, config.hub.fingerprint, config.hub.pricing)
    note = read_note(storage, storage.encoder)
    if note["corpus_hash"] != corpus_hash:
        raise ArtefactsIncompatibleError(
            f"The encoder was trained on another corpus than corpus_phrases now holds. {TRAIN_CURE}"
        )
    return Target(corpus_hash, str(note["fingerprint"]), FREE)


@contextmanager
def open_provider(storage: StorageLayout, config: Config) -> Iterator[EmbeddingProvider]:
    """Yield the configured provider.

    Raises:
        ProviderError: the hub wants a token and there is none.
        ArtefactsMissingError: the encoder has not been trained.
    """
    if config.provider == "hub":
        with open_hub(config) as client:
            yield client
    else:
        yield BuiltinProvider(Encoder.load(storage.encoder))


def full_gate(storage: StorageLayout, target: Target) -> Callable[[Estimate], GateDecision]:
    """Return the gate for requests of a full run, bound to everything but what is to be spent."""

    def check(to_spend: Estimate) -> GateDecision:
        return check_gate(
            storage.gate,
            fingerprint=target.fingerprint,
            corpus_hash=target.corpus_hash,
            costs_money=target.costs_money,
            price=target.pricing.price_per_million_tokens,
            to_spend=to_spend,
        )

    return check


def sample_gate(storage: StorageLayout, target: Target) -> Callable[[Estimate], GateDecision]:
    """Return the gate for requests of a sample, bound likewise."""

    def check(to_spend: Estimate) -> GateDecision:
        return check_sample(
            storage.gate,
            fingerprint=target.fingerprint,
            costs_money=target.costs_money,
            to_spend=to_spend,
        )

    return check


@dataclass(frozen=True)
class VectorParts:
    """What a build takes of the vectors: their fingerprint, and name in the build to folder."""

    fingerprint: str
    rows: int
    parts: dict[str, Path]

    def verify(self, build: BuildLayout) -> None:
        """Open the vector index (and the encoder) of a build as a reader would.

        Raises:
            ArtefactsIncompatibleError: they are not what this says.
            ArtefactsMissingError: a part is not there.
        """
        index = DenseIndex.open(build.lance)
        index.verify()
        note = index.note
        if (note.fingerprint, note.rows) != (self.fingerprint, self.rows):
            raise ArtefactsIncompatibleError(
                f"The vector index holds {note.rows} vectors of {note.fingerprint}, wanted are {self.rows} "
                f"of {self.fingerprint}; nothing is published."
            )
        if "encoder" in self.parts and Encoder.load(build.encoder).fingerprint != self.fingerprint:
            raise ArtefactsIncompatibleError(
                "The encoder is another one than the vectors are of; nothing is published."
            )


def find_vector_parts(storage: StorageLayout, config: Config) -> VectorParts | None:
    """Return what a build of the present corpus can take of the vectors; None where that is nothing.

    None (no vectors, of another corpus or provider, damaged) is no fault: such a build is published
    lexical-only and gains vectors by a later publish.
    """
    try:
        target = find_target(storage, config)
        note = read_note(storage, storage.lance)
        if (note["corpus_hash"], note["fingerprint"]) != (target.corpus_hash, target.fingerprint):
            return None
        index = DenseIndex.open(storage.lance)
        index.verify()
    except AlphaIdError:
        return None
    parts = {"lance": storage.lance}
    if config.provider == "builtin":
        parts["encoder"] = storage.encoder
    return VectorParts(target.fingerprint, index.note.rows, parts)
