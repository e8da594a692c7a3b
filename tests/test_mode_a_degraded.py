"""What a failing hub leaves of mode A: always an answer, and what failed, in words without the phrase."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from hub_server import TOKEN, HubServer

from alpha_id_runtime.config import SemanticConfig
from alpha_id_runtime.pipeline import Suggester
from tests.command import alpha_id
from tests.degraded import TEXT, by_command, check_reason, leaks, suggestions_of
from tests.hub_builds import DIMENSION, hub_config, hub_variables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import BuiltIn
    from tests.hub_builds import HubBuild

BUDGET = 0.6
# A hub that hangs would be waited for 60 s without a budget. What the rest of an answer takes on a busy
# machine (importing LanceDB, opening the index) is well below this.
PATIENCE = 15


@dataclass(frozen=True)
class Failure:
    """A fault of the hub, what is said of it, and the seconds allowed."""

    kind: str
    words: str
    budget: float = 8.0
    retry_after: str | None = None


FAILURES = [
    Failure("refuse", "cannot be reached"),
    Failure("hang", "did not answer", BUDGET),
    Failure("429", "asked too often (429), 2 times"),
    Failure("429", "no time is left", retry_after="120"),
    Failure("500", "a fault of its own (500), 2 times"),
    Failure("cut", "broke off its answer"),
    Failure("not_json", "not JSON"),
    Failure("wrong_count", "items for"),
    Failure("wrong_index", "two items for one text"),
    Failure("wrong_dimension", f"dimension {DIMENSION + 1}"),
    Failure("nan", "not finite"),
    Failure("zero", "without length"),
    Failure("401", "refused the token"),
    Failure("404", "no such path or model"),
    Failure("echo_400", "did not accept the request (400)"),
]
NAMES = [each.kind + (" with Retry-After" if each.retry_after else "") for each in FAILURES]


@pytest.fixture(scope="module")
def server() -> Iterator[HubServer]:
    """A hub of this module's own."""
    with HubServer(DIMENSION) as hub:
        yield hub


@pytest.fixture
def hub(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """The hub, counting from nought, and the token where it is looked for."""
    server.clear_fault()
    server.reset()
    monkeypatch.setenv("ALPHA_ID_HUB_TOKEN", TOKEN)
    yield server
    server.clear_fault()


# --- the hub


@pytest.mark.parametrize("failure", FAILURES, ids=NAMES)
def test_a_failing_hub_leaves_mode_c(hub: HubServer, hub_build: HubBuild, failure: Failure) -> None:
    """The very list of mode C, with the reason; once the hub is mended the same reader uses it again."""
    config = hub_config(hub.url, hub_build.storage, semantic=SemanticConfig(budget_seconds=failure.budget))
    suggester = Suggester.open(config)
    lexical = Suggester(suggester.build, replace(config, mode="c")).suggest(TEXT)
    hub.set_fault(failure.kind, retry_after=failure.retry_after)
    started = time.monotonic()
    result = suggester.suggest(TEXT)
    assert time.monotonic() - started < PATIENCE

    assert (result.diagnostics.mode, result.diagnostics.degraded) == ("c", True)
    check_reason(result.diagnostics.degraded_reason, failure.words)
    assert suggestions_of(result) == suggestions_of(lexical)
    assert result.suggestions
    assert result.diagnostics.ionos_calls >= (0 if failure.kind in {"refuse", "hang"} else 1)

    hub.clear_fault()
    mended = Suggester(suggester.build, replace(config, semantic=SemanticConfig()))
    for each in (mended, *([] if failure.kind == "hang" else [suggester])):
        again = each.suggest(TEXT).diagnostics
        assert (again.mode, again.degraded, again.degraded_reason) == ("a", False, None)


@pytest.fixture(scope="module")
def lexicalby_command(hub_build: HubBuild) -> Any:
    """What the command answers in mode C."""
    return by_command(hub_build.storage, "c", {})[0]


@pytest.fixture(scope="module")
def lexical_by_command(hub_build: HubBuild) -> Any:
    """What the command answers in mode C."""
    return by_command(hub_build.storage, "c", {})[0]


TOLD_BY_COMMAND = {"refuse", "hang", "cut", "wrong_dimension", "nan", "401", "echo_400"}


@pytest.mark.parametrize(
    "failure", [pytest.param(each, id=each.kind) for each in FAILURES if each.kind in TOLD_BY_COMMAND]
)
def test_the_command_answers_whatever_the_hub_does(
    hub: HubServer, hub_build: HubBuild, lexical_by_command: Any, failure: Failure
) -> None:
    """Exit code 0, mode C's list, the reason in the answer, nothing on standard error."""
    hub.set_fault(failure.kind, retry_after=failure.retry_after)
    variables = hub_variables(hub.url, SEMANTIC_BUDGET_SECONDS=str(failure.budget))
    answer, complaints = by_command(hub_build.storage, "a", variables)

    assert (answer["diagnostics"]["mode"], answer["diagnostics"]["degraded"]) == ("c", True)
    check_reason(answer["diagnostics"]["degraded_reason"], failure.words)
    assert answer["suggestions"] == lexical_by_command["suggestions"]
    assert complaints == b""


def test_without_a_token_nothing_is_sent(
    hub: HubServer,
    hub_build: HubBuild,
    lexical_by_command: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mode C answers, and says where the token is looked for."""
    nowhere = str(tmp_path / "no-token")
    variables = hub_variables(hub.url, HUB_TOKEN="", HUB_TOKEN_FILE=nowhere) | {"IONOS_API_TOKEN": ""}
    answer, _ = by_command(hub_build.storage, "a", variables)
    assert answer["suggestions"] == lexical_by_command["suggestions"]
    check_reason(answer["diagnostics"]["degraded_reason"], "There is no token")

    for name in ("ALPHA_ID_HUB_TOKEN", "IONOS_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    config = hub_config(hub.url, hub_build.storage)
    diagnostics = (
        Suggester.open(replace(config, hub=replace(config.hub, token_file=nowhere))).suggest(TEXT).diagnostics
    )
    assert (diagnostics.mode, diagnostics.degraded, diagnostics.ionos_calls) == ("c", True, 0)
    check_reason(diagnostics.degraded_reason, "no-token does not exist")
    assert hub.count == 0


@pytest.mark.parametrize("kind", ["500", "429", "cut"])
def test_a_passing_fault_is_not_noticed(hub: HubServer, hub_build: HubBuild, kind: str) -> None:
    """The first request fails, the second is answered: the same list as without a fault, two calls."""
    suggester = Suggester.open(hub_config(hub.url, hub_build.storage))
    calm = suggester.suggest(TEXT)
    hub.set_fault(kind, times=1)
    result = suggester.suggest(TEXT)

    assert (result.diagnostics.mode, result.diagnostics.degraded) == ("a", False)
    assert result.diagnostics.ionos_calls == 2
    assert suggestions_of(result) == suggestions_of(calm)


def test_another_order_with_the_right_index_is_accepted(hub: HubServer, hub_build: HubBuild) -> None:
    """It is put in order, not refused."""
    suggester = Suggester.open(hub_config(hub.url, hub_build.storage))
    calm = suggester.suggest(TEXT)
    hub.set_fault("wrong_order")
    result = suggester.suggest(TEXT)

    assert not result.diagnostics.degraded
    assert suggestions_of(result) == suggestions_of(calm)


RERANK_FAILURES = [
    Failure("refuse", "cannot be reached"),
    Failure("hang", "did not answer", 3.0),
    Failure("429", "asked too often"),
    Failure("500", "a fault of its own"),
    Failure("cut", "broke off its answer"),
    Failure("wrong_count", "items for"),
    Failure("wrong_index", "two items for one text"),
    Failure("nan", "not a finite number"),
    Failure("401", "refused the token"),
    Failure("echo_400", "did not accept"),
]


@pytest.mark.parametrize("failure", RERANK_FAILURES, ids=[each.kind for each in RERANK_FAILURES])
@pytest.mark.parametrize("provider", ["builtin", "hub"])
def test_a_failing_reranker_leaves_the_order_of_the_fusion(
    hub: HubServer, hub_build: HubBuild, built_in: BuiltIn, provider: str, failure: Failure
) -> None:
    """Still mode A: the vectors were there. Degraded, and it says which part failed."""
    if (provider, failure.kind) == ("hub", "refuse"):
        pytest.skip("a closed port closes both endpoints")
    storage = hub_build.storage if provider == "hub" else built_in.storage
    budget = SemanticConfig(budget_seconds=failure.budget)
    fusing = Suggester.open(hub_config(hub.url, storage, provider=provider, semantic=budget))
    fused = fusing.suggest(TEXT)
    hub.set_fault(failure.kind, path="rerank")
    result = Suggester(fusing.build, replace(fusing.config, reranker="hub")).suggest(TEXT)

    assert (result.diagnostics.mode, result.diagnostics.degraded) == ("a", True)
    check_reason(result.diagnostics.degraded_reason, failure.words)
    assert "local reranker instead" in str(result.diagnostics.degraded_reason)
    assert suggestions_of(result) == suggestions_of(fused)


# --- privacy


def test_nothing_of_a_phrase_is_left_behind(
    hub: HubServer, hub_build: HubBuild, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in logs, not on standard error, not in any file of the storage, whatever failed."""
    storage = tmp_path / "storage"
    shutil.copytree(hub_build.storage, storage)
    caplog.set_level(logging.DEBUG)
    config = hub_config(
        hub.url, storage, retries=0, reranker="hub", semantic=SemanticConfig(budget_seconds=BUDGET)
    )
    suggester = Suggester.open(config)
    for path in (None, "embeddings", "rerank"):
        for kind in ("hang", "500", "cut", "echo_400", "wrong_count", "nan", "refuse"):
            hub.set_fault(kind, path=path)
            reason = suggester.suggest(TEXT).diagnostics.degraded_reason
            assert not leaks(str(reason).encode())
    assert TOKEN not in caplog.text
    assert not leaks(caplog.text.encode())

    for kind in ("echo_400", "cut"):
        hub.set_fault(kind)
        done = alpha_id(
            "suggest",
            "--mode",
            "a",
            "--debug",
            "--storage",
            storage,
            stdin=TEXT.encode(),
            variables=hub_variables(hub.url, HUB_RETRIES="0"),
        )
        assert done.returncode == 0
        assert not leaks(done.stderr)
    files = [path for path in storage.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if leaks(path.read_bytes())] == []
