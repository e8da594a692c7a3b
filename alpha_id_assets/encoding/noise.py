"""Noised copies of phrases for training: what typing and dictation do to a line.

Holds: a pure function of a normalised phrase and a random generator. Refuses: any list of real errors; no
evaluation file is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 4


def noised(normalised: str, random: Random) -> str:
    """Return ``normalised`` with one or two letters dropped, doubled, swapped or replaced.

    Texts shorter than four characters come back as they are.
    """
    if len(normalised) < _SHORTEST:
        return normalised
    letters = list(normalised)
    for _ in range(1 + (random.random() < 0.5)):  # noqa: PLR2004 - one or two, evenly
        place = int(random.random() * (len(letters) - 1))
        if letters[place] == " " or letters[place + 1] == " ":
            continue
        kind = int(random.random() * 4)
        if kind == 0:
            del letters[place]
        elif kind == 1:
            letters.insert(place, letters[place])
        elif kind == 2:  # noqa: PLR2004 - the third of four kinds
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
        else:
            letters[place] = _LETTERS[int(random.random() * len(_LETTERS))]
    return "".join(letters)
