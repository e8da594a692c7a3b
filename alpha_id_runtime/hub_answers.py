"""What a hub answered, read and verified: pure functions over bytes and headers, no network.

Holds: the readers of an embeddings answer and of the two shapes of a rerank answer, and of Retry-After.
Refuses: repairing an answer. Whatever is not exactly what was asked for is an ``AnswerError``; its reason
never quotes the answer, which may echo the texts that were sent.
"""

from __future__ import annotations

import json
import math
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class AnswerError(ValueError):
    """An answer that is not what was asked for; ``str()`` ends the sentence "The hub ..."."""


def read_json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in ``body``.

    Raises:
        AnswerError: it holds anything else, as when it was cut short.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise AnswerError("answered something that is not JSON, or cut short") from None
    if not isinstance(value, dict):
        raise AnswerError("answered JSON that is not an object")
    return value


def read_embeddings(answer: dict[str, Any], count: int, dimension: int) -> NDArray[np.float32]:
    """Return (count, dimension) float32 unit vectors in the order asked for, by each item's ``index``.

    Raises:
        AnswerError: wrong count, order, dimension, a value that is not finite, or a vector of zeros.
    """
    items = _ordered(answer.get("data"), count)
    rows = [item.get("embedding") for item in items]
    for row in rows:
        if not isinstance(row, list):
            raise AnswerError("answered an item without a list named embedding")
        if len(row) != dimension:
            raise AnswerError(
                f"answered vectors of dimension {len(row)}, not {dimension} as configured; another model "
                "may be behind the name"
            )
    try:
        wide = np.array(rows, dtype=np.float64).reshape(count, dimension)
    except (TypeError, ValueError, OverflowError):
        raise AnswerError("answered a vector with values that are not numbers") from None
    if not np.isfinite(wide).all():
        raise AnswerError("answered a vector with values that are not finite numbers")
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(wide, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise AnswerError("answered a vector without length")
    vectors: NDArray[np.float32] = (wide / norms).astype(np.float32)
    return vectors


def billed_tokens(answer: dict[str, Any]) -> int | None:
    """Return the tokens that the answer says were used; None where it does not say."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    for name in ("total_tokens", "prompt_tokens"):
        tokens = usage.get(name)
        if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0:
            return tokens
    return None


def read_rerank(answer: dict[str, Any], count: int) -> list[float]:
    """Return the relevance of each document, in the order asked for.

    Two shapes are in use: ``results[].relevance_score`` (Cohere, Jina, vLLM, Infinity, llama.cpp) and
    ``data[].score``. The scale is the model's: see ``scale_of``.

    Raises:
        AnswerError: neither shape, wrong count or order, or a score that is not a finite number.
    """
    listed = answer.get("results", answer.get("data"))
    scores: list[float] = []
    for item in _ordered(listed, count):
        score = item.get("relevance_score", item.get("score"))
        scores.append(_finite(score))
    return scores


def scale_of(scores: Sequence[float]) -> str:
    """Return ``probability`` where every score lies within 0 and 1, else ``logit``; a smoke test notes it."""
    return "probability" if all(0.0 <= score <= 1.0 for score in scores) else "logit"


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, 0 or more; None where it says nothing.

    Args:
        value: seconds or an HTTP date (RFC 9110, 10.2.3).
        now: seconds since the epoch.
    """
    if value is None:
        return None
    stripped = value.strip()
    if stripped.isascii() and stripped.isdigit():
        return float(stripped[:12])
    try:
        date = parsedate_to_datetime(stripped)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now)


def _finite(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond every float
            number = math.inf
        if math.isfinite(number):
            return number
    raise AnswerError("answered a score that is not a finite number")


def _ordered(listed: Any, count: int) -> list[dict[str, Any]]:
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise AnswerError("answered without the list of items that was asked for")
    if len(listed) != count:
        raise AnswerError(f"answered {len(listed)} items for {count} texts")
    places: dict[int, dict[str, Any]] = {}
    for item in listed:
        index = item.get("index")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise AnswerError("answered an item without an index that belongs to a text")
        places[index] = item
    if len(places) != count:
        raise AnswerError("answered two items for one text")
    return [places[index] for index in range(count)]
