"""Configuration: TOML file, environment, flags, in that order of rising weight. Read once, checked, frozen.

Holds: every setting with its default, and where each value came from. Refuses: secrets (a token has its own
file or variable) and reading anything at import.
"""

from __future__ import annotations

import math
import os
import tomllib
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from alpha_id_runtime.errors import ConfigError
from alpha_id_runtime.hub_settings import HubSettings
from alpha_id_runtime.model import Filter, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

ENVIRONMENT_PREFIX = "ALPHA_ID_"
FILE_NAME = "alpha-id.toml"
_SHARES = ("min_score", "lexical.min_score", "fusion.min_score", "fusion.min_lexical")
# A union with a Literal is of the older kind.
_UNIONS = (types.UnionType, typing.Union)
_AT_LEAST_ONE = ("top", "lexical.pool", "lexical.rrf_k", "semantic.pool", "fusion.rrf_k", "fusion.pool")


def _checkout() -> Path:
    """Return the checkout this package lies in, the working folder where it is installed elsewhere."""
    above = Path(__file__).resolve().parents[1]
    return above if (above / "pyproject.toml").is_file() else Path.cwd()


@dataclass(frozen=True)
class LexicalConfig:
    """Pools and weights of lexical retrieval, measured on held-out entries (docs/decisions/0003).

    ``min_score``: mode C's floor, chosen by ``python -m bench.floor --mode c``.
    """

    pool: int = 100
    rrf_k: int = 10
    trigram_weight: float = 1.0
    word_weight: float = 0.3
    similarity_weight: float = 0.5
    agreement_weight: float = 0.5
    min_score: float = 0.45


@dataclass(frozen=True)
class SemanticConfig:
    """Pool of dense retrieval, and the seconds a whole request may take before mode C answers alone."""

    pool: int = 64
    budget_seconds: float = 8.0


@dataclass(frozen=True)
class FusionConfig:
    """How mode A mixes its arms (rank weights), and the calibrated sum that ranks what they found.

    Measured on held-out entries with an encoder that never saw them (docs/decisions/0004). ``trust_*``: what
    the trees say counts for the less, the less even the best candidate is like the text. ``min_score``:
    mode A's floor, for lines that mode C, too, finds unlike any entry (``min_lexical``): both arms must doubt
    a line. Chosen on 2,000 lines written for practice (docs/decisions/0006), of whose right codes it loses
    six in ten thousand; ``python -m bench.floor --mode a`` shows what it costs on phrases of the corpus.
    """

    rrf_k: int = 10
    lexical_rank_weight: float = 0.6
    semantic_rank_weight: float = 1.0
    prototype_rank_weight: float = 0.6
    prototype_pool: int = 20
    pool: int = 200
    lexical_weight: float = 0.2
    dense_weight: float = 1.0
    prototype_weight: float = 1.0
    slope: float = 6.0
    intercept: float = -8.0
    trust_slope: float = 8.0
    trust_intercept: float = -8.0
    learned_pool: int = 24
    hub_pool: int = 30
    min_score: float = 0.15
    min_lexical: float = 0.5


@dataclass(frozen=True)
class ReadingConfig:
    """How a line is read before it is matched: whether at all, and how many variants of it are tried."""

    enabled: bool = True
    variants: int = 4


@dataclass(frozen=True)
class BuildConfig:
    """How sources are read: which edition (0 = the newest in force), how many malformed rows are bearable.

    ``row_band``: by which share a row count may differ from the edition before.
    """

    edition: int = 0
    tolerance: int = 0
    row_band: float = 0.25


@dataclass(frozen=True)
class Config:
    """All settings. Paths are absolute.

    ``min_score``: hits scored below it are no suggestions. None = the floor of the mode that answers, which
    asks only of a line's best hit whether the line holds a diagnosis at all.
    """

    data: Path = field(default_factory=lambda: _checkout() / "data")
    storage: Path = field(default_factory=lambda: _checkout() / "storage")
    mode: Mode = "a"
    provider: Literal["builtin", "hub"] = "builtin"
    reranker: Literal["fusion", "learned", "hub"] = "learned"
    top: int = 10
    min_score: float | None = None
    reading: ReadingConfig = field(default_factory=ReadingConfig)
    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    semantic: SemanticConfig = field(default_factory=SemanticConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    build: BuildConfig = field(default_factory=BuildConfig)
    filter: Filter = field(default_factory=Filter)
    hub: HubSettings = field(default_factory=HubSettings)


@dataclass(frozen=True)
class Resolved:
    """A configuration and, for each ``section.key``, where its value comes from."""

    config: Config
    origins: Mapping[str, str]

    def with_flags(self, flags: Mapping[str, Any]) -> Resolved:
        """Return the same with command line values laid over it; a value of None was not given.

        Raises:
            ConfigError: a value does not fit its setting.
        """
        given = {key: value for key, value in flags.items() if value is not None}
        named = {key: (value, "flag") for key, value in given.items()}
        return _lay_over(self, named)


def resolve(
    path: Path | None = None, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Resolved:
    """Return the configuration that holds.

    Args:
        path: a TOML file; None looks for ``ALPHA_ID_CONFIG``, then ``alpha-id.toml`` in ``folder``.
        environment: defaults to the process's. ``ALPHA_ID_STORAGE``, ``ALPHA_ID_LEXICAL_POOL``.
        folder: defaults to the checkout.

    Raises:
        ConfigError: a file that is missing or no TOML, an unknown key, a value of the wrong kind.
    """
    variables = os.environ if environment is None else environment
    resolved = Resolved(Config(), dict.fromkeys(_known(), "default"))
    named = path or (Path(variables["ALPHA_ID_CONFIG"]) if variables.get("ALPHA_ID_CONFIG") else None)
    file = named or (folder or _checkout()) / FILE_NAME
    if named is not None or file.is_file():
        resolved = _lay_over(resolved, _from_file(file))
    return _lay_over(resolved, _from_environment(variables))


def listing(resolved: Resolved) -> dict[str, dict[str, Any]]:
    """Return ``{"section.key": {"value", "from"}}`` for every setting, as ``alpha-id config`` prints it."""
    rows = {}
    for key in _known():
        value: Any = resolved.config
        for part in key.split("."):
            value = getattr(value, part)
        plain = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        rows[key] = {"value": plain, "from": resolved.origins[key]}
    return rows


@lru_cache(maxsize=1)
def _known() -> dict[str, Any]:
    """Return every ``section.key`` with its type."""
    known: dict[str, Any] = {}
    top = typing.get_type_hints(Config)
    for each in fields(Config):
        kind = top[each.name]
        if is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            known.update({f"{each.name}.{inner.name}": hints[inner.name] for inner in fields(kind)})
        else:
            known[each.name] = kind
    return known


def _from_file(file: Path) -> dict[str, tuple[Any, str]]:
    try:
        plain = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"The configuration file {file} is not there.") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"The configuration file {file} cannot be read as TOML: {error}.") from error
    values: dict[str, tuple[Any, str]] = {}
    for name, value in plain.items():
        if isinstance(value, dict):
            values.update({f"{name}.{key}": (inner, str(file)) for key, inner in value.items()})
        else:
            values[name] = (value, str(file))
    return values


def _from_environment(variables: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    values = {}
    for key in _known():
        variable = ENVIRONMENT_PREFIX + key.replace(".", "_").upper()
        if variables.get(variable):
            values[key] = (variables[variable], variable)
    return values


def _lay_over(resolved: Resolved, values: Mapping[str, tuple[Any, str]]) -> Resolved:
    config, origins, known = resolved.config, dict(resolved.origins), _known()
    for key, (value, origin) in values.items():
        if key not in known:
            raise ConfigError(f"{origin}: there is no setting {key}. `alpha-id config` lists them all.")
        fitting = _fit(key, value, known[key], origin)
        section, _, inner = key.rpartition(".")
        if section:
            config = replace(config, **{section: replace(getattr(config, section), **{inner: fitting})})
        else:
            config = replace(config, **{inner: fitting})
        origins[key] = origin
    return Resolved(config, origins)


def _fit(key: str, value: Any, kind: Any, origin: str) -> Any:
    """Return ``value`` as ``kind``; text (from the environment) is converted, other kinds must fit.

    Whole numbers are counts: none is negative, and those of ``_AT_LEAST_ONE`` are not 0. ``_SHARES`` are from
    0 to 1.
    """
    least = 1 if key in _AT_LEAST_ONE else 0
    try:
        fitting = _converted(value, kind)
    except (KeyError, OverflowError, TypeError, ValueError):
        fitting = None
        fits = False
    else:
        fits = kind is not int or fitting >= least
        if key in _SHARES and fitting is not None:
            fits = 0 <= fitting <= 1
    if not fits:
        wanted = f"a whole number of {least} or more" if kind is int else _describe(kind)
        wanted += " from 0 to 1" if key in _SHARES else ""
        raise ConfigError(f"{origin}: {key} = {value!r} is not {wanted}.")
    return fitting


def _converted(value: Any, kind: Any) -> Any:
    """Return ``value`` as ``kind``, or raise TypeError or ValueError."""
    shape = typing.get_origin(kind) or kind
    choices = typing.get_args(kind)
    if shape in _UNIONS:
        inner = next(each for each in choices if each is not types.NoneType)
        return None if value in ("", "none") else _converted(value, inner)
    if shape is tuple:
        return _texts(value)
    if shape is Path:
        return Path(value).expanduser().absolute()
    if shape is bool and isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
    if shape in (int, float) and not isinstance(value, bool):
        number = shape(value)
        if number != float(value) or not math.isfinite(number):
            raise ValueError
        return number
    if (shape is Literal and value in choices) or (shape in (str, bool) and isinstance(value, shape)):
        return value
    raise TypeError


def _texts(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise TypeError
    return tuple(part.strip() for part in parts)


def _describe(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(typing.get_args(kind))
    if typing.get_origin(kind) in _UNIONS:
        return _describe(next(each for each in typing.get_args(kind) if each is not types.NoneType))
    names = {float: "a number", bool: "true or false", str: "text", Path: "the path of a folder or file"}
    return names.get(kind, "a list of texts")
