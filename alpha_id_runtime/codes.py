"""The code table of one edition: titles, hierarchy, tags. Read from ``codes.parquet``.

Holds: look-ups by code, drawn from the table column by column so that opening stays cheap. Refuses: patching
what an edition says, and deciding what may be suggested (``filters`` does).
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

from alpha_id_runtime.errors import ArtefactsMissingError
from alpha_id_runtime.files import read_parquet
from alpha_id_runtime.hierarchy import unspecified_first
from alpha_id_runtime.manifest import BUILD_CURE
from alpha_id_runtime.model import Tags

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

Role = Literal["primary", "aster", "addon"]
_ROLES: dict[str, Role] = {"P": "primary", "O": "aster", "Z": "addon"}
_SEXES: dict[str, Literal["m", "w"]] = {"M": "m", "W": "w"}
_UNBOUNDED = "9999"
_TAG_COLUMNS = (
    "terminal", "content", "para295", "para301", "chapter", "group", "usage", "exotic", "sex_code",
    "age_low", "age_high", "infectious",
)  # fmt: skip
_CODE = re.compile(r"^([A-Za-z])(\d{2})(?:\.?(\d{1,2}))?(?:\.?-+)?[+*!†]?$")
_MARKS = {"dagger": "+", "aster": "*", "optional": "!"}


def parse_code(text: str) -> str | None:
    """Return the ICD-10-GM code written in ``text`` in its plain form, None where it is no code.

    Accepts lower case, a missing dot, a mark (``+ * ! †``) and the ``.-`` of a non-terminal code:
    ``e1172`` and ``E11.72+`` give ``E11.72``, ``I10.-`` gives ``I10``.
    """
    match = _CODE.match(text.strip())
    if match is None:
        return None
    letter, digits, rest = match.groups()
    return f"{letter.upper()}{digits}" + (f".{rest}" if rest else "")


class CodeTable:
    """All classes of an edition, one row a code, in the order of the classification."""

    def __init__(self, table: pa.Table) -> None:
        """Take a table of the schema ``icd_meta``."""
        self._columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        self._row = {code: row for row, code in enumerate(table.column("code").to_pylist())}
        self._tags = lru_cache(maxsize=None)(self._make_tags)

    @classmethod
    def open(cls, path: Path) -> CodeTable:
        """Read the code table of a build.

        Raises:
            ArtefactsMissingError: the file is not there.
        """
        try:
            return cls(read_parquet(path))
        except FileNotFoundError as error:
            raise ArtefactsMissingError(f"{path} is missing. {BUILD_CURE}") from error

    def __contains__(self, code: str) -> bool:
        """Tell whether the edition has the code (a category, block or chapter)."""
        return code in self._row

    def __len__(self) -> int:
        """Return the number of rows, chapters and blocks included."""
        return len(self._row)

    def value(self, code: str, column: str) -> str | bool | None:
        """Return one field of the code's row; ``KeyError`` for a code the edition lacks."""
        return cast("str | bool | None", self._columns[column][self._row[code]].as_py())

    def title(self, code: str) -> str:
        """Return the full title of a code."""
        return str(self.value(code, "title"))

    def titles(self, codes: Sequence[str]) -> list[str]:
        """Return the titles of many codes at once."""
        return self._many("title", codes)

    def usages(self, codes: Sequence[str]) -> list[str | None]:
        """Return the usages (dagger, aster, optional or None) of many codes at once."""
        return self._many("usage", codes)

    def _many(self, column: str, codes: Sequence[str]) -> list[Any]:
        return list(self._columns[column].take([self._row[code] for code in codes]).to_pylist())

    def parent(self, code: str) -> str | None:
        """Return the class above, None for a chapter."""
        return cast("str | None", self.value(code, "parent"))

    def ancestors(self, code: str) -> list[str]:
        """Return the classes above, nearest first, ending with the chapter."""
        above: list[str] = []
        parent = self.parent(code)
        while parent is not None and parent in self._row:
            above.append(parent)
            parent = self.parent(parent)
        return above

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {}
        for code, parent in zip(self._row, self._columns["parent"].to_pylist(), strict=True):
            if parent is not None:
                children.setdefault(parent, []).append(code)
        return children

    def children(self, code: str) -> list[str]:
        """Return the classes right below, in the order of the classification."""
        return self._children.get(code, [])

    def is_terminal(self, code: str) -> bool:
        """Tell whether the code is a terminal one of this edition; False for a code it lacks."""
        return code in self._row and bool(self.value(code, "terminal"))

    def has_content(self, code: str) -> bool:
        """Tell whether the code is assigned: a placeholder (Content ``N``) is never suggested."""
        return self.value(code, "content") == "J"

    def printed(self, code: str) -> str:
        """Return the code as printed, with its mark (``G63.2*``) or the ``-`` of a non-terminal one."""
        if self.value(code, "kind") != "category":
            return code
        if not self.is_terminal(code):
            return code + ("-" if "." in code else ".-")
        return code + _MARKS.get(str(self.value(code, "usage")), "")

    def terminal_descendants(self, code: str) -> list[str]:
        """Return the assigned terminal codes below ``code``, the unspecified child first at each level.

        A terminal code yields itself; a placeholder nothing. Source: coding.md, "Which child is the
        unspecified one".
        """
        if self.is_terminal(code):
            return [code] if self.has_content(code) else []
        ordered = unspecified_first([(child, self.title(child)) for child in self.children(code)])
        return [leaf for child in ordered for leaf in self.terminal_descendants(child)]

    def tags(self, code: str, *, valid: bool) -> Tags:
        """Return what the classification says of a category; ``valid`` is the winning phrase's."""
        return self._tags(code, valid)

    def _make_tags(self, code: str, valid: bool) -> Tags:
        row = {name: cast("Any", self.value(code, name)) for name in _TAG_COLUMNS}
        terminal, content = bool(row["terminal"]), row["content"] == "J"
        usable = terminal and content
        ambulant = usable and row["para295"] != "V"
        stationaer = usable and row["para301"] != "V"
        letter = row["para295"] if row["para295"] != "V" else row["para301"]
        return Tags(
            billable=ambulant or stationaer,
            billable_ambulant=ambulant,
            billable_stationaer=stationaer,
            role=_ROLES.get(letter) if usable else None,
            para295=row["para295"],
            para301=row["para301"],
            terminal=terminal,
            valid=valid,
            chapter=row["chapter"],
            group=row["group"] or "",
            usage=row["usage"],
            exotic=row["exotic"] == "J",
            sex=_SEXES.get(row["sex_code"]),
            age_low=_bound(row["age_low"]),
            age_high=_bound(row["age_high"]),
            ifsg=row["infectious"] == "J",
            content=content,
        )

    def rejects(self, code: str) -> tuple[str, str]:
        """Return (SexReject, AgeReject): ``9`` never, ``K`` can-reject, ``M`` must-reject."""
        return str(self.value(code, "sex_reject")), str(self.value(code, "age_reject"))


def _bound(raw: str) -> str | None:
    return None if raw == _UNBOUNDED else raw
