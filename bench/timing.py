"""Timing of commands that are compared: in turn, within one run, so that a busy machine slows them alike.

Holds: the alternation and what is told of it. Refuses: knowing what is timed, and any verdict (``report``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """Least, median and greatest of some figures, in the unit of the figures."""

    least: float
    median: float
    greatest: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Return the spread of one figure or more."""
        return cls(min(figures), median(figures), max(figures))


@dataclass(frozen=True)
class Took:
    """Seconds by the clock, and seconds of processor time, which others on the machine hardly change."""

    wall: float
    cpu: float


def timed(command: Callable[[], T]) -> tuple[T, Took]:
    """Return what ``command`` returns, and the time it took in this process."""
    started, worked = time.perf_counter(), time.process_time()
    answer = command()
    return answer, Took(time.perf_counter() - started, time.process_time() - worked)


def alternate(
    commands: Mapping[str, Callable[[], object]], rounds: int, *, warm_up: int = 1
) -> dict[str, list[float]]:
    """Return the seconds of each command, one a round; every round runs all of them, in order (A B A B).

    Args:
        commands: name -> what is timed.
        rounds: measured ones, 1 or more.
        warm_up: rounds before them that are not measured: files are cached then, modules compiled.
    """
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(warm_up + rounds):
        for name, command in commands.items():
            _, took = timed(command)
            if turn >= warm_up:
                seconds[name].append(took.wall)
    return seconds


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return the spread of the ratios ours / theirs, each within one round."""
    return Spread.of([one / other for one, other in zip(ours, theirs, strict=True)])


def percentile(figures: Sequence[float], part: float) -> float:
    """Return the figure that ``part`` (0 to 1) of all figures do not exceed."""
    ranked = sorted(figures)
    return ranked[max(0, -int(-part * len(ranked) // 1) - 1)]
