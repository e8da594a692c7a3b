"""``alpha-id code``: one code with all that the edition and the corpus say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alpha_id_runtime.build import open_published
from alpha_id_runtime.cli.common import print_json, print_lines, resolved_config, wants_json
from alpha_id_runtime.cli.render import describe_tags
from alpha_id_runtime.describe import describe_code
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.model import Tags

if TYPE_CHECKING:
    import argparse

_SHOWN_PHRASES = 25
_SHOWN_RUBRICS = ("inclusion", "exclusion", "definition", "note", "coding-hint", "text")


def run(options: argparse.Namespace) -> int:
    """Print the code and return 0."""
    config = resolved_config(options).config
    plain = describe_code(open_published(StorageLayout(config.storage)), options.code)
    if wants_json(options):
        print_json(plain)
    else:
        print_lines(_render(plain))
    return 0


def _render(plain: dict[str, Any]) -> list[str]:
    lines = [f"{plain['printed']}  {plain['description']}"]
    if plain["why_not"]:
        lines.append(f"  Never suggested: {plain['why_not']}")
    if plain["tags"]:
        tags = Tags(**plain["tags"])
        lines.append(f"  Tags: {describe_tags(tags)}; Para295 {tags.para295}, Para301 {tags.para301}")
    lines.append("  Place:")
    lines.extend(f"    {each['icd_code']}  {each['description']}" for each in plain["hierarchy"])
    if plain["children"]:
        lines.append("  Children:")
        lines.extend(f"    {each['icd_code']}  {each['description']}" for each in plain["children"])
    for kind in _SHOWN_RUBRICS:
        if plain["rubrics"].get(kind):
            lines.append(f"  {kind.capitalize()}:")
            lines.extend(f"    {text}" for text in plain["rubrics"][kind])
    if plain["phrases"]:
        lines.append(f"  Phrases ({len(plain['phrases'])}):")
        lines.extend(
            f"    {each['text']}  ({each['alpha_id'] or each['origin']}{_age(each)})"
            for each in plain["phrases"][:_SHOWN_PHRASES]
        )
        more = len(plain["phrases"]) - _SHOWN_PHRASES
        if more > 0:
            lines.append(f"    ... and {more} more (--json shows all)")
    return lines


def _age(phrase: dict[str, Any]) -> str:
    return "" if phrase["valid"] else ", no longer valid"
