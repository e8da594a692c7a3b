"""Held-out entries through alpha-id and through what a user would else take, in one run.

Holds: recall and latency of every ranker on the same entries. Refuses: how a ranker works (``rankers``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from bench.rankers import OURS, PEERS, NotAvailableError
from bench.report import Goal, Table, spread_texts
from bench.timing import Spread, timed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.rankers import Offer, Ranker
    from bench.setting import HeldOut, Setting
    from bench.timing import Took

CUTS = (1, 5, 10)
# How much faster than each peer mode C should be.
FASTER = {"rapidfuzz token_set_ratio": 10, "SQLite FTS5 trigrams": 10, "scikit-learn char TF-IDF": 1}


@dataclass
class Outcome:
    """Ranks (from 1; None: not among ten) and times, one an entry.

    ``ranks`` counts a gold code among the complements as found (the contract), ``strict`` does not.
    """

    ranks: list[int | None] = field(default_factory=list)
    strict: list[int | None] = field(default_factory=list)
    took: list[Took] = field(default_factory=list)

    def add(self, entry: HeldOut, offers: Sequence[Offer], took: Took) -> None:
        """Count one answer."""
        hits = [offer.code == entry.code or entry.code in offer.complements for offer in offers]
        self.ranks.append(hits.index(True) + 1 if True in hits else None)
        codes = [offer.code for offer in offers]
        self.strict.append(codes.index(entry.code) + 1 if entry.code in codes else None)
        self.took.append(took)

    @property
    def wall(self) -> Spread:
        """Milliseconds by the clock."""
        return Spread.of([took.wall * 1000 for took in self.took])

    @property
    def cpu(self) -> float:
        """Median of the milliseconds of processor time."""
        return median(took.cpu * 1000 for took in self.took)


def recall(ranks: Sequence[int | None], cut: int) -> float:
    """Return the share of entries whose code is among the first ``cut``."""
    return sum(rank is not None and rank <= cut for rank in ranks) / len(ranks)


def measure(rankers: Mapping[str, Ranker], entries: Sequence[HeldOut]) -> dict[str, Outcome]:
    """Ask every ranker each entry, in turn (A B C A B C); the first entry is asked once more beforehand."""
    outcomes = {name: Outcome() for name in rankers}
    for ranker in rankers.values():
        ranker(entries[0])
    for entry in entries:
        for name, ranker in rankers.items():
            outcomes[name].add(entry, *timed(partial(ranker, entry)))
    return outcomes


def held_out(setting: Setting) -> Iterator[Table]:
    """Measure our modes and the peers that are installed; of the others the reason is told."""
    rankers: dict[str, Ranker] = {}
    set_up: dict[str, float] = {}
    skipped = []
    for name, make in {**OURS, **PEERS}.items():
        try:
            rankers[name], took = timed(partial(make, setting))
        except NotAvailableError as error:
            skipped.append(f"{name}: skipped, {error}")
        else:
            set_up[name] = took.wall
    outcomes = measure(rankers, setting.held_out)
    mode = next(iter(OURS))
    ours = outcomes[mode]
    rows = [
        (
            name,
            *(f"{recall(outcome.ranks, cut):.3f}" for cut in CUTS),
            *(f"{recall(outcome.strict, cut):.3f}" for cut in CUTS),
            *spread_texts(outcome.wall, 2),
            f"{outcome.wall.median / ours.wall.median:.1f}",
            f"{outcome.cpu:.2f}",
            f"{outcome.cpu / ours.cpu:.1f}",
            f"{set_up[name]:.1f}",
        )
        for name, outcome in outcomes.items()
    ]
    columns = (
        *(f"R@{cut}" for cut in CUTS),
        *(f"strict@{cut}" for cut in CUTS),
        *("min ms", "median ms", "max ms", "times", "cpu ms", "times", "set-up s"),
    )
    notes = (
        *skipped,
        "R@: the code or a complement of it; strict@: the code itself. An entry and its twins never answer.",
        f"times: the medians, {mode}'s being 1; cpu ms: median of the processor time.",
    )
    title = (
        f"Held-out entries: {len(setting.held_out)}, seed {setting.seed}, {setting.phrases.height} phrases"
    )
    yield Table(title, columns, tuple(rows), tuple(_goals(mode, outcomes)), notes)


def _goals(mode: str, outcomes: Mapping[str, Outcome]) -> Iterator[Goal]:
    ours = outcomes[mode]
    for name in PEERS:
        if name in outcomes:
            peer = outcomes[name]
            for cut in (1, 10):
                limit = recall(peer.ranks, cut)
                yield Goal(f"{mode}, R@{cut} beside {name},", recall(ours.ranks, cut), limit, side="above")
            times = peer.wall.median / ours.wall.median
            yield Goal(f"{name}, times {mode}'s latency,", times, FASTER[name], side="at least")
