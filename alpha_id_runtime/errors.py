"""Every error a caller can meet, one class a situation, each with the exit code the command line ends in.

Holds: the exception classes and how a list of problems becomes one paragraph. Refuses: input text. A phrase
is patient data and must never get into a message; source files are public and may be quoted.
"""

from __future__ import annotations

from typing import ClassVar

SHOWN_PROBLEMS = 20


class AlphaIdError(Exception):
    """Base of all errors raised on purpose; ``str()`` is one paragraph that names the place and the cure."""

    exit_code: ClassVar[int] = 1


class UsageError(AlphaIdError):
    """Wrong use: an option, a filter value or an input that cannot be read."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file, variable or table that does not hold what it must."""


class ArtefactsMissingError(AlphaIdError):
    """Something that a build writes is not there; the message names the command that writes it."""

    exit_code = 3


class ArtefactsIncompatibleError(AlphaIdError):
    """Artefacts are there but of another schema, corpus or fingerprint, or damaged."""

    exit_code = 3


class StorageError(AlphaIdError):
    """The storage folder cannot be written or read."""

    exit_code = 3


class GateError(AlphaIdError):
    """A run that could cost money was asked for without a valid approval; nothing was sent."""

    exit_code = 2


class SourceError(AlphaIdError):
    """A source file is missing, broken or not what its name says; nothing was published.

    Args:
        summary: one sentence naming the file and what is wrong.
        problems: each "file:line, field name: what is wrong"; the first twenty are shown.
    """

    exit_code = 4

    def __init__(self, summary: str, problems: list[str] | None = None) -> None:
        """Keep all problems; show the first twenty."""
        self.problems = problems or []
        super().__init__(summary + list_problems(self.problems))


class ProviderError(AlphaIdError):
    """An embedding or rerank provider failed; the query side answers degraded, a build stops.

    To a build it means that artefacts could not be made, hence its exit code.
    """

    exit_code = 3


def list_problems(problems: list[str]) -> str:
    """Return ``problems`` as the tail of a paragraph: the first twenty, then how many more there are."""
    if not problems:
        return ""
    shown = "; ".join(problems[:SHOWN_PROBLEMS])
    more = len(problems) - SHOWN_PROBLEMS
    return f" {shown}" + (f"; and {more} more" if more > 0 else "")
