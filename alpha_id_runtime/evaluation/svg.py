"""Small drawings for the report: bars with intervals, a reliability plot. Inline SVG without script.

Holds: geometry. Refuses: figures of its own; what it cannot draw (no value) it leaves blank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alpha_id_runtime.evaluation.measures import Bin, Figure

COLOURS = {"c": "#2a6fc9", "a": "#d9730d"}
OTHER = "#5f6b7a"
_WIDTH, _HEIGHT = 260, 16
_SIDE, _MARGIN = 250, 34


def bar(figure: Figure, mode: str) -> str:
    """Return a bar from 0 to 1 with its interval as a whisker."""
    if figure.value is None or figure.low is None or figure.high is None:
        return ""
    mid = _HEIGHT / 2
    low, high = figure.low * _WIDTH, figure.high * _WIDTH
    whisker = "".join(
        f'<line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}"/>'
        for x1, y1, x2, y2 in (
            (low, mid, high, mid),
            (low, 4, low, _HEIGHT - 4),
            (high, 4, high, _HEIGHT - 4),
        )
    )
    return (
        f'<svg class="bar" width="{_WIDTH + 2}" '
        f'height="{_HEIGHT}" role="img" aria-label="{figure.value:.3f}">'
        f'<rect y="2" width="{_WIDTH}" height="{_HEIGHT - 4}" fill="#eceff3"/>'
        f'<rect y="2" width="{figure.value * _WIDTH:.1f}" height="{_HEIGHT - 4}" '
        f'fill="{COLOURS.get(mode, OTHER)}"/>'
        f'<g stroke="#1d232b" stroke-width="1.4">{whisker}</g></svg>'
    )


def difference(figure: Figure, reach: float) -> str:
    """Return a dot with its interval on an axis from ``-reach`` to ``reach``, zero marked."""
    if figure.value is None or figure.low is None or figure.high is None:
        return ""

    def x(value: float) -> float:
        return (max(-reach, min(reach, value)) / reach + 1) / 2 * (_WIDTH - 12) + 6

    mid = _HEIGHT / 2
    return (
        f'<svg class="bar" width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{figure.value:+.3f}">'
        f'<line x1="{x(0):.1f}" y1="0" x2="{x(0):.1f}" y2="{_HEIGHT}" '
        f'stroke="#9aa4b1" stroke-dasharray="2 2"/>'
        f'<line x1="{x(figure.low):.1f}" y1="{mid}" x2="{x(figure.high):.1f}" y2="{mid}" stroke="#1d232b"/>'
        f'<circle cx="{x(figure.value):.1f}" cy="{mid}" r="4" fill="#1d232b"/></svg>'
    )


def reliability_plot(bins_of_mode: Mapping[str, Sequence[Bin]]) -> str:
    """Return the share of right first suggestions over their score; a larger dot stands for more cases."""

    def x(value: float) -> float:
        return _MARGIN + value * _SIDE

    def y(value: float) -> float:
        return 10 + (1 - value) * _SIDE

    grid = "".join(
        f'<line x1="{x(0)}" y1="{y(t):.1f}" x2="{x(1)}" y2="{y(t):.1f}" stroke="#e3e7ec"/>'
        f'<text x="{x(0) - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{t:g}</text>'
        f'<text x="{x(t):.1f}" y="{y(0) + 16}" text-anchor="middle">{t:g}</text>'
        for t in (0, 0.25, 0.5, 0.75, 1)
    )
    drawn = ""
    for mode, bins in bins_of_mode.items():
        colour = COLOURS.get(mode, OTHER)
        most = max((b.n for b in bins), default=1)
        path = " ".join(f"{x(b.score):.1f},{y(b.hit):.1f}" for b in bins)
        drawn += f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        drawn += "".join(
            f'<circle cx="{x(b.score):.1f}" cy="{y(b.hit):.1f}" r="{2.5 + 5 * (b.n / most) ** 0.5:.1f}" '
            f'fill="{colour}">'
            f"<title>{b.n} cases, mean score {b.score:.3f}, right {b.hit:.3f}</title></circle>"
            for b in bins
        )
    width, height = _MARGIN + _SIDE + 12, _SIDE + 48
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="reliability plot">{grid}'
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="#9aa4b1" stroke-dasharray="4 3"/>'
        f"{drawn}"
        f'<text x="{x(0.5)}" y="{height - 6}" text-anchor="middle">score of the first suggestion</text></svg>'
    )
