"""The semantic half of mode A: phrases to vectors to candidate rows, for all phrases of a request at once.

Holds: the provider that the configuration names, joined with the vector index it must fit. Refuses: deciding
what to do when it fails; it raises, the pipeline degrades.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from alpha_id_runtime.encoder import Encoder
from alpha_id_runtime.errors import ArtefactsIncompatibleError
from alpha_id_runtime.provider import BuiltinProvider
from alpha_id_runtime.retrieval.dense import CURE, DenseIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.hub import HubClient
    from alpha_id_runtime.provider import EmbeddingProvider
    from alpha_id_runtime.retrieval.dense import Allow, Rows, Vectors


@dataclass(frozen=True)
class Neighbours:
    """What lies near one phrase: its vector, the nearest rows, its cosine with each code's prototype.

    ``prototypes`` are rough, good to find the nearest by.
    """

    vector: Vectors
    rows: Rows
    prototypes: npt.NDArray[np.float32]


class Semantic:
    """An embedding provider and the vector index made by the very same one."""

    def __init__(self, provider: EmbeddingProvider, index: DenseIndex) -> None:
        """Join the two.

        Raises:
            ArtefactsIncompatibleError: the index was made by another provider.
        """
        if provider.fingerprint != index.note.fingerprint or provider.dimension != index.note.dimension:
            raise ArtefactsIncompatibleError(
                f"The published vectors are of {index.note.fingerprint} ({index.note.dimension} dimensions), "
                f"the configured provider is {provider.fingerprint} ({provider.dimension}). {CURE}"
            )
        self.provider = provider
        self.index = index

    @classmethod
    def open(cls, build: Build, provider: EmbeddingProvider | None = None) -> Semantic:
        """Open the vectors of a build with ``provider``, None for the build's own encoder.

        Raises:
            ArtefactsMissingError, ArtefactsIncompatibleError: no vectors, or those of another provider.
        """
        if build.manifest.lexical_only:
            raise ArtefactsIncompatibleError(
                f"The published build is lexical-only: it holds no vectors. {CURE}"
            )
        own = provider or BuiltinProvider(Encoder.load(build.layout.encoder))
        return cls(own, DenseIndex.open(build.layout.lance))

    def neighbours(
        self,
        texts: Sequence[str],
        pool: int,
        allows: Sequence[Allow | None],
        deadline: float | None,
    ) -> list[Neighbours]:
        """Return what lies near each text; one call to the provider, one search for all.

        Raises:
            ProviderError: no valid vectors by ``deadline`` (a reading of ``time.monotonic()``).
        """
        vectors = self.provider.embed(texts, deadline=deadline)
        nearest = self.index.nearest(vectors, pool, allows)
        prototypes = self.index.prototype_similarity(vectors)
        return [
            Neighbours(vector, rows, scores)
            for vector, rows, scores in zip(vectors, nearest, prototypes, strict=True)
        ]


def open_hub(config: Config) -> HubClient:
    """Return the client of the configured hub.

    Raises:
        ProviderError: it wants a token and there is none.
    """
    from alpha_id_runtime.hub import HubClient, find_token  # noqa: PLC0415 -- httpx only with a hub

    return HubClient(config.hub, find_token(config.hub))
