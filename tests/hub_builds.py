"""The sample with vectors of the test hub: its settings, for a process and within one, and its building."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hub_server import TOKEN, HubServer

from alpha_id_runtime.config import Config
from alpha_id_runtime.hub_settings import HubSettings
from tests.command import alpha_id

if TYPE_CHECKING:
    import subprocess
    from collections import Counter
    from pathlib import Path

DIMENSION = 32
PRICE = 20.0


def hub_config(url: str, storage: Path, *, retries: int = 1, **settings: Any) -> Config:
    """Return the configuration for mode A on vectors of the test hub at ``url``; one further attempt."""
    hub = HubSettings(
        base_url=url,
        provider="test-hub",
        dimension=DIMENSION,
        retries=retries,
        price_per_million_tokens=PRICE,
    )
    return Config(**{"storage": storage, "mode": "a", "provider": "hub", "hub": hub, **settings})


def hub_variables(url: str, **more: str) -> dict[str, str]:
    """Return the same as variables of a process, with the token; ``more`` without the prefix ALPHA_ID_."""
    settings = {
        "PROVIDER": "hub",
        "HUB_BASE_URL": url,
        "HUB_PROVIDER": "test-hub",
        "HUB_DIMENSION": str(DIMENSION),
        "HUB_RETRIES": "1",
        "HUB_PRICE_PER_MILLION_TOKENS": str(PRICE),
        "HUB_TOKEN": TOKEN,
    }
    return {f"ALPHA_ID_{name}": value for name, value in (settings | more).items()}


@dataclass(frozen=True)
class HubBuild:
    """A storage built by the command line through the gate, and what the hub was sent for it."""

    storage: Path
    done: subprocess.CompletedProcess[bytes]
    texts: Counter[str] = field(repr=False)


def build_with_hub(data: Path, storage: Path) -> HubBuild:
    """Run ``index build --full --confirm`` against a hub of its own."""
    with HubServer(DIMENSION) as hub:
        arguments = ["index", "build", "--full", "--confirm", "--data", data, "--storage", storage]
        done = alpha_id(*arguments, variables=hub_variables(hub.url))
        return HubBuild(storage, done, hub.texts.copy())


def copy_published(source: Path, target: Path) -> Path:
    """Copy what a query side needs of a storage, and return the copy."""
    target.mkdir(parents=True)
    shutil.copytree(source / "builds", target / "builds")
    shutil.copy(source / "current.json", target)
    return target
