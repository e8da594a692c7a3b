"""``alpha-id suggest``: input from a file or standard input, one list (or one a line) out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from alpha_id_runtime.cli.common import print_json, print_lines, resolved_config, wants_json
from alpha_id_runtime.cli.render import render_result
from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.phrases import decode, segments
from alpha_id_runtime.pipeline import Suggester

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Answer and return 0; an empty answer says its reason."""
    config = resolved_config(options).config
    text = decode(_read(options.file))
    suggester = Suggester.open(config)
    if options.each and (wants_json(options) or segments(text)):
        answers = suggester.suggest_each(text, explain=options.explain, related=options.related)
        if wants_json(options):
            print_json([{"phrase": line.text, **answer.to_dict()} for line, answer in answers])
        else:
            for line, answer in answers:
                print_lines([f"— {line.text}", *render_result(answer), ""])
        return 0
    answer = suggester.suggest(text, explain=options.explain, related=options.related)
    if wants_json(options):
        print_json(answer.to_dict())
    else:
        print_lines(render_result(answer))
    return 0


_SUFFIXES = (".txt", ".tsv", ".csv", ".json", ".jsonl", ".lst", ".md")


def _read(name: str) -> bytes:
    if name == "-":
        if sys.stdin is None:
            raise UsageError("Standard input is closed: name a file, or pipe one phrase a line.")
        if sys.stdin.isatty():
            sys.stderr.write("One phrase a line, then Ctrl-D:\n")
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        # What stands in a file's place may be a phrase, and a phrase is patient data.
        named = f" {name}" if Path(name).suffix.lower() in _SUFFIXES else ""
        raise UsageError(
            f"The input file{named} cannot be read ({error.strerror}). Name a file of one phrase a line, or "
            "pipe the phrases: printf '%s\\n' PHRASE | alpha-id suggest -"
        ) from error
