"""Settings and token of a hub: what makes a fingerprint, what is refused, where a token is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from alpha_id_runtime.errors import ConfigError, ProviderError
from alpha_id_runtime.hub_settings import HubSettings, find_token

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:8080/v1"


def test_the_fingerprint_names_all_that_makes_a_vector() -> None:
    """Provider, model, version, dimension and prefix each change it; limits and prices do not."""
    base = HubSettings(base_url=URL)
    others = [
        HubSettings(base_url="https://example.org/v1"),
        HubSettings(base_url=URL, provider="elsewhere"),
        HubSettings(base_url=URL, embedding_model="intfloat/e5"),
        HubSettings(base_url=URL, model_version="2"),
        HubSettings(base_url=URL, dimension=512),
        HubSettings(base_url=URL, prefix="query: "),
        HubSettings(base_url=URL, prefix="query:"),
    ]
    fingerprints = [base.fingerprint, *(other.fingerprint for other in others)]
    assert len(set(fingerprints)) == len(fingerprints)
    same = HubSettings(base_url=URL, timeout=1, batch_size=1, price_per_million_tokens=3.0)
    assert same.fingerprint == base.fingerprint
    assert "/" not in HubSettings().fingerprint
    assert "bge-m3" in HubSettings().fingerprint


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"base_url": "inference.example"}, "base_url"),
        ({"base_url": "https://user:word@example.org/v1"}, "base_url"),
        ({"base_url": "http://example.org/v1"}, "unencrypted"),
        ({"base_url": "https://example.org:port/v1"}, "base_url"),
        ({"dimension": 0}, "dimension"),
        ({"timeout": float("nan")}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"price_per_million_tokens": -0.1}, "price_per_million_tokens"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options: dict[str, Any], name: str) -> None:
    """The error names the setting; a password in the address is not repeated."""
    with pytest.raises(ConfigError, match=name) as caught:
        HubSettings(**options)
    assert "word@" not in str(caught.value)


def test_a_price_of_nothing_is_free_and_an_unknown_one_is_not() -> None:
    """Only a configured 0 costs nothing."""
    assert HubSettings().pricing.costs_money
    assert HubSettings(price_per_million_tokens=0.02).pricing.costs_money
    assert not HubSettings(price_per_million_tokens=0).pricing.costs_money


def test_the_token_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    """The project's own variable first, then that of IONOS, then the file; blanks around it do not count."""
    file = tmp_path / "token"
    file.write_text("from-file\n")
    settings = HubSettings(token_file=str(file))
    both = {"ALPHA_ID_HUB_TOKEN": " own ", "IONOS_API_TOKEN": "theirs"}
    assert find_token(settings, both) == "own"
    assert find_token(settings, {"IONOS_API_TOKEN": "theirs", "ALPHA_ID_HUB_TOKEN": ""}) == "theirs"
    assert find_token(settings, {}) == "from-file"


def test_a_missing_token_names_its_cure(tmp_path: Path) -> None:
    """The error says where a token is looked for; servers of one's own may do without."""
    absent = str(tmp_path / "absent")
    with pytest.raises(ProviderError, match=r"ALPHA_ID_HUB_TOKEN.*absent"):
        find_token(HubSettings(token_file=absent), {})
    assert find_token(HubSettings(token_file=absent, token_required=False), {}) is None


def test_a_broken_token_is_not_shown(tmp_path: Path) -> None:
    """Two lines, blanks or signs beyond ASCII are no token; the message names the place only."""
    file = tmp_path / "token"
    file.write_text("first-line\nsecond-line\n")
    with pytest.raises(ProviderError, match="no token") as caught:
        find_token(HubSettings(token_file=str(file)), {})
    assert "first-line" not in str(caught.value)
    with pytest.raises(ProviderError, match="IONOS_API_TOKEN"):
        find_token(HubSettings(), {"IONOS_API_TOKEN": "Schlüssel"})
