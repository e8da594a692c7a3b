"""Tables and goals, as they are printed.

Holds: one shape for every table of the bench. Refuses: stopping at a missed goal; it says "miss" and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.timing import Spread, ratios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


Side = Literal["at most", "at least", "above"]


@dataclass(frozen=True)
class Goal:
    """A figure and what it should be."""

    name: str
    value: float
    limit: float
    unit: str = ""
    side: Side = "at most"

    @property
    def reached(self) -> bool:
        """Whether the figure is on the right side of the limit."""
        if self.side == "above":
            return self.value > self.limit
        return self.value >= self.limit if self.side == "at least" else self.value <= self.limit

    def __str__(self) -> str:
        """Return the goal, the figure and the verdict in one line."""
        verdict = "ok" if self.reached else "miss"
        figure, limit = (f"{number:.4g}{self.unit}" for number in (self.value, self.limit))
        return f"goal: {self.name} {self.side} {limit}; is {figure}: {verdict}"


@dataclass(frozen=True)
class Table:
    """One table: rows have a name and one text a column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    goals: tuple[Goal, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the table in lines, columns right-aligned, goals and notes below."""
        grid = [("", *self.columns), *self.rows]
        widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in grid
        ]
        below = [*map(str, self.goals), *self.notes]
        return "\n".join([self.title, *(f"  {line}".rstrip() for line in (*lines, *below))]) + "\n"


def comparison(
    title: str,
    seconds: Mapping[str, Sequence[float]],
    *,
    at_most: float | None = None,
    notes: tuple[str, ...] = (),
) -> Table:
    """Return the table of alternated commands; the first is ours, the others what it stands beside.

    Args:
        title: what was run on what.
        seconds: name -> seconds, one a round.
        at_most: the goal for the median ratio of ours to the second, if there is one.
        notes: lines below.
    """
    ours, *others = seconds
    rows = [(name, *spread_texts(Spread.of(took)), "") for name, took in seconds.items()]
    goals = []
    for other in others:
        ratio = ratios(seconds[ours], seconds[other])
        rows.append((f"{ours} / {other}", *spread_texts(ratio), "times"))
    if at_most is not None:
        goals.append(
            Goal(f"{ours}, times {others[0]},", ratios(seconds[ours], seconds[others[0]]).median, at_most)
        )
    named = tuple((*row[:-1], row[-1] or "s") for row in rows)
    return Table(title, ("min", "median", "max", "unit"), named, tuple(goals), notes)


def spread_texts(spread: Spread, digits: int = 3) -> tuple[str, str, str]:
    """Return least, median and greatest as texts."""
    return f"{spread.least:.{digits}f}", f"{spread.median:.{digits}f}", f"{spread.greatest:.{digits}f}"
