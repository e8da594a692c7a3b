"""All commands and options, with examples in their help.

Holds: argparse and which function runs a command, imported only when it runs. Refuses: doing anything itself.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Option name: the setting it overrides.
FLAGS = {
    "data": "data",
    "storage": "storage",
    "mode": "mode",
    "provider": "provider",
    "reranker": "reranker",
    "top": "top",
    "min_score": "min_score",
    "billable_only": "filter.billable_only",
    "sector": "filter.sector",
    "valid_only": "filter.valid_only",
    "chapters": "filter.chapters",
    "prefix": "filter.prefix",
    "groups": "filter.groups",
    "exclude_exotic": "filter.exclude_exotic",
    "ifsg_only": "filter.ifsg_only",
    "sex": "filter.sex",
    "age": "filter.age",
    "strict": "filter.strict",
    "edition": "build.edition",
    "tolerance": "build.tolerance",
}

INDEX_EXAMPLES = """examples:
  alpha-id index build                  # mode C: ten seconds at full size
  alpha-id index build --full           # and mode A, with the built-in encoder: offline and free
  alpha-id index build --data /path/to/bfarm --edition 2026
  alpha-id index build --sample 50 --provider hub
  alpha-id index build --full --provider hub --confirm --limit-euros 2
"""

SUGGEST_EXAMPLES = """examples:
  alpha-id suggest diagnoses.txt
  printf 'Art. Hypertonie\\nNSTEMI\\n' | alpha-id suggest - --table
  alpha-id suggest list.txt --billable-only --sector ambulant --sex w --age 45
  alpha-id suggest list.txt --table --explain --related 3
  alpha-id suggest list.txt --each --json | jq '.[].suggestions[0].icd_code'
"""


EVAL_EXAMPLES = """examples:
  alpha-id eval --mode both --holdout --seed 7
  alpha-id eval --mode c --cases 300 --json > figures.json
  alpha-id eval --mode c --cases 0 --gold coded_phrases.tsv
"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of ``alpha-id``; each command sets ``run``."""
    parser = argparse.ArgumentParser(
        prog="alpha-id",
        description="German diagnosis wordings to ICD-10-GM codes: one ranked list, traced to its source.",
        epilog="`alpha-id COMMAND --help` shows options and examples. Suggestions only; a person decides.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _suggest(commands)
    _code(commands)
    _info(commands)
    _config(commands)
    _index(commands)
    _eval(commands)
    return parser


def _command(commands: Any, name: str, module: str, text: str, examples: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file (default: alpha-id.toml)")
    parser.add_argument("--storage", type=Path, metavar="DIR", help="artefacts (default: storage/)")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(run=_late(module))
    return parser


def _late(module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        return int(import_module(f"alpha_id_runtime.cli.{module}").run(options))

    return run


def _output(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--json", action="store_true", help="JSON (default when piped)")
    kind.add_argument("--table", action="store_true", help="a table (default in a terminal)")


def _suggest(commands: Any) -> None:
    parser = _command(
        commands, "suggest", "suggest", "Suggest codes for a list of phrases, one a line.", SUGGEST_EXAMPLES
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="UTF-8 text; - reads standard input"
    )
    parser.add_argument("--mode", choices=["c", "a"], help="c: lexical; a: lexical and semantic")
    parser.add_argument("--top", type=positive_number, metavar="N", help="places in the list (default 10)")
    parser.add_argument(
        "--min-score",
        type=_share,
        metavar="X",
        help="no suggestion scored below X, 0 to 1 (default: the mode's own floor; 0: none)",
    )
    parser.add_argument("--each", action="store_true", help="one list a line instead of one for all")
    parser.add_argument(
        "--explain", action="store_true", help="say of each suggestion why it stands where it stands"
    )
    parser.add_argument(
        "--related",
        type=_count,
        default=0,
        metavar="N",
        help="with each suggestion its parent, N siblings and N other wordings: related, not mentioned",
    )
    _output(parser)
    filters = parser.add_argument_group("filters (none on by default)")
    # --no-... takes back what a file or the environment says
    flag: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
    filters.add_argument("--billable-only", **flag, help="terminal, assigned, not V in the sector")
    filters.add_argument("--sector", choices=["any", "ambulant", "stationaer"], help="for --billable-only")
    filters.add_argument("--valid-only", **flag, help="no phrases of validity 0")
    filters.add_argument("--chapters", type=_list, metavar="I,J", help="first letters, chapters 1-22 or IX")
    filters.add_argument("--prefix", type=_list, metavar="E11,I2", help="beginnings of codes")
    filters.add_argument("--groups", type=_list, metavar="I10-I15", help="ranges of three-character codes")
    filters.add_argument("--exclude-exotic", **flag, help="no codes that are very rare in Central Europe")
    filters.add_argument("--ifsg-only", **flag, help="only codes marked for reporting (IfSG)")
    filters.add_argument("--content-only", action="store_true", help="always on: placeholders never appear")
    filters.add_argument("--sex", choices=["m", "w", "d", "x"], help="d and x are never in conflict")
    filters.add_argument("--age", metavar="45|5m|3d", help="completed years, months or days")
    filters.add_argument("--strict", **flag, help="leave out what is in conflict with sex or age")


def _code(commands: Any) -> None:
    parser = _command(
        commands,
        "code",
        "code",
        "Show one code: tags, place in the hierarchy, inclusions, phrases.",
        "examples:\n  alpha-id code E11.72\n  alpha-id code E11.7     # why it is not suggested\n",
    )
    parser.add_argument("code", metavar="CODE", help="with or without dot and mark; a block or chapter, too")
    _output(parser)


def _info(commands: Any) -> None:
    parser = _command(
        commands, "info", "info", "Show editions, counts, the published build, and what is missing."
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="source files (default: data/)")
    _output(parser)


def _config(commands: Any) -> None:
    parser = _command(
        commands, "config", "configuration", "Show every setting, its value and where it comes from."
    )
    _output(parser)


def _index(commands: Any) -> None:
    index: argparse.ArgumentParser = commands.add_parser("index", help="Build from BfArM's files.")
    parser = _command(
        index.add_subparsers(metavar="build", required=True),
        "build",
        "index",
        "Build and publish from the files in data/ (the shipped sample where none lie there), for mode C; "
        "with --full also the vectors of mode A.",
        INDEX_EXAMPLES,
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument(
        "--sample",
        type=positive_number,
        metavar="N",
        help="smoke-test the provider with N phrases, estimate the rest",
    )
    extent.add_argument("--full", action="store_true", help="embed what is missing and publish for mode A")
    parser.add_argument("--confirm", action="store_true", help="say yes to what --full costs")
    parser.add_argument(
        "--limit-euros", type=float, metavar="X", help="most to spend (default: the estimate)"
    )
    parser.add_argument(
        "--limit-tokens", type=positive_number, metavar="N", help="likewise, where no price is known"
    )
    parser.add_argument(
        "--provider", choices=["builtin", "hub"], help="who makes the vectors (default builtin)"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="source files (default: data/)")
    parser.add_argument(
        "--edition", type=positive_number, metavar="YEAR", help="default: the newest in force"
    )
    parser.add_argument("--tolerance", type=int, metavar="N", help="malformed rows to leave out (default 0)")


def _eval(commands: Any) -> None:
    parser = _command(
        commands,
        "eval",
        "eval",
        "Measure the published build: recall with intervals, on cases drawn by seed and on gold lists.",
        EVAL_EXAMPLES,
    )
    parser.add_argument(
        "--mode",
        dest="modes",
        choices=["c", "a", "both"],
        help="default: both, c where the build holds no vectors",
    )
    parser.add_argument(
        "--cases",
        type=_count,
        default=1500,
        metavar="N",
        help="noise, paraphrases, self-retrieval (default 1500)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="the same seed, the same figures (default 1)"
    )
    parser.add_argument(
        "--holdout",
        action="store_true",
        help="the leading figures: N entries more, out of index and training (mode A trains anew, minutes)",
    )
    parser.add_argument(
        "--gold",
        type=Path,
        metavar="PATH",
        help="gold lists: .jsonl, a folder of them, or a TSV of phrase and code (default: data/gold)",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="where the page goes (default: storage/reports/)"
    )
    _output(parser)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must be from 0 to 1")
    return value


def positive_number(text: str) -> int:
    """Return a whole number of 1 or more; its name is what argparse says of another."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value
