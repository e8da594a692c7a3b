"""Gold lists as cases: one case a line, one list case a list.

Holds: the step from what a file holds (gold) to what is asked and judged (cases). Refuses: reading and
checking files (gold), and any look at an answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from alpha_id_runtime.evaluation.cases import CONTEXT, Case, ListCase
from alpha_id_runtime.evaluation.gold import extraction_ceiling
from alpha_id_runtime.evaluation.result import Extraction
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from alpha_id_runtime.evaluation.gold import GoldList, GoldPhrase


def list_cases(lists: Iterable[GoldList], chapter_of: Callable[[str], str] = lambda _: "") -> list[ListCase]:
    """Return each list with its lines as gold cases; ``done`` holds the kinds of the line and ``context``.

    Args:
        lists: what ``load_gold`` returned.
        chapter_of: code -> chapter; "" where the code is unknown.
    """
    return [
        ListCase(
            gold.id, tuple(_case(gold.id, at, phrase, chapter_of) for at, phrase in enumerate(gold.phrases))
        )
        for gold in _merged(lists)
    ]


def _case(list_id: str, at: int, phrase: GoldPhrase, chapter_of: Callable[[str], str]) -> Case:
    return Case(
        id=f"gold-{list_id}/{at}",
        kind="gold",
        text=phrase.text,
        gold=phrase.codes,
        accept=phrase.accept,
        done=(*phrase.kinds, CONTEXT) if phrase.context else phrase.kinds,
        chapter=chapter_of(phrase.codes[0]) if phrase.codes else "",
    )


def _merged(lists: Iterable[GoldList]) -> list[GoldList]:
    """Return the lists; rows of a TSV with one phrase become one: its codes are gold together."""
    first: dict[str, GoldList] = {}
    for gold in lists:
        key = normalise(gold.phrases[0].text) if gold.edition is None and len(gold.phrases) == 1 else gold.id
        if key in first and gold.edition is None:
            old, new = first[key].phrases[0], gold.phrases[0]
            more = [i for i, code in enumerate(new.codes) if code not in old.codes]
            both = replace(
                old,
                codes=(*old.codes, *(new.codes[i] for i in more)),
                accept=(*old.accept, *(new.accept[i] for i in more)),
            )
            first[key] = replace(first[key], phrases=(both,))
        else:
            first[key] = gold
    return list(first.values())


def gold_cases(lists: Iterable[ListCase]) -> list[Case]:
    """Return the lines of all lists, to be asked one by one beside the lists themselves."""
    return [line for case in lists for line in case.lines]


def extraction_of(lists: Sequence[GoldList]) -> Extraction | None:
    """Return the extraction ceiling of the dictations; None where no list has one."""
    ceiling = extraction_ceiling(lists)
    return Extraction(ceiling.found, ceiling.diagnoses) if ceiling.diagnoses else None
