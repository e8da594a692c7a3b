"""The whole way from files to a published build with vectors, in one call: what ``index build --full`` runs.

Holds: the order of the steps, the estimate before them, and the approval that ``--confirm`` is. Refuses:
printing, and any step of its own: each is the asset's.
"""

from __future__ import annotations

import getpass
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alpha_id_assets.building import build_lexical, make_published
from alpha_id_assets.corpus_vectors import find_target, full_gate, read_corpus_texts
from alpha_id_assets.embedding import approve_embeddings, make_embeddings, make_lance
from alpha_id_assets.encoder_steps import make_encoder
from alpha_id_assets.gate import estimate
from alpha_id_assets.publishing import storage_lock
from alpha_id_assets.sampling import make_embeddings_sample, renew_sample_estimate
from alpha_id_assets.vectors import VectorCache
from alpha_id_runtime.errors import GateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from alpha_id_assets.building import Step
    from alpha_id_assets.gate import Estimate
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout


@dataclass(frozen=True)
class Told:
    """Who is told what happens.

    Attributes:
        step: each step when it is done.
        estimate: what the full run would take, before anything is sent.
        progress: (what, done, total) while training or embedding.
    """

    step: Callable[[Step], None]
    estimate: Callable[[Estimate], None]
    progress: Callable[[str, int, int], None]


@dataclass(frozen=True)
class Confirmation:
    """A person's yes on the command line; without a limit the estimate itself is the limit."""

    limit_euros: float | None = None
    limit_tokens: int | None = None

    @property
    def limited(self) -> bool:
        """Whether a limit was named, which then holds in place of one approved before."""
        return self.limit_euros is not None or self.limit_tokens is not None


def build_sample(storage: StorageLayout, config: Config, size: int, told: Told) -> None:
    """Build and publish for mode C, then smoke-test the provider with ``size`` phrases and estimate the rest.

    Raises:
        AlphaIdError: any of a step.
    """
    build_lexical(storage, config, told.step)
    _train(storage, config, told)
    told.step(make_embeddings_sample(storage, config, size=size))
    told.estimate(_estimate(storage, config))


def build_full(
    storage: StorageLayout, config: Config, told: Told, confirmation: Confirmation | None = None
) -> None:
    """Build and publish for mode C, then embed what is missing, index it and publish with vectors.

    Mode C never waits for mode A: it is published first. Where money is due, nothing is sent without
    ``confirmation`` or an approval that is already there.

    Raises:
        GateError: money is due and nobody said yes; the lexical build is published all the same.
        AlphaIdError: any other of a step.
    """
    build_lexical(storage, config, told.step)
    _train(storage, config, told)
    wanted = _estimate(storage, config)
    told.estimate(wanted)
    if wanted.missing:
        _ask_gate(storage, config, wanted, told, confirmation)
        told.step(
            make_embeddings(
                storage, config, progress=lambda done, total: told.progress("embeddings", done, total)
            )
        )
    with storage_lock(storage, "build"):
        told.step(make_lance(storage, config))
        told.step(make_published(storage, config))


def _train(storage: StorageLayout, config: Config, told: Told) -> None:
    if config.provider == "builtin":
        told.step(
            make_encoder(storage, progress=lambda done, total, _: told.progress("encoder", done, total))
        )


def _estimate(storage: StorageLayout, config: Config) -> Estimate:
    target, texts = find_target(storage, config), read_corpus_texts(storage).by_hash
    missing = VectorCache(storage.vectors).missing(target.fingerprint, texts)
    return estimate(texts, missing, target.pricing)


def _ask_gate(
    storage: StorageLayout,
    config: Config,
    wanted: Estimate,
    told: Told,
    confirmation: Confirmation | None,
) -> None:
    """Pass, or turn ``confirmation`` into an approval that lets pass.

    Raises:
        GateError: refused; no request has left.
    """
    decision = full_gate(storage, find_target(storage, config))(wanted)
    if decision.allowed and not (confirmation and confirmation.limited):
        return
    if confirmation is None:
        raise GateError(
            f"{decision.reason} Nothing was sent; mode C is published. On the command line: "
            "alpha-id index build --full --confirm"
        )
    problem = _limit_problem(confirmation, wanted)
    if problem:
        raise GateError(f"{problem} Nothing was sent; mode C is published.")
    # A sample of this very target that passed need not be sent again after a stop midway.
    if not renew_sample_estimate(storage, config):
        told.step(make_embeddings_sample(storage, config))
    left = _estimate(storage, config)
    limits = confirmation
    if not limits.limited:
        limits = Confirmation(left.euros, left.tokens if left.euros is None else None)
    elif left.euros is not None and limits.limit_euros is None:
        limits = Confirmation(left.euros, limits.limit_tokens)
    told.step(
        approve_embeddings(
            storage,
            config,
            confirm=True,
            by=_who(),
            limit_euros=limits.limit_euros,
            limit_tokens=limits.limit_tokens,
        )
    )


def _limit_problem(limits: Confirmation, wanted: Estimate) -> str | None:
    """Say, before even a sample is sent, why a named limit cannot be held or does not reach the estimate."""
    euros, tokens = limits.limit_euros, limits.limit_tokens
    if euros is not None and not (math.isfinite(euros) and euros >= 0):
        return f"The limit of {euros} euros is no amount."
    if euros is not None and wanted.euros is None:
        return (
            "A limit in euros cannot be held: no price is configured. Set hub.price_per_million_tokens, or "
            "name --limit-tokens."
        )
    if euros is not None and wanted.euros is not None and euros < wanted.euros:
        return f"The limit of {euros} euros is below the estimate of {wanted.euros:.6f}."
    if tokens is not None and tokens < wanted.tokens:
        return f"The limit of {tokens} tokens is below the estimate of {wanted.tokens}."
    return None


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that no user has.
        return f"user {os.getuid()}"
