"""Which hub, which models, under which limits, and with which token.

Holds: ``HubSettings`` with its fingerprint and its pricing, and ``find_token``. Refuses: the network, and
every heavy import, so that reading a configuration stays fast.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from alpha_id_runtime.errors import ConfigError, ProviderError
from alpha_id_runtime.provider import Pricing

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_VARIABLES = ("ALPHA_ID_HUB_TOKEN", "IONOS_API_TOKEN")
"""Environment variables that may hold the token, the first one set wins."""

_TOKEN = re.compile(r"[\x21-\x7e]+")
_POSITIVE = ("dimension", "batch_size", "concurrency", "timeout", "chars_per_token")


@dataclass(frozen=True)
class HubSettings:
    """An OpenAI-compatible endpoint; the defaults are the IONOS AI Model Hub.

    Attributes:
        base_url: up to and including the version, without a slash at its end.
        provider: the name that enters the fingerprint; empty takes the host (and port) of ``base_url``. Set
            it to keep vectors when the same model moves to another address.
        model_version: raise it when the provider changes the weights behind one name.
        prefix: put before each text to embed ("query: " for models that want one).
        rerank_path: appended to ``base_url``.
        token_file: read when no variable of ``TOKEN_VARIABLES`` is set.
        token_required: False for servers of one's own that want none.
        batch_size: texts a request.
        concurrency: requests in flight at once.
        timeout: seconds for one attempt, from connecting to the last byte.
        retries: further attempts after the first.
        price_per_million_tokens: euros; None is unknown and counts as costing, 0 is free.
        chars_per_token: for estimates; German diagnoses take about 3 with the tokenizer of bge-m3.
        proxy: URL of a proxy. Those of the environment are not used: see ``hub.py``.
        ca_file: certificates to trust instead of the bundled ones, as for a proxy that opens TLS.
        allow_http: let texts and token travel unencrypted to a host that is not this one.

    Raises:
        ConfigError: a value that cannot be meant.
    """

    base_url: str = "https://openai.inference.de-txl.ionos.com/v1"
    provider: str = ""
    embedding_model: str = "BAAI/bge-m3"
    model_version: str = "1"
    dimension: int = 1024
    prefix: str = ""
    rerank_model: str = "Qwen/Qwen3-VL-Reranker-8B"
    rerank_path: str = "/rerank"
    token_file: str = "~/.ionos_token"  # noqa: S105 -- a place, not a secret
    token_required: bool = True
    batch_size: int = 64
    concurrency: int = 4
    timeout: float = 30.0
    retries: int = 5
    price_per_million_tokens: float | None = None
    chars_per_token: float = 3.0
    proxy: str | None = None
    ca_file: str | None = None
    allow_http: bool = False

    def __post_init__(self) -> None:
        """Refuse values that cannot be meant."""
        url = _split(self.base_url)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ConfigError(
                "hub.base_url is not an address: it must read like https://host/v1, with a port if need be."
            )
        if url.username or url.password or url.query or url.fragment:
            raise ConfigError(
                "hub.base_url must hold no user, password, query or fragment. The token belongs into "
                f"{TOKEN_VARIABLES[0]} or hub.token_file."
            )
        if url.scheme == "http" and not (self.allow_http or _is_loopback(url.hostname)):
            raise ConfigError(
                f"hub.base_url sends phrases of patients unencrypted to {url.hostname}. Use https, or set "
                "hub.allow_http = true where the network between is yours."
            )
        for name in _POSITIVE:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"hub.{name} is {value}; it must be greater than 0.")
        if self.retries < 0:
            raise ConfigError(f"hub.retries is {self.retries}; it must be 0 or more.")
        price = self.price_per_million_tokens
        if price is not None and not (math.isfinite(price) and price >= 0):
            raise ConfigError(
                f"hub.price_per_million_tokens is {price}; it must be 0 or more, or left out where unknown."
            )

    @property
    def host(self) -> str:
        """Host and port of ``base_url``, as shown in messages."""
        return _split(self.base_url).netloc

    @property
    def fingerprint(self) -> str:
        """Names provider, model, version, dimension and prefix; safe as a folder's name.

        Readable parts first, then 12 hex digits over the exact values, so that two that read alike differ.
        """
        exact = [
            self.provider or self.host,
            self.embedding_model,
            self.model_version,
            str(self.dimension),
            self.prefix,
        ]
        digest = hashlib.sha256(json.dumps(exact).encode()).hexdigest()[:12]
        readable = [re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.")[:40] for part in exact[:4]]
        return "_".join([*readable, digest])

    @property
    def pricing(self) -> Pricing:
        """What texts cost by these settings."""
        return Pricing(self.price_per_million_tokens, self.chars_per_token, len(self.prefix))


def find_token(settings: HubSettings, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the token: from the first variable of ``TOKEN_VARIABLES`` that is set, else from the file.

    None only where ``settings.token_required`` is False.

    Raises:
        ProviderError: there is none, the file cannot be read, or what was found is no token.
    """
    variables = os.environ if environ is None else environ
    for name in TOKEN_VARIABLES:
        if variables.get(name, "").strip():
            return _checked(variables[name], f"the environment variable {name}")
    if not settings.token_required:
        return None
    file = Path(settings.token_file).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ProviderError(
            f"There is no token for the hub at {settings.host}: {' and '.join(TOKEN_VARIABLES)} are not set "
            f"and {settings.token_file} does not exist. Write the token into that file (chmod 600), or set "
            f"{TOKEN_VARIABLES[0]}."
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ProviderError(
            f"The token in {settings.token_file} cannot be read ({reason}). Mend the file, or set "
            f"{TOKEN_VARIABLES[0]}."
        ) from None
    return _checked(text, settings.token_file)


def _checked(text: str, place: str) -> str:
    # A token with a line break or a stray sign would fail later, deep inside the HTTP client.
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise ProviderError(
            f"What {place} holds is no token: it must be one line of printable ASCII without blanks. "
            "Copy the token there again."
        )
    return token


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.rstrip("/"))
        _ = parts.port  # raises where it is not a number
    except ValueError:
        raise ConfigError("hub.base_url is not an address: it must read like https://host/v1.") from None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
