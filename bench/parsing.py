"""The build: the whole of it, and its three costly steps beside the bare tool on the same bytes.

Holds: ClaML beside lxml, Alpha-ID beside polars, the lexical index beside tantivy. Refuses: the query side.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import tantivy
from lxml import etree

from alpha_id_assets.building import build_lexical
from alpha_id_assets.indexing import build_lexical_index
from alpha_id_assets.sources.alpha_id import read_alpha_id
from alpha_id_assets.sources.claml import read_claml
from alpha_id_assets.sources.releases import open_source, read_source
from bench.report import Goal, Table, comparison
from bench.timing import alternate, timed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from alpha_id_assets.building import Step
    from bench.setting import Setting

BUILD_SECONDS = 60
CLAML_TIMES = 2
# As the build's own writer has it, so that neither flushes earlier.
_HEAP_BYTES = 400_000_000


def whole_build(setting: Setting) -> Iterator[Table]:
    """Build mode C from files to a published build, once: every other section works with it."""
    steps: list[Step] = []
    _, took = timed(partial(build_lexical, setting.storage, setting.config, steps.append))
    rows = [
        (each.name, f"{each.seconds:.2f}", ", ".join(f"{n} {name}" for name, n in each.counts.items()))
        for each in steps[:-1]
    ]
    rows += [
        (steps[-1].name, f"{steps[-1].seconds:.2f}", ""),
        ("all", f"{took.wall:.2f}", f"{took.cpu:.2f} s of processor time"),
    ]
    goal = Goal("full build for mode C", took.wall, BUILD_SECONDS, " s")
    yield Table(
        "Build for mode C, from the files to a published build", ("s", "counts"), tuple(rows), (goal,)
    )


def claml(setting: Setting) -> Iterator[Table]:
    """Read the ClaML file, modifiers expanded, beside walking over its elements."""
    source = setting.sources.claml

    def ours() -> None:
        with open_source(source) as stream:
            read_claml(stream, source.name)

    def bare() -> None:
        with open_source(source) as stream:
            for _, element in etree.iterparse(stream):
                element.clear()

    yield comparison(
        f"ClaML parse: {source.name} ({source.size / 1e6:.1f} MB)",
        alternate({"read_claml": ours, "bare lxml iterparse": bare}, setting.size.parse_rounds),
        at_most=CLAML_TIMES,
    )


def alpha_id(setting: Setting) -> Iterator[Table]:
    """Read the Alpha-ID file, every field checked, beside reading it as a table of texts."""
    source = setting.sources.alpha_id
    edition = read_alpha_id(read_source(source), source.name, tolerance=setting.config.build.tolerance)

    def ours() -> None:
        read_alpha_id(read_source(source), source.name, tolerance=setting.config.build.tolerance)

    def bare() -> None:
        data = read_source(source)
        if edition.encoding != "UTF-8":
            data = data.decode(edition.encoding, errors="replace").encode()
        pl.read_csv(
            data,
            separator=edition.separator,
            has_header=False,
            quote_char=None,
            infer_schema=False,
            truncate_ragged_lines=True,
        )

    yield comparison(
        f"Alpha-ID parse: {source.name} ({edition.rows.height} rows)",
        alternate({"read_alpha_id": ours, "bare polars read_csv": bare}, setting.size.parse_rounds),
    )


def lexical_index(setting: Setting) -> Iterator[Table]:
    """Build the lexical index beside a tantivy index of one field with the same texts."""
    norms = setting.phrases["norm"].to_list()
    folder = setting.storage.root / "bench_index"
    commands = {
        "build_lexical_index": lambda: build_lexical_index(folder / "ours", norms),
        "bare tantivy, one field": lambda: _bare_index(folder / "bare", norms),
    }
    seconds = alternate(commands, setting.size.index_rounds, warm_up=0)
    yield comparison(
        f"Lexical index build: {len(norms)} phrases",
        seconds,
        notes=(
            "ours holds words, trigrams, the whole phrase, its set of words, and the trigrams for scoring",
        ),
    )
    shutil.rmtree(folder)


def _bare_index(folder: Path, texts: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text")
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    for text in texts:
        document = tantivy.Document()
        document.add_text("text", text)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
