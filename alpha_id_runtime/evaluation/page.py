"""The evaluation as one self-contained HTML page: no script, no outside file, no scrolling sideways.

Holds: the order of the sections and their words. Refuses: computing figures, and trusting any text: phrases,
codes and settings are escaped, and the page's own policy forbids loading anything.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import TYPE_CHECKING

from alpha_id_runtime.evaluation import svg
from alpha_id_runtime.evaluation.cases import cases_digest
from alpha_id_runtime.evaluation.measures import LEADING, MEASURES
from alpha_id_runtime.evaluation.report import NOT_MEASURED, PROTOTYPE, WITHOUT_HELD_OUT, number
from alpha_id_runtime.evaluation.result import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alpha_id_runtime.evaluation.measures import Figure
    from alpha_id_runtime.evaluation.result import Block, EvaluationResult, Miss

SHOWN_INSTEAD = 5  # codes of a miss; the JSON holds all


def render_page(result: EvaluationResult) -> str:
    """Return the whole page."""
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    sections = (
        _head, _overview, _measures, _lists, _slices, _calibration, _costs, _misses, _limits, _provenance,
    )  # fmt: skip
    return template.substitute(
        title="Evaluation: diagnosis wordings to codes",
        body="\n".join(section(result) for section in sections),
    )


def _head(result: EvaluationResult) -> str:
    leading = result.kinds[0] if result.kinds else ""
    tiles = []
    for mode in result.modes:
        block = result.block(leading, mode)
        if block is not None:
            tiles.append(_tile(f"{_key(mode)}Mode {mode.upper()}, {LEADING}", block.figures[LEADING]))
    tiles += [
        _tile(f"A minus C, {LEADING}, paired", d.figure, sign=True)
        for d in result.differences
        if (d.kind, d.measure) == (leading, LEADING)
    ]
    note = "" if leading == "held_out" else f'<p class="note">{WITHOUT_HELD_OUT}</p>'
    return (
        "<h1>Evaluation: diagnosis wordings to codes</h1>"
        f'<p class="soft">{len(result.cases)} cases, seed {result.seed}, cases {cases_digest(result.cases)}. '
        "In brackets, and as whiskers: 95 % intervals, from 1,000 resamples of the cases.</p>"
        f"{note}<p><b>{escape(KINDS.get(leading, 'No cases'))}</b></p>"
        f'<div class="tiles">{"".join(tiles)}</div>'
    )


def _tile(label: str, figure: Figure, *, sign: bool = False) -> str:
    value = "-" if figure.value is None else f"{figure.value:{'+' if sign else ''}.3f}"
    return f'<div class="tile">{label}<b>{value}</b>{_interval(figure, sign=sign)}</div>'


def _overview(result: EvaluationResult) -> str:
    rows = []
    for kind in result.kinds:
        blocks = [b for mode in result.modes if (b := result.block(kind, mode))]
        bars = "".join(svg.bar(b.figures[LEADING], b.mode) for b in blocks)
        values = "<br>".join(_value(b.figures[LEADING]) for b in blocks)
        before = "<br>".join(f"{PROTOTYPE[kind, b.mode]:.3f}" for b in blocks if (kind, b.mode) in PROTOTYPE)
        rows.append(
            f"<tr{' class=lead' if kind == result.kinds[0] else ''}><td>{escape(KINDS[kind])}</td>"
            f'<td class="n">{len(blocks[0].outcomes)}</td><td>{bars}</td>'
            f'<td class="v">{values}</td><td>{before}</td></tr>'
        )
    keys = " &nbsp; ".join(f"{_key(mode)}mode {mode.upper()}" for mode in result.modes)
    note = (
        '<p class="note">Self-retrieval asks for phrases that are in the index word for word. Its figures '
        "are inflated and say only that the index works.</p>"
        if "self" in result.kinds
        else ""
    )
    return (
        f"<h2>{LEADING} by kind of case</h2><p>{keys}</p>"
        "<table><tr><th>Cases</th><th class=n>n</th><th>0 to 1</th><th>Value</th>"
        f"<th>Earlier prototype, its own cases</th></tr>{''.join(rows)}</table>{note}"
    )


def _measures(result: EvaluationResult) -> str:
    differences = {(d.kind, d.measure): d.figure for d in result.differences}
    parts = [
        (
            "<h2>C against A, all measures</h2><p>A hit: the gold code is a suggestion's code or among its "
            "complements. Strict: its code alone. Billable: ranks among billable suggestions alone. (3): "
            "three characters suffice. RR@10: reciprocal rank of the first hit. The difference is paired.</p>"
        )
    ]
    for kind in result.kinds:
        blocks = {mode: result.block(kind, mode) for mode in result.modes}
        of_kind = [differences[kind, name] for name in MEASURES if (kind, name) in differences]
        reach = max((abs(v) for f in of_kind for v in (f.low, f.high) if v is not None), default=0) or 1
        rows = []
        for name in MEASURES:
            cells = "".join(
                f"<td class=v>{_value(b.figures.get(name) if b else None)}</td>" for b in blocks.values()
            )
            if (kind, name) in differences:
                d = differences[kind, name]
                cells += f"<td class=v>{_value(d, sign=True)}</td><td>{svg.difference(d, reach)}</td>"
            rows.append(f"<tr{' class=lead' if name == LEADING else ''}><td>{name}</td>{cells}</tr>")
        heads = "".join(f"<th>Mode {mode.upper()}</th>" for mode in result.modes)
        heads += f"<th>A minus C</th><th>&minus;{reach:.2f} to +{reach:.2f}</th>" if of_kind else ""
        table = f"<table><tr><th>Measure</th>{heads}</tr>{''.join(rows)}</table>"
        parts.append(_details(KINDS[kind], table + _beside(blocks.values()), is_open=kind == result.kinds[0]))
    return "".join(parts)


def _beside(blocks: Iterable[Block | None]) -> str:
    """Return what stands beside the measures: subsets, coverage, errors, lines without diagnosis."""
    items = []
    for b in blocks:
        if b is None:
            continue
        facts = [f"{name} {value:.2f}".replace(".00", "") for name, value in b.coverage.items()]
        facts += [f"{LEADING} {name} {number(figures[LEADING])}" for name, figures in b.subsets.items()]
        if b.no_diagnosis.n:
            facts.append(
                f"{b.no_diagnosis.n} lines without a diagnosis, share answered all the same "
                f"{_value(b.no_diagnosis)}"
            )
        facts.append(f"{b.errors} errors, counted as misses")
        items.append(f"<p>{_key(b.mode)}Mode {b.mode.upper()}: {'; '.join(facts)}.</p>")
    return "".join(items)


def _lists(result: EvaluationResult) -> str:
    if not result.lists and result.extraction is None:
        return ""
    parts = ["<h2>From dictation to the one list: where gold codes are lost</h2>"]
    if result.extraction is not None and result.extraction.total:
        e = result.extraction
        parts.append(
            f"<p><b>Extraction ceiling {e.found / e.total:.3f}</b>: a generous extractor turns {e.found} of "
            f"{e.total} diagnoses of the dictations into a line. No matcher can make good what is missing "
            "here; the figures below start from the lines and are the matcher's own.</p>"
        )
    rows = [
        f"<tr><td>{_key(b.mode)}Mode {b.mode.upper()}</td><td class=n>{b.recall_in_ten.n}</td>"
        f"<td>{svg.bar(b.recall_in_ten, b.mode)}{_value(b.recall_in_ten)}</td>"
        f"<td>{svg.bar(b.recall_in_twice_lines, b.mode)}{_value(b.recall_in_twice_lines)}</td></tr>"
        for b in result.lists
    ]
    if rows:
        parts.append(
            "<table><tr><th>Matcher recall</th><th class=n>lists</th>"
            "<th>gold codes in the one list of ten</th>"
            f"<th>within twice the lines</th></tr>{''.join(rows)}</table>"
        )
        omitted = "".join(
            f"<tr><td>{_key(b.mode)}Mode {b.mode.upper()}</td><td class=n>{o.rate:.0%}</td>"
            f"<td>{_value(o.kept)}</td><td>{_value(o.recall)}</td><td>{_value(o.loss)}</td></tr>"
            for b in result.lists
            for o in b.omissions
        )
        parts.append(
            "<h3>Lines that an extractor forgets</h3><table><tr><th>Mode</th><th class=n>forgotten</th>"
            "<th>gold left to find</th><th>recall of all gold</th><th>lost to the extractor</th></tr>"
            f"{omitted}</table>"
        )
    return "".join(parts)


def _slices(result: EvaluationResult) -> str:
    parts = [f"<h2>Slices of {LEADING}</h2>"]
    for kind in result.kinds:
        blocks = [b for mode in result.modes if (b := result.block(kind, mode))]
        of_mode = {b.mode: {(s.by, s.name): s.figure for s in b.slices} for b in blocks}
        keys = list(dict.fromkeys(key for b in blocks for key in of_mode[b.mode]))
        order = list(dict.fromkeys(by for by, _ in keys))
        tables = []
        for by, group in groupby(sorted(keys, key=lambda key: order.index(key[0])), key=lambda key: key[0]):
            rows = "".join(
                _slice_row(name, {mode: figures.get((by, name)) for mode, figures in of_mode.items()})
                for _, name in group
            )
            tables.append(
                f"<div><h3>By {escape(by)}</h3>"
                f"<table><tr><th></th><th class=n>n</th><th></th><th>Value</th></tr>{rows}</table></div>"
            )
        body = f'<div class="pair">{"".join(tables)}</div>'
        parts.append(_details(KINDS[kind], body, is_open=kind == result.kinds[0]))
    return "".join(parts)


def _slice_row(name: str, figures: dict[str, Figure | None]) -> str:
    drawn = {mode: f for mode, f in figures.items() if f is not None}
    counts = "<br>".join(dict.fromkeys(str(f.n) for f in drawn.values()))
    return (
        f'<tr><td>{escape(name) or "none"}</td><td class="n">{counts}</td>'
        f"<td>{''.join(svg.bar(f, mode) for mode, f in drawn.items())}</td>"
        f"<td class=v>{'<br>'.join(number(f) for f in drawn.values())}</td></tr>"
    )


def _calibration(result: EvaluationResult) -> str:
    drawn = []
    for kind in result.kinds:
        blocks = [b for mode in result.modes if (b := result.block(kind, mode)) and b.bins]
        if blocks:
            errors = "; ".join(
                f"{_key(b.mode)}mode {b.mode.upper()} {b.calibration_error or 0:.3f}" for b in blocks
            )
            plot = svg.reliability_plot({b.mode: b.bins for b in blocks})
            drawn.append(
                f"<div><h3>{escape(KINDS[kind])}</h3>{plot}<p>Expected calibration error: {errors}</p></div>"
            )
    if not drawn:
        drawn = ["<p>No plot: nothing was offered, or the scores are no probabilities.</p>"]
    return (
        "<h2>Is a score of 0.8 right in 8 of 10 cases?</h2><p>On the dashed line it is. Below it the scores "
        f'promise too much. A larger dot stands for more cases.</p><div class="pair">{"".join(drawn)}</div>'
    )


def _costs(result: EvaluationResult) -> str:
    rows = "".join(
        f"<tr><td>{_key(c.mode)}Mode {c.mode.upper()}</td>"
        f"<td class=n>{_ms(c.milliseconds.get('p50'))}</td><td class=n>{_ms(c.milliseconds.get('p95'))}</td>"
        f"<td class=n>{c.hub_calls}</td><td class=n>{c.euros:.4f}</td><td class=n>{c.degraded:.1%}</td></tr>"
        for c in result.costs
    )
    return (
        "<h2>Time and money</h2><table><tr><th></th>"
        "<th class=n>p50, ms a case (batched)</th><th class=n>p95</th>"
        f"<th class=n>hub calls</th><th class=n>EUR</th><th class=n>degraded</th></tr>{rows}</table>"
    )


def _misses(result: EvaluationResult) -> str:
    parts = [
        (
            "<h2>The worst misses</h2><p>Up to fifty a kind and mode: cases whose gold code is not among the "
            "ten, those with the surest wrong first suggestion first.</p>"
        )
    ]
    for kind in result.kinds:
        for mode in result.modes:
            block = result.block(kind, mode)
            if block is not None and block.misses:
                title = f"{KINDS[kind]}, mode {mode.upper()}: {len(block.misses)} shown"
                is_open = kind == result.kinds[0] and mode == result.modes[-1]
                parts.append(_details(title, _miss_table(block.misses), is_open=is_open))
    return "".join(parts)


def _miss_table(misses: Sequence[Miss]) -> str:
    rows = "".join(
        f"<tr><td>{escape(miss.text or miss.case_id)}</td><td>{escape(', '.join(miss.gold))}</td>"
        f"<td>{escape(', '.join(miss.done))}</td><td>{_instead(miss)}</td></tr>"
        for miss in misses
    )
    return (
        '<table class="misses"><colgroup><col style="width:36%"><col style="width:10%">'
        '<col style="width:17%"><col></colgroup>'
        "<tr><th>Asked</th><th>Gold</th><th>Done to it</th><th>Offered instead</th></tr>"
        f"{rows}</table>"
    )


def _instead(miss: Miss) -> str:
    if miss.error is not None:
        return f"error: {escape(miss.error)}"
    shown = ", ".join(f"{escape(code)} ({score:.2f})" for code, score in miss.offered[:SHOWN_INSTEAD])
    return shown or "nothing"


def _limits(_result: EvaluationResult) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in NOT_MEASURED)
    return f"<h2>What this does not measure</h2><ul>{items}</ul>"


def _provenance(result: EvaluationResult) -> str:
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td><td><code>{escape(_plain(value))}</code></td></tr>"
        for name, value in {"seed": result.seed, **result.provenance}.items()
    )
    return f"<h2>Editions, build, configuration</h2><table>{rows}</table>"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _value(figure: Figure | None, *, sign: bool = False) -> str:
    if figure is None or figure.value is None:
        return "-"
    return f"{figure.value:{'+' if sign else ''}.3f} {_interval(figure, sign=sign)}"


def _interval(figure: Figure, *, sign: bool = False) -> str:
    if figure.low is None or figure.high is None:
        return ""
    plus = "+" if sign else ""
    return f'<span class="iv">[{figure.low:{plus}.3f}, {figure.high:{plus}.3f}]</span>'


def _details(title: str, body: str, *, is_open: bool) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>{body}</details>"


def _key(mode: str) -> str:
    return f'<span class="key" style="background:{svg.COLOURS.get(mode, svg.OTHER)}"></span>'


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
