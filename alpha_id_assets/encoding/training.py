"""Training of the built-in encoder: numpy and scipy, a few minutes, the same bytes for the same seed.

Holds: the choice of batches and the loop. A phrase's vector is the sum of its features' weights at unit
length; it is drawn to the prototype of its code and to another phrase of that code, and away from the rest.
Refuses: files, Dagster and evaluation data.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_assets.encoding.model import BLOCKS, Batch, Model, Table
from alpha_id_assets.encoding.noise import noised
from alpha_id_assets.encoding.rows import Rows, build_vocabulary
from alpha_id_assets.encoding.settings import TrainingSettings, training_fingerprint
from alpha_id_assets.encoding.trained import TrainedEncoder
from alpha_id_runtime.encoder import unit_rows
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from alpha_id_runtime.encoder import IntArray

_CATEGORY = 3
"""Characters of a code that name its category."""

__all__ = ["TrainingSettings", "train"]


def train(
    texts: Sequence[str],
    codes: Sequence[str],
    *,
    settings: TrainingSettings,
    progress: Callable[[int, int, float], None] | None = None,
) -> TrainedEncoder:
    """Train an encoder and one prototype a code.

    Args:
        texts: the phrases.
        codes: the code of each phrase.
        settings: the recipe; its seed decides everything drawn.
        progress: called after each epoch with epochs done, epochs in all, mean loss.

    Raises:
        ValueError: no texts, or not as many codes as texts.
    """
    if not texts or len(texts) != len(codes):
        raise ValueError(
            f"Training needs as many codes as texts, and some: {len(texts)} texts, {len(codes)} codes"
        )
    normalised = [normalise(text) for text in texts]
    names, owner = np.unique(np.asarray(codes, dtype=np.str_), return_inverse=True)
    family = np.unique([name[:_CATEGORY] for name in names], return_inverse=True)[1]
    vocabulary, scale = build_vocabulary(
        normalised, min_count=settings.min_count, word_weight=settings.word_weight
    )
    plain = Rows.of(normalised, vocabulary, scale)
    groups = _Groups.of(owner, len(names))
    rng = np.random.default_rng(settings.seed)
    model = Model(
        Table.random(len(vocabulary), settings.dimension, rng),
        Table.random(len(names), settings.dimension, rng),
        Table.random(int(family[-1]) + 1, settings.dimension, rng),
        family,
        settings.code_temperature,
        settings.phrase_temperature,
    )
    steps = -(-groups.pairs // (settings.batch // 2)) * settings.epochs
    taken = 0
    with ThreadPoolExecutor(BLOCKS) as pool:
        for epoch in range(settings.epochs):
            rows, read_as = _with_noise(
                normalised, plain, settings, rng, lambda n: Rows.of(n, vocabulary, scale)
            )
            losses = []
            for first, second in groups.draw_pairs(settings.batch // 2, rng):
                both = np.concatenate((first, second))
                against, shift = _draw_codes(owner[both], len(names), settings.sampled_codes, rng)
                batch = Batch(
                    rows.take(read_as[both]).without(settings.feature_dropout, rng),
                    owner[both],
                    np.tile(first != second, 2),
                    against,
                    shift,
                )
                done = taken / max(steps - 1, 1)
                losses.append(model.step(batch, _rate(settings, done), pool))
                taken += 1
            if progress is not None:
                progress(epoch + 1, settings.epochs, float(np.mean(losses)))
    return TrainedEncoder(
        vocabulary=vocabulary,
        # The weight of a feature is folded in: whoever applies the encoder needs its occurrences alone.
        weights=(model.weights.matrix * scale[:, None]).astype(np.float16),
        codes=tuple(names.tolist()),
        prototypes=unit_rows(model.code_vectors()),
        fingerprint=training_fingerprint(texts, codes, settings),
    )


def _rate(settings: TrainingSettings, done: float) -> float:
    return settings.rate_first + (settings.rate_last - settings.rate_first) * done


def _with_noise(
    normalised: Sequence[str],
    plain: Rows,
    settings: TrainingSettings,
    rng: np.random.Generator,
    rows_of: Callable[[list[str]], Rows],
) -> tuple[Rows, IntArray]:
    """Return an epoch's rows, noised copies behind the plain ones, and which row a phrase is read as."""
    n = len(normalised)
    random = Random(int(rng.integers(1 << 62)))  # noqa: S311 - noise for training, no secret
    chosen = rng.permutation(n)[: int(settings.noised * n)]
    read_as = np.arange(n)
    read_as[chosen] = n + np.arange(len(chosen))
    return plain.followed_by(rows_of([noised(normalised[i], random) for i in chosen.tolist()])), read_as


def _draw_codes(
    owner: IntArray, codes: int, sampled: int, rng: np.random.Generator
) -> tuple[IntArray, NDArray[np.float32]]:
    """Return the codes that stand against a batch and the shift of their scores.

    The batch's own codes stand for themselves; those drawn beside them stand for all that were not drawn, so
    that the expectation is that of all codes.
    """
    present = np.zeros(codes, dtype=bool)
    present[owner] = True
    own = np.flatnonzero(present)
    if len(own) + sampled >= codes:
        return np.arange(codes), np.zeros(codes, dtype=np.float32)
    chosen = present.copy()
    chosen[rng.integers(0, codes, sampled)] = True
    against = np.flatnonzero(chosen)
    drawn = len(against) - len(own)
    weight = np.log((codes - len(own)) / max(drawn, 1))
    return against, np.where(present[against], 0, weight).astype(np.float32)


@dataclass(frozen=True)
class _Groups:
    """The phrases in the order of their codes: ``starts`` and ``sizes`` of each code's run."""

    owner: IntArray
    starts: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, owner: IntArray, codes: int) -> _Groups:
        sizes = np.bincount(owner, minlength=codes)
        return cls(owner, np.cumsum(sizes) - sizes, sizes)

    @property
    def pairs(self) -> int:
        """Pairs in an epoch: half of each code's phrases, rounded up."""
        return int(((self.sizes + 1) // 2).sum())

    def draw_pairs(self, size: int, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield batches of pairs: each phrase once, beside a random other one of its code.

        The odd one out of a code is paired with one that has had its turn; a lone phrase with itself.
        """
        n = len(self.owner)
        mixed = rng.permutation(n)
        mixed = mixed[np.argsort(self.owner[mixed], kind="stable")]
        within = np.arange(n) - self.starts[self.owner[mixed]]
        places = np.flatnonzero(within % 2 == 0)
        code = self.owner[mixed[places]]
        odd = within[places] + 1 >= self.sizes[code]
        partners = np.where(odd, self.starts[code], np.minimum(places + 1, n - 1))
        first, second = mixed[places], mixed[partners]
        order = rng.permutation(len(first))
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield first[chosen], second[chosen]
