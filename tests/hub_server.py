"""A hub on loopback: speaks ``/v1/embeddings`` and ``/v1/rerank``, counts what it is sent, fails on request.

Holds: ``HubServer`` for use inside a test, and a script for use as a process of its own
(``python tests/hub_server.py --port 0 --log FILE``; the first line it prints is its base URL, faults are
switched by POST to ``/control``: the fields of ``Fault``, or null; GET returns the counts). Vectors are a
function of the text alone: character trigrams hashed to signed places, so that texts alike are near each
other, plus a little of the whole text, so that no two are equal.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import random
import socket
import threading
from collections import Counter
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = "test-token"
KINDS = {
    "refuse",  # the port is closed
    "hang",  # no answer until the fault is cleared
    "429",
    "500",
    "401",
    "404",
    "cut",  # less of the body than announced
    "not_json",
    "echo_400",  # a refusal that echoes the input, as some servers do
    "wrong_count",
    "wrong_order",  # items shuffled, each with its right index: to be put in order by the client
    "wrong_index",
    "wrong_dimension",
    "nan",
    "zero",
}


@dataclass(frozen=True)
class Fault:
    """What goes wrong: for the next ``times`` requests (None: all), at ``path`` (None: both)."""

    kind: str
    times: int | None = None
    path: str | None = None
    retry_after: str | None = None


def vector_of(text: str, dimension: int) -> list[float]:
    """Return the unit vector of ``text``."""
    values = [0.0] * dimension
    padded = f"  {text.lower()}  "
    for start in range(len(padded) - 2):
        digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=16).digest()
        for place, sign in zip(digest[::2], digest[1::2], strict=True):
            values[place % dimension] += 1.0 if sign & 1 else -1.0
    own = random.Random(hashlib.sha256(text.encode()).digest())
    values = [value + own.uniform(-0.2, 0.2) for value in values]
    norm = math.sqrt(sum(value * value for value in values))
    return [value / norm for value in values]


def relevance_of(query: str, document: str) -> float:
    """Return the share of trigrams that two texts have in common, within 0 and 1."""
    left, right = (
        {text[i : i + 3] for i in range(len(text) - 2)} for text in (query.lower(), document.lower())
    )
    return len(left & right) / max(1, len(left | right))


class HubServer:
    """The server, listening from the moment it is made; a context manager that stops it.

    Args:
        dimension: length of a vector.
        port: 0 takes a free one.
        token: bearer token it wants; None wants none.
        log: each text it is sent is appended here as one JSON line, before it is answered.
        rerank_shape: ``results`` or ``data``.
        max_batch: most texts of a request; more are refused with 413.
    """

    def __init__(
        self,
        dimension: int = 32,
        *,
        port: int = 0,
        token: str | None = TOKEN,
        log: Path | None = None,
        rerank_shape: str = "results",
        max_batch: int = 10_000,
    ) -> None:
        """Listen at once."""
        self.dimension, self.token, self.log = dimension, token, log
        self.rerank_shape, self.max_batch = rerank_shape, max_batch
        self.fault: Fault | None = None
        self.texts: Counter[str] = Counter()
        """How often each text to embed was sent, failed requests included."""
        self.requests: Counter[str] = Counter()
        """Requests by path."""
        self.tokens = 0
        """Tokens reported as used."""
        self.headers: list[dict[str, str]] = []
        self.on_request: Callable[[int], None] | None = None
        """Called with the number of a request when it has come in, before it is answered."""
        self.on_answer: Callable[[int], None] | None = None
        """Called with the number of a request when its answer has gone out."""
        self.connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._server: ThreadingHTTPServer | None = None
        self.port = port
        self._listen()

    @property
    def url(self) -> str:
        """The base URL, up to and including /v1."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def count(self) -> int:
        """All requests so far."""
        return self.requests.total()

    def set_fault(self, kind: str, **options: Any) -> None:
        """Switch a fault on, in place of any other."""
        if kind not in KINDS:
            raise ValueError(kind)
        self.clear_fault()
        with self._changed:
            self.fault = Fault(kind, **options)
        if kind == "refuse":
            self._close()

    def clear_fault(self) -> None:
        """Switch all faults off; what hangs is let go."""
        with self._changed:
            self.fault = None
            self._changed.notify_all()
        self._listen()

    def reset(self) -> None:
        """Forget what was counted."""
        with self._changed:
            self.texts.clear()
            self.requests.clear()
            self.headers.clear()
            self.tokens = 0

    def stop(self) -> None:
        """Close the port and let go what hangs."""
        with self._changed:
            self.fault = None
            self._changed.notify_all()
        self._close()

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _listen(self) -> None:
        if self._server is not None:
            return
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            # Connections kept alive would be served on by their own threads.
            with self._changed:
                open_ones, self.connections = self.connections, set()
            for connection in open_ones:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def take(self, path: str, texts: list[str], headers: dict[str, str]) -> tuple[int, Fault | None]:
        """Count a request; return its number and the fault that meets it."""
        with self._changed:
            self.requests[path] += 1
            self.headers.append(headers)
            number = self.requests.total()
            if path == "embeddings":
                self.texts.update(texts)
                if self.log:
                    with self.log.open("a", encoding="utf-8") as out:
                        out.writelines(json.dumps(text) + "\n" for text in texts)
            fault = self.fault
            if fault is None or (fault.path is not None and fault.path != path):
                return number, None
            if fault.times is not None:
                self.fault = replace(fault, times=fault.times - 1) if fault.times > 1 else None
            return number, fault

    def wait_while_hanging(self) -> None:
        """Return once the fault is cleared or the server stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self.fault is None or self.fault.kind != "hang")

    def add_tokens(self, tokens: int) -> None:
        """Count tokens reported as used."""
        with self._changed:
            self.tokens += tokens

    def state(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        with self._changed:
            return {
                "requests": dict(self.requests),
                "texts": dict(self.texts),
                "tokens": self.tokens,
                "fault": asdict(self.fault) if self.fault else None,
            }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that are killed in the middle are the point."""


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        """Keep the connection, so that a closed port closes it too."""
        super().setup()
        self.hub.connections.add(self.connection)

    def finish(self) -> None:
        """Forget the connection."""
        self.hub.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        """Answer ``/control`` with the counts."""
        self._json(200, self.hub.state())

    def do_POST(self) -> None:
        """Answer the two endpoints, and switch faults by ``/control``."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/control":
            if asked is None:
                self.hub.clear_fault()
            else:
                self.hub.set_fault(**asked)
            self._json(200, {})
            return
        path = self.path.removeprefix("/v1/")
        if path not in {"embeddings", "rerank"}:
            self._json(404, {"error": "no such path"})
            return
        texts = asked["input"] if path == "embeddings" else asked["documents"]
        number, fault = self.hub.take(path, texts, dict(self.headers.items()))
        if self.hub.on_request:
            self.hub.on_request(number)
        if self.hub.token is not None and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self._json(401, {"error": "wrong token"})
        elif len(texts) > self.hub.max_batch:
            self._json(413, {"error": "too many texts"})
        elif not self._fail_by_status(fault, asked):
            self._answer(path, asked, fault.kind if fault else None)
        if self.hub.on_answer:
            self.hub.on_answer(number)

    def _fail_by_status(self, fault: Fault | None, asked: Any) -> bool:
        kind = fault.kind if fault else None
        if kind == "hang":
            self.hub.wait_while_hanging()
            self.close_connection = True
        elif kind in {"429", "500", "401", "404"}:
            self._json(int(kind), {"error": "as asked"}, retry_after=fault.retry_after)
        elif kind == "echo_400":
            self._json(400, {"error": f"cannot process {asked}"})
        elif kind == "not_json":
            self._send(200, b"<html>sign in</html>")
        else:
            return False
        return True

    def _answer(self, path: str, asked: Any, kind: str | None) -> None:
        items = self._embeddings(asked, kind) if path == "embeddings" else self._ranked(asked, kind)
        if kind == "wrong_count":
            items = items[:-1]
        elif kind == "wrong_order":
            items = items[::-1]
        elif kind == "wrong_index":
            items = [{**item, "index": 0} for item in items]
        if path == "embeddings":
            tokens = sum(len(text.split()) + 2 for text in asked["input"])
            self.hub.add_tokens(tokens)
            whole = {"object": "list", "data": items, "usage": {"total_tokens": tokens}}
        else:
            whole = {self.hub.rerank_shape: items}
        body = json.dumps(whole).encode()
        self._send(200, body, cut=len(body) // 2 if kind == "cut" else None)

    def _embeddings(self, asked: Any, kind: str | None) -> list[dict[str, Any]]:
        dimension = self.hub.dimension + (1 if kind == "wrong_dimension" else 0)
        vectors = [vector_of(text, dimension) for text in asked["input"]]
        if kind == "nan":
            vectors[-1][0] = math.nan
        elif kind == "zero":
            vectors[-1] = [0.0] * dimension
        return [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]

    def _ranked(self, asked: Any, kind: str | None) -> list[dict[str, Any]]:
        name = "relevance_score" if self.hub.rerank_shape == "results" else "score"
        scores = [relevance_of(asked["query"], document) for document in asked["documents"]]
        if kind == "nan":
            scores[-1] = math.nan
        # Best first, as real rerankers answer.
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [{"index": index, name: scores[index]} for index in order]

    def _json(self, status: int, value: Any, retry_after: str | None = None) -> None:
        self._send(status, json.dumps(value).encode(), retry_after=retry_after)

    def _send(self, status: int, body: bytes, retry_after: str | None = None, cut: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body[:cut])
        self.wfile.flush()
        if cut is not None:
            self.close_connection = True


def main() -> None:
    """Serve until killed; print the base URL first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--dimension", type=int, default=32)
    parser.add_argument("--token", default=TOKEN, help="empty: none is wanted")
    parser.add_argument("--log", type=Path, help="append each text that is sent")
    parser.add_argument("--rerank-shape", choices=["results", "data"], default="results")
    options = parser.parse_args()
    hub = HubServer(
        options.dimension,
        port=options.port,
        token=options.token or None,
        log=options.log,
        rerank_shape=options.rerank_shape,
    )
    print(hub.url, flush=True)  # noqa: T201 -- how a starter learns the port
    threading.Event().wait()


if __name__ == "__main__":
    main()
