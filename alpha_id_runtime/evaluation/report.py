"""An evaluation as a terminal table, as JSON, as metadata, and against the report before it.

Holds: plain-text layout and the comparison of two reports. Refuses: computing figures (measures, runner) and
HTML (page).
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.evaluation.measures import LEADING, MEASURES
from alpha_id_runtime.evaluation.result import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from alpha_id_runtime.evaluation.measures import Figure
    from alpha_id_runtime.evaluation.result import EvaluationResult

_WIDTH = 110
# What an earlier prototype reached on noise cases of its own making: another draw, a landmark only.
PROTOTYPE: Mapping[tuple[str, str], float] = {("noise", "c"): 0.520, ("noise", "a"): 0.995}

NOT_MEASURED = (
    "Whether a diagnosis is present, treated or billable in a case: only whether a wording finds its code.",
    "Precision: other codes in the list may be right too, or wanted as impulses; only gold codes count.",
    "Real dictation: noise, paraphrases and omissions are made by rule, gold lists are few and made by hand.",
    "How often a wording occurs: cases are drawn from the alphabet, by chapter, not from anyone's patients.",
    "Wordings of other editions, and codes that the corpus has no second phrase for (held out needs one).",
    "Small differences: an interval that touches 0 or 1 comes from few misses and is too narrow there.",
    "The time of a single request: milliseconds are a case's share of a batch.",
)


WITHOUT_HELD_OUT = (
    "Without held-out cases (--holdout): all wordings asked lie near one of the corpus, so nothing here says "
    "what happens with a wording that it lacks."
)


def number(figure: Figure | None) -> str:
    """Return the value with three decimals; a dash where there is none."""
    return "-" if figure is None or figure.value is None else f"{figure.value:.3f}"


def interval(figure: Figure | None, *, sign: bool = False) -> str:
    """Return value and interval, as in ``0.953 [0.941, 0.964]``; with signs for a difference."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return "-"
    plus = "+" if sign else ""
    return f"{figure.value:{plus}.3f} [{figure.low:{plus}.3f}, {figure.high:{plus}.3f}]"


def terminal_table(result: EvaluationResult) -> str:
    """Return the figures as text of at most 110 columns, the leading kind first."""
    modes = result.modes
    differences = {(d.kind, d.measure): d.figure for d in result.differences}
    lines = [f"Evaluation, seed {result.seed}: {_settings(result.provenance)}", ""]
    if "held_out" not in result.kinds:
        lines[1:1] = textwrap.wrap(WITHOUT_HELD_OUT, _WIDTH)
    header = f"{'':<20}" + "".join(f"{f'mode {mode.upper()}':<24}" for mode in modes)
    header += "A minus C" if differences else ""
    for kind in result.kinds:
        blocks = {mode: result.block(kind, mode) for mode in modes}
        first = next(b for b in blocks.values() if b is not None)
        lines += [f"{KINDS[kind]}, {len(first.outcomes)} cases", header.rstrip()]
        for measure in MEASURES:
            cells = "".join(f"{interval(b.figures.get(measure) if b else None):<24}" for b in blocks.values())
            delta = differences.get((kind, measure))
            lines.append(f"{measure:<20}{cells}{interval(delta, sign=True) if delta else ''}".rstrip())
        for name in dict.fromkeys(s for b in blocks.values() if b for s in b.subsets):
            texts = (interval(b.subsets.get(name, {}).get(LEADING) if b else None) for b in blocks.values())
            lines.append(f"  {LEADING} {name}: " + ", ".join(texts))
        if any((kind, mode) in PROTOTYPE for mode in modes):
            marks = (
                f"{mode.upper()} {PROTOTYPE[kind, mode]:.3f}" for mode in modes if (kind, mode) in PROTOTYPE
            )
            lines.append(f"  an earlier prototype, {LEADING} on cases of its own: " + ", ".join(marks))
        if first.no_diagnosis.n:
            texts = (interval(b.no_diagnosis) for b in blocks.values() if b)
            lines.append("  lines without a diagnosis that got a suggestion: " + ", ".join(texts))
        if sum(b.errors for b in blocks.values() if b):
            texts = (f"{mode.upper()} {b.errors}" for mode, b in blocks.items() if b)
            lines.append("  errors, counted as misses: " + ", ".join(texts))
        lines.append("")
    lines += _list_lines(result)
    for cost in result.costs:
        times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in cost.milliseconds.items())
        lines.append(
            f"Mode {cost.mode.upper()}: {times or 'no times'} a case (batched); {cost.hub_calls} hub calls, "
            f"{cost.euros:.4f} EUR, {cost.degraded:.1%} degraded"
        )
    return "\n".join(lines)


def _list_lines(result: EvaluationResult) -> list[str]:
    lines = []
    if result.extraction is not None and result.extraction.total:
        e = result.extraction
        share = e.found / e.total
        lines.append(f"Extraction ceiling: {e.found} of {e.total} gold diagnoses become a line ({share:.3f})")
    for block in result.lists:
        lines += [
            f"Gold lists, mode {block.mode.upper()}, {block.recall_in_ten.n} lists:",
            f"  recall in the one list of ten {interval(block.recall_in_ten)}",
            f"  within twice the lines {interval(block.recall_in_twice_lines)}",
        ]
        lines += [
            f"  {o.rate:.0%} of lines forgotten: {number(o.kept)} of the gold is left, "
            f"recall {interval(o.recall)}, loss {number(o.loss)}"
            for o in block.omissions
        ]
    return [*lines, ""] if lines else []


def to_json(result: EvaluationResult) -> str:
    """Return the whole result, cases included, as one JSON document."""
    return json.dumps(result.to_dict(), ensure_ascii=False, indent=1)


def leading_figures(result: EvaluationResult) -> dict[str, float]:
    """Return the figures worth plotting over time, named ``held_out a BillableRecall@10``."""
    figures = {
        f"{b.kind} {b.mode} {measure}": b.figures[measure].value
        for b in result.blocks
        for measure in (LEADING, "R@10", "RR@10")
    }
    figures |= {f"lists {b.mode} recall in ten": b.recall_in_ten.value for b in result.lists}
    return {name: value for name, value in figures.items() if value is not None}


def fallen(current: EvaluationResult, previous: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each leading figure that lies below the interval of the last report.

    Args:
        current: the new result.
        previous: ``to_dict()`` of the last one; a report on other cases or of another schema is not
            comparable and yields nothing.
    """
    now = current.to_dict()
    if any(now[name] != previous.get(name) for name in ("schema", "cases_digest")):
        return []
    before = {(b["kind"], b["mode"]): b["figures"][LEADING] for b in previous["blocks"]}
    sentences = []
    for block in current.blocks:
        figure, old = block.figures[LEADING], before.get((block.kind, block.mode))
        if old is None or old["low"] is None or figure.value is None or figure.value >= old["low"]:
            continue
        sentences.append(
            f"{LEADING} of mode {block.mode.upper()} on {block.kind} cases fell from {old['value']:.3f} to "
            f"{figure.value:.3f}, below the {old['low']:.3f} where the interval of the last report on the "
            "same cases begins."
        )
    return sentences


def _settings(provenance: Mapping[str, Any]) -> str:
    flat = (f"{k} {v}" for k, v in provenance.items() if isinstance(v, (str, int, float)))
    return ", ".join(flat) or "no provenance given"
