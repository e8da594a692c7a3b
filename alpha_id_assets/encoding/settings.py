"""What the built-in encoder is trained by, and the fingerprint of a training.

Holds: the settings with their measured defaults and the hash over settings and input. Refuses: the training
itself.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from alpha_id_runtime.encoder import FORMAT
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class TrainingSettings:
    """The recipe, its defaults chosen on held-out phrases of a full-size corpus alone.

    R@1 of phrase + prototype after three epochs, 3,000 held out, twins taken out: .691 with words at a tenth
    of the weight of n-grams, .695 with n-grams of words as they sound, .702 with words at 2.0 (.698 at 5.0).
    Tried and left out: batches of siblings (.686 against .691), half of the features dropped (.672 against
    .687), first weights a tenth as large (.665), batches of 512 or 2,048 (no gain), all codes in each step
    instead of a sample (.701 against .695 at twice the time).

    Attributes:
        dimension: length of a vector.
        epochs: times each phrase is an anchor.
        batch: anchors a step.
        code_temperature: of the cross-entropy against prototypes; sharp, for siblings differ by a word.
        phrase_temperature: of the one against other phrases; softer, so that near wordings stay near.
        rate_first, rate_last: learning rate of the row-wise Adagrad, falling linearly.
        feature_dropout: share of a phrase's features left out, drawn anew each step.
        noised: share of the anchors read in a noised copy, drawn anew each epoch.
        word_weight: of whole-word features beside n-grams.
        min_count: phrases a feature must stand in to be kept.
        sampled_codes: prototypes drawn at random to stand against each batch beside its own; all when that
            many are not there.
        seed: of everything drawn.
    """

    dimension: int = 256
    epochs: int = 20
    batch: int = 1024
    code_temperature: float = 0.05
    phrase_temperature: float = 0.07
    rate_first: float = 0.1
    rate_last: float = 0.01
    feature_dropout: float = 0.15
    noised: float = 0.3
    word_weight: float = 2.0
    min_count: int = 2
    sampled_codes: int = 2500
    seed: int = 20250117


def training_fingerprint(texts: Sequence[str], codes: Sequence[str], settings: TrainingSettings) -> str:
    """Return the name of the encoder that ``settings`` and this input give, without training it.

    It covers the settings, the format of features, every text as given and as matched (so that a change of
    ``normalise`` counts too) and every code, in order. Safe as the name of a folder.
    """
    digest = hashlib.sha256(json.dumps([FORMAT, asdict(settings)], sort_keys=True).encode())
    for text, code in zip(texts, codes, strict=True):
        # The length in front keeps ("a", "bc") apart from ("ab", "c").
        for part in (text, normalise(text), code):
            data = part.encode()
            digest.update(len(data).to_bytes(4, "little"))
            digest.update(data)
    return f"builtin-{FORMAT}-{settings.dimension}-{digest.hexdigest()[:16]}"
