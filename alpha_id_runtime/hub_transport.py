"""One HTTP request to a hub, within a time limit: what went wrong, and whether it may be tried again.

Holds: ``Transport.post`` and ``AttemptError``. Refuses: retrying (``hub.py`` does), reading a refusal's body
(servers echo the input there), redirects (they could carry the token elsewhere), and whatever the environment
says about proxies, certificates or .netrc: where phrases of patients go is a matter of the configuration
alone.
"""

from __future__ import annotations

import ssl
import threading
from typing import TYPE_CHECKING

from alpha_id_runtime.hub_answers import retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from alpha_id_runtime.hub_settings import HubSettings

_OK, _TOO_MANY, _SERVER_ERROR = 200, 429, 500
_STATUS_CURES = {
    401: "refused the token (401). Check or renew it",
    403: "refused the token for this model (403). Check what the token may use",
    404: "knows no such path or model (404). Check hub.base_url, hub.rerank_path and the model's name",
    413: "found the request too large (413). Lower hub.batch_size",
}


class AttemptError(Exception):
    """One attempt failed; ``str()`` ends the sentence "The hub ...".

    Attributes:
        again: whether another attempt may help.
        billed: whether the provider may have done the work, so that it may be billed.
        wait: seconds that the hub asks to wait, None where it does not.
    """

    def __init__(self, reason: str, *, again: bool, billed: bool, wait: float | None = None) -> None:
        """Keep what the next step depends on."""
        super().__init__(reason)
        self.again = again
        self.billed = billed
        self.wait = wait


class Transport:
    """The connections to one hub. Safe to use from several threads.

    Args:
        settings: address, timeout, proxy and certificates.
        token: sent as bearer token; None sends none.
        clock, now: ``time.monotonic`` and ``time.time`` or stand-ins.
    """

    def __init__(
        self,
        settings: HubSettings,
        token: str | None,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        """Open nothing yet: the first request does."""
        self._settings, self._token, self._clock, self._now = settings, token, clock, now
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def post(self, path: str, body: bytes, deadline: float | None) -> bytes:
        """Return the body of a 200 answer, whole.

        Raises:
            AttemptError: anything else, or not by ``deadline`` or within the timeout.
        """
        import httpx  # noqa: PLC0415 -- a tenth of a second that mode C need not pay

        end = self._clock() + self._settings.timeout
        if deadline is not None:
            end = min(end, deadline)
        left = end - self._clock()
        if left <= 0:
            raise AttemptError("did not answer within the time allowed", again=False, billed=False)
        url = self._settings.base_url.rstrip("/") + path
        try:
            with self._open().stream("POST", url, content=body, timeout=left) as response:
                if response.status_code != _OK:
                    raise self._refused(response)
                received = bytearray()
                for chunk in response.iter_bytes():
                    received += chunk
                    # A timeout of the client counts from one byte to the next; a dripping answer passes it.
                    if self._clock() > end:
                        raise AttemptError("answered too slowly", again=True, billed=True)
                return bytes(received)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The cause is dropped: it carries the request, and with it the texts.
            raise _explain(error) from None

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _refused(self, response: httpx.Response) -> AttemptError:
        status = response.status_code
        if status == _TOO_MANY or status >= _SERVER_ERROR:
            wait = retry_after_seconds(response.headers.get("Retry-After"), self._now())
            reason = (
                "is asked too often (429)" if status == _TOO_MANY else f"has a fault of its own ({status})"
            )
            return AttemptError(reason, again=True, billed=False, wait=wait)
        reason = _STATUS_CURES.get(status, f"did not accept the request ({status}). Check model and settings")
        return AttemptError(reason, again=False, billed=False)

    def _open(self) -> httpx.Client:
        import httpx  # noqa: PLC0415 -- see post

        settings = self._settings
        with self._lock:
            if self._client is None:
                headers = {"Content-Type": "application/json", "Accept": "application/json"}
                if self._token is not None:
                    headers["Authorization"] = f"Bearer {self._token}"
                try:
                    self._client = httpx.Client(
                        headers=headers,
                        verify=_trusted(settings),
                        proxy=settings.proxy,
                        trust_env=False,
                        follow_redirects=False,
                        limits=httpx.Limits(
                            max_connections=None, max_keepalive_connections=settings.concurrency
                        ),
                    )
                except (OSError, ValueError, ImportError, httpx.InvalidURL):
                    reason = "cannot be asked. Check hub.proxy and hub.ca_file"
                    raise AttemptError(reason, again=False, billed=False) from None
            return self._client


def _trusted(settings: HubSettings) -> ssl.SSLContext | bool:
    if settings.ca_file:
        return ssl.create_default_context(cafile=settings.ca_file)
    if settings.base_url.startswith("http:"):
        # No TLS is spoken: a context that trusts nobody spares the reading of all certificates.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return True


def _explain(error: Exception) -> AttemptError:
    import httpx  # noqa: PLC0415 -- see Transport.post

    if isinstance(error, (httpx.ConnectTimeout, httpx.PoolTimeout)):
        return AttemptError("cannot be reached in time", again=True, billed=False)
    if isinstance(error, httpx.TimeoutException):
        return AttemptError("did not answer in time", again=True, billed=True)
    if isinstance(error, (httpx.ConnectError, httpx.ProxyError)):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            reason = "shows a certificate that is not trusted. Name your own by hub.ca_file"
            return AttemptError(reason, again=False, billed=False)
        return AttemptError("cannot be reached", again=True, billed=False)
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)):
        reason = "cannot be asked. Check hub.base_url and hub.rerank_path"
        return AttemptError(reason, again=False, billed=False)
    return AttemptError("broke off its answer", again=True, billed=True)
