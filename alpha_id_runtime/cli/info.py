"""``alpha-id info``: what is built, of which editions, what is missing and the command for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alpha_id_runtime import __version__
from alpha_id_runtime.build import open_build
from alpha_id_runtime.cli import builder
from alpha_id_runtime.cli.common import print_json, print_lines, resolved_config, wants_json
from alpha_id_runtime.errors import AlphaIdError
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.manifest import BUILD_COMMAND, published_build_id
from alpha_id_runtime.notice import NOTICE

if TYPE_CHECKING:
    import argparse

    from alpha_id_runtime.config import Config


def run(options: argparse.Namespace) -> int:
    """Print the state of the installation and return 0, whatever is missing."""
    config = resolved_config(options).config
    plain = collect(config)
    if wants_json(options):
        print_json(plain)
    else:
        print_lines(_render(plain))
    return 0


def collect(config: Config) -> dict[str, Any]:
    """Return the state: build, source files where the builder is installed, and what is missing."""
    storage = StorageLayout(config.storage)
    missing: list[dict[str, str]] = []
    build: dict[str, Any] | None = None
    try:
        build_id = published_build_id(storage)
        if build_id is None:
            missing.append({"what": "a published build", "command": BUILD_COMMAND})
        else:
            build = open_build(storage.build(build_id)).manifest.to_dict()
            if build["fingerprint"] is None:
                missing.append({"what": "vectors for mode A", "command": "alpha-id index build --full"})
    except AlphaIdError as error:
        missing.append({"what": str(error), "command": BUILD_COMMAND})
    sources, problem = _sources(config)
    if problem is not None:
        missing.append({"what": problem, "command": "put the official files into the data folder"})
    return {
        "version": __version__,
        "data": str(config.data),
        "storage": str(config.storage),
        "build": build,
        "sources": sources,
        "missing": missing,
        "notice": NOTICE,
    }


def _sources(config: Config) -> tuple[list[dict[str, Any]], str | None]:
    """Return (the source files found, why there are none); nothing where the builder is not installed."""
    if not builder.is_installed():
        return [], None
    try:
        files = builder.load("sources.releases", "Looking for source files").find_editions(config.data)
    except AlphaIdError as error:
        return [], str(error)
    return [{"kind": each.kind, "edition": each.year, "name": each.name} for each in files], None


def _render(plain: dict[str, Any]) -> list[str]:
    lines = [f"alpha-id {plain['version']}", f"data     {plain['data']}", f"storage  {plain['storage']}"]
    build = plain["build"]
    if build:
        lines.append(f"build    {build['build_id']}, made {build['created']}")
        lines.extend(
            f"         {kind}: edition {build[kind]['edition']}, {build[kind]['name']}"
            for kind in ("alpha_id", "claml")
        )
        lines.append("         " + ", ".join(f"{name} {count:,}" for name, count in build["counts"].items()))
        vectors = build["fingerprint"] or "none: lexical-only (mode C)"
        lines.append(f"         vectors: {vectors}")
        lines.extend(f"         warning: {warning}" for warning in build["warnings"])
    lines.extend(f"source   {each['kind']} {each['edition']}: {each['name']}" for each in plain["sources"])
    lines.extend(f"missing  {each['what']}; make it with: {each['command']}" for each in plain["missing"])
    return [*lines, plain["notice"]]
