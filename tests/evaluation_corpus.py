"""A small corpus in the project's own words for the tests of the harness: organs times findings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from alpha_id_runtime.text import normalise

ORGANS = {
    "Klavikula": ("S42", "der"), "Tibia": ("S82", "der"), "Niere": ("N28", "der"), "Leber": ("K76", "der"),
    "Harnblase": ("N32", "der"), "Lunge": ("J98", "der"), "Schilddrüse": ("E07", "der"),
    "Milz": ("D73", "der"), "Prostata": ("N42", "der"), "Gallenblase": ("K82", "der"), "Haut": ("L98", "der"),
    "Netzhaut": ("H35", "der"),
}  # fmt: skip
FINDINGS = ("Fraktur", "Zyste", "Entzündung", "Verletzung", "Abszess", "Fistel", "Tumor", "Blutung")
CHAPTERS = {
    "S": "XIX", "N": "XIV", "K": "XI", "J": "X", "E": "IV", "D": "III", "L": "XII", "H": "VII",
    "I": "IX", "A": "I", "B": "I",
}  # fmt: skip
EXTRA = (
    ("Arterielle Hypertonie", "I10.90"),
    ("Essentielle Hypertonie", "I10.90"),
    ("Chronische Bronchitis mit Husten", "J42"),
    ("Chronische Entzündung der Bronchien", "J42"),
    ("Hüft-TBC [Tuberkulose]", "A18.0"),
    ("Tuberkulose der Hüfte", "A18.0"),
    ("Karzinom des Harnleiters", "C66"),
    ("Krebs des Harnleiters", "C66"),
    ("Karzinom der Uretermündung", "C67.6"),
    ("Krebs der Uretermündung", "C67.6"),
    ("Karzinom des Blasendachs", "C67.1"),
    ("Krebs des Blasendachs", "C67.1"),
    ("Karzinom des unteren Ureters", "C67.6"),
)


@dataclass(frozen=True)
class Columns:
    """The corpus as the harness asks for it."""

    text: list[str]
    norm: list[str]
    origin: list[str]
    valid: list[bool]
    icd_code: list[str]
    billable: list[bool]
    chapter: list[str]

    def reordered(self, order: list[int]) -> Columns:
        """Return the rows in another order."""
        return Columns(*([column[i] for i in order] for column in vars(self).values()))


def corpus() -> Columns:
    """Return 96 codes with two wordings and a title each, and a few more phrases."""
    rows = []
    for organ, (category, article) in ORGANS.items():
        for digit, finding in enumerate(FINDINGS):
            code = f"{category}.{digit}"
            rows += [
                (f"{finding} {article} {organ}", "alpha_id", True, code, True),
                (f"Akute {finding} im Bereich {article} {organ}", "alpha_id", True, code, True),
                (f"{organ}: {finding}", "title", True, code, True),
            ]
    rows += [(text, "alpha_id", True, code, True) for text, code in EXTRA]
    rows += [
        ("Veraltete Fraktur", "alpha_id", False, "S42.0", True),
        ("Fraktur am Arm", "alpha_id", True, "S42", False),
        ("Einziges Wort seines Schlüssels", "alpha_id", True, "B99", True),
    ]
    text, origin, valid, code, billable = (list(column) for column in zip(*rows, strict=True))
    return Columns(
        text,
        [normalise(t) for t in text],
        origin,
        valid,
        code,
        billable,
        [CHAPTERS.get(c[0], "II") for c in code],
    )


def with_rows(columns: Columns, *rows: tuple[str, str, str]) -> Columns:
    """Return the corpus with valid, billable rows (text, origin, code) added at its end."""
    added = replace(columns)
    for text, origin, code in rows:
        chapter = CHAPTERS.get(code[0], "II")
        values = (text, normalise(text), origin, True, code, True, chapter)
        added = Columns(
            *([*column, value] for column, value in zip(vars(added).values(), values, strict=True))
        )
    return added
