"""alpha-id's query side: German diagnosis wordings to ICD-10-GM codes, from a published build.

Holds the public names. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.errors import (
        AlphaIdError,
        ArtefactsIncompatibleError,
        ArtefactsMissingError,
        ConfigError,
        GateError,
        ProviderError,
        SourceError,
        StorageError,
        UsageError,
    )
    from alpha_id_runtime.model import Filter, Suggestion, SuggestResult
    from alpha_id_runtime.pipeline import Request, Suggester

__version__ = "0.1.0"

_HOMES = {
    "config": ("Config",),
    "errors": (
        "AlphaIdError",
        "ArtefactsIncompatibleError",
        "ArtefactsMissingError",
        "ConfigError",
        "GateError",
        "ProviderError",
        "SourceError",
        "StorageError",
        "UsageError",
    ),
    "model": ("Filter", "SuggestResult", "Suggestion"),
    "pipeline": ("Request", "Suggester"),
}

__all__ = [
    "AlphaIdError",
    "ArtefactsIncompatibleError",
    "ArtefactsMissingError",
    "Config",
    "ConfigError",
    "Filter",
    "GateError",
    "ProviderError",
    "Request",
    "SourceError",
    "StorageError",
    "SuggestResult",
    "Suggester",
    "Suggestion",
    "UsageError",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
