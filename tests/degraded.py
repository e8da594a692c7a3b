"""A phrase that must leave no trace, and what every degraded answer must be like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hub_server import TOKEN

from tests.command import alpha_id

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import SuggestResult

SECRET = "Zwetschgenröther"
TEXT = f"Oberschenkelbruch Frau {SECRET}\nNervenleiden bei Zuckerkrankheit\nHerzschwäche"
# As phrases may leak: as they are, in JSON, folded, in another encoding.
SPELLINGS = [
    SECRET.encode(),
    json.dumps(SECRET)[1:-1].encode(),
    b"zwetschgenroether",
    SECRET.encode("latin-1"),
    SECRET.encode("utf-16-le"),
]


def suggestions_of(result: SuggestResult) -> Any:
    """Return the list as in JSON."""
    return json.loads(json.dumps(result.to_dict()))["suggestions"]


def by_command(storage: Path, mode: str, variables: dict[str, str]) -> tuple[Any, bytes]:
    """Return the answer of the command, which must succeed, and all that it wrote."""
    done = alpha_id(
        "suggest", "--json", "--mode", mode, "--storage", storage, stdin=TEXT.encode(), variables=variables
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), done.stderr


def check_reason(reason: str | None, words: str) -> None:
    """See that it is a paragraph that says what failed, and holds neither phrase nor token."""
    assert reason is not None
    assert words in reason
    assert "\n" not in reason
    assert reason.rstrip().endswith((".", "--full"))
    assert TOKEN not in reason
    for line in TEXT.splitlines():
        assert not [word for word in line.split() if len(word) > 3 and word in reason]


def leaks(data: bytes) -> bool:
    """Tell whether anything of the secret phrase stands in ``data``."""
    return any(spelling in data or spelling.lower() in data for spelling in SPELLINGS)
