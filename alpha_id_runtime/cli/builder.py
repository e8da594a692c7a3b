"""The one door from the runtime to the builder: opened by a command that needs it, never before.

Holds: loading a module of ``alpha_id_assets`` late, and the words for where it is not installed. Refuses: any
use of it beyond handing it out.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from alpha_id_runtime.errors import UsageError

# What the builder needs beyond the runtime's own dependencies.
_NEEDED = ("lxml", "polars", "scipy")


def is_installed() -> bool:
    """Tell whether the builder can be loaded here."""
    return all(find_spec(name) is not None for name in _NEEDED)


def load(module: str, purpose: str) -> Any:
    """Return the module ``alpha_id_assets.<module>``.

    Args:
        module: its dotted name within the package.
        purpose: begins the message, as in "Building".

    Raises:
        UsageError: the extra that it needs is not installed.
    """
    try:
        for name in _NEEDED:
            import_module(name)
        return import_module(f"alpha_id_assets.{module}")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{purpose} needs the extra [assets] ({error.name} is missing): pip install 'alpha-id[assets]'"
        ) from error
