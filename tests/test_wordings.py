"""What a line says in several words, or leaves behind, and the words that say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from alpha_id_runtime.errors import ConfigError
from alpha_id_runtime.understanding import understand
from alpha_id_runtime.understanding.fillers import take_fillers
from alpha_id_runtime.understanding.scales import find_degrees
from alpha_id_runtime.understanding.sites import find_sites
from alpha_id_runtime.understanding.wordings import load_wordings, what_is_one, what_remains

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.pipeline import Suggester


def wordings(line: str, how: str) -> list[str]:
    """Return the texts tried for a line in other words of one kind."""
    return [variant.text for variant in understand(line).variants if variant.how == how]


def codes(full: Suggester, line: str) -> list[str]:
    """Return the codes for a line, best first."""
    return [each.icd_code for each in full.suggest(line).suggestions]


@pytest.mark.parametrize(
    ("line", "wording"),
    [
        ("Z.n. Nephrektomie rechts", "Status nach teilweiser oder vollständiger Nephrektomie"),
        ("Zustand nach Hinterwandinfarkt", "Alter Myokardinfarkt"),
        ("Femurfraktur vor 3 Jahren", "Folgen einer Femurfraktur"),
        ("Aphasie als Folge einer Hirnblutung", "Folgen einer intrazerebralen Blutung"),
        ("Restparese nach Hirninfarkt", "Hirninfarktfolgen"),
        ("Hinterwandinfarkt 2011", "Alter Myokardinfarkt"),
        ("ICD-Träger", "Vorhandensein eines implantierbaren Kardioverter-Defibrillators [ICD]"),
    ],
)
def test_what_lies_behind_or_is_there_is_tried_in_the_words_of_the_classification(line, wording):
    """An organ removed, an implant, an old infarction, a sequel: each has codes named by what is left."""
    assert wording in wordings(line, "state synonym")


@pytest.mark.parametrize(
    "line", ["Nephrektomie", "Hinterwandinfarkt", "Schrittmacherinfektion", "Hirninfarkt seit 2011"]
)
def test_what_is_not_said_to_lie_behind_is_not_made_a_state(line):
    """Without "Zustand nach", a year or a bearer, an operation is none, and a disease is a present one."""
    assert not wordings(line, "state synonym")


@pytest.mark.parametrize(
    ("line", "wording"),
    [
        ("Ureterstein mit Harnstau", "Hydronephrose bei Obstruktion durch Ureterstein"),
        ("Osteoporose mit Sinterungsfraktur", "Osteoporose mit pathologischer Fraktur"),
        ("DM Typ 2 mit Nephropathie und pAVK", "Typ-2-Diabetes mellitus mit multiplen Komplikationen"),
        ("Vater mit Darmkrebs", "Bösartige Neubildung der Verdauungsorgane in der Familienanamnese"),
        ("Ibuprofen-Unverträglichkeit", "Allergie gegen Analgetika in der Eigenanamnese"),
        ("Pneumonie durch Klebsiellen", "Pneumonie durch Klebsiella pneumoniae"),
        (
            "Lipom am Oberarm",
            "Gutartige Neubildung des Fettgewebes der Haut und der Unterhaut der Extremitäten",
        ),
    ],
)
def test_several_findings_that_one_code_holds_are_tried_in_its_words(line, wording):
    """Stone and congestion, disease and complications, a relative's disease, a drug and its class."""
    assert wording in wordings(line, "combination")


@pytest.mark.parametrize(
    "line",
    ["Osteoporose ohne Fraktur", "Ureterstein ohne Harnstau", "Betreuung der Mutter bei Diabetes",
     "Influenza negativ", "Impfung gegen Rotaviren", "Betreuung bei Krebsangst in der Familie"],
)  # fmt: skip
def test_what_is_denied_or_means_something_else_makes_no_combination(line):
    """A finding denied, a mother who is the patient, a vaccination: the words alone do not make the code."""
    assert not wordings(line, "combination")


def test_nothing_remains_of_most_phrases():
    """A plain diagnosis has neither a state nor a combination."""
    assert what_remains("Appendizitis", past=True) == ()
    assert what_is_one("Appendizitis") == ()


def test_a_broken_row_is_named_with_its_place(tmp_path: Path):
    """A row that cannot be read says which file and line, at once or when its pattern is first needed."""
    head = "trigger\tsaid\tunless\tmeans\twhen\n"
    (tmp_path / "wordings.tsv").write_text(f"{head}\tstent\t\tStent\tsometimes\n")
    with pytest.raises(ConfigError, match=r"wordings\.tsv, line 2: column 'when'"):
        load_wordings(tmp_path)
    (tmp_path / "wordings.tsv").write_text(f"{head}\tste(nt\t\tStent\talways\n")
    rows = load_wordings.__wrapped__(tmp_path)
    with pytest.raises(ConfigError, match="line 2: column 'said' is not a regular expression"):
        rows[0].said()


def test_every_pattern_of_the_table_can_be_read():
    """No row waits with an error for the line that first needs it."""
    for row in load_wordings():
        assert row.said() is not None
        assert row.unless is None or row.unless() is not None


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("infolge einer ausgeprägten Exsikkose", "Exsikkose"),
        ("im Rahmen einer akuten Pankreatitis", "akuten Pankreatitis"),
        ("bei bekannter arterieller Hypertonie", "arterieller Hypertonie"),
        ("ausgedehnte Peritonealkarzinose", "Peritonealkarzinose"),
        ("Perikarderguss, hämodynamisch nicht relevant", "Perikarderguss"),
        ("Epilepsie, medikamentös eingestellt", "Epilepsie"),
    ],
)
def test_words_of_running_text_are_taken_off(line, rest):
    """Lead-ins and fillers say nothing that a code would hold; what was taken off is told."""
    reading = understand(line)
    assert reading.core.rstrip(" ,") == rest
    assert any(note.startswith("filler: ") for note in reading.removed)


@pytest.mark.parametrize(
    "line",
    ["schwere Depression", "Fieber unklarer Genese", "akute Pankreatitis", "Schmerzen bei Miktion",
     "bekannt", "relevant"],
)  # fmt: skip
def test_what_codes_distinguish_by_stays(line):
    """Degree, course and cause are kept, and a line is never emptied."""
    assert take_fillers(line) == (line, [])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("LWK-3-Fraktur", "S32.03"),
        ("Fraktur BWK 7", "S22.04"),
        ("Fraktur des 5. Halswirbels", "S12.23"),
        ("Rippenserienfraktur 6.-8. Rippe rechts", "S22.43"),
        ("Rippenserienfraktur 3-9", "S22.44"),
        ("Frühgeborenes 30+4 SSW", "P07.3"),
        ("Neugeborenes, Geburtsgewicht 980 g", "P07.02"),
        ("TIA, Rückbildung nach 3 Stunden", "G45.?2"),
        ("RRMS mit akutem Schub", "G35.?1"),
        ("RRMS, derzeit schubfrei", "G35.?0"),
        ("KHK ohne relevante Stenosen", "I25.10"),
        ("hypertensive Entgleisung", "I10.?1"),
        ("Ulcus duodeni Forrest Ib", "K26.4"),
        ("akute Pankreatitis mit Nierenversagen", "K85.?1"),
        ("Intelligenzminderung, IQ 42", "F71.?"),
        ("pAVK, Gehstrecke 80 m", "I70.22"),
        ("Commotio, bewusstlos 5 min", "S06.70"),
        ("HIV CDC B2", "U61.2"),
        ("Neutropenie seit 8 Tagen unter Zytostatika", "D70.14"),
        ("CKD G3b A1", "N18.3"),
        ("Vorderwandinfarkt 2012", "I25.22"),
    ],
)
def test_levels_counts_and_measures_are_degrees(line, code):
    """A vertebra, a number of ribs, a weight, a time, an index: each stands for a digit or a code."""
    assert code in {code for degree, _ in find_degrees(line) for code in degree.codes}


def test_a_single_spinal_level_is_a_site():
    """One vertebra or root names its region as a pair of them does; of a pair across, the region between."""
    assert [site.label for site in find_sites("Radikulopathie C6")] == ["Zervikalbereich"]
    assert [site.label for site in find_sites("Spondylarthrose L4")] == ["Lumbalbereich"]
    assert [site.label for site in find_sites("Prolaps L5/S1")] == ["Lumbosakralbereich"]


def test_a_word_of_certainty_inside_a_line_parts_it():
    """What is suspected or behind stands as a part of its own, with its own certainty."""
    parts = {v.text: v.certainty for v in understand("Thoraxschmerz V.a. Pneumonie").variants}
    assert parts["Pneumonie"] == "V"
    parts = {v.text: v.certainty for v in understand("Rumpftumor am ehesten Lipom").variants}
    assert parts["Lipom"] == "V"


@pytest.mark.parametrize(
    "line",
    ["Appendektomie, konventionell", "Gastroskopie bis ins Duodenum, Hiatus geschlossen",
     "EKG: Sinusrhythmus, Linkstyp, keine Blockbilder", "Liquor: 2 Zellen, Eiweiß 32"],
)  # fmt: skip
def test_details_of_a_procedure_or_a_report_are_no_diagnosis(line):
    """How something was done, or an examination that found nothing, yields no code."""
    assert understand(line).no_diagnosis


@pytest.mark.parametrize(
    "line",
    ["Appendektomie, Peritonitis", "Kein Infarkt, jedoch Takotsubo",
     "Herzstillstand mit erfolgreicher Reanimation", "Gastroskopie: Ulkus im Antrum", "TVT post-OP"],
)  # fmt: skip
def test_a_disease_beside_a_procedure_or_a_denial_is_a_diagnosis(line):
    """A disease that is named and not denied is one, whatever stands before it."""
    assert not understand(line).no_diagnosis


@pytest.mark.full
@pytest.mark.parametrize(
    "line", ["Gastroskopie, Soor", "Sonstige und nicht näher bezeichnete Ovarialzysten", "Grundimmunisierung"]
)
def test_an_entry_of_the_corpus_is_never_taken_for_no_diagnosis(full, line):
    """What the corpus has as a phrase is matched, alone or as a part of the line."""
    assert codes(full, line)


@pytest.mark.full
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Z.n. Nephrektomie rechts", "Z90.5"),
        ("ICD-Träger", "Z95.0"),
        ("Zustand nach Hinterwandinfarkt 2011", "I25.22"),
        ("Ureterstein mit Harnstau links", "N13.21"),
        ("LWK-3-Fraktur", "S32.03"),
        ("Lipom am Oberarm", "D17.2"),
        ("infolge einer ausgeprägten Exsikkose", "E86"),
        ("Ibuprofen-Unverträglichkeit", "Z88.6"),
    ],
)
def test_the_code_meant_is_among_the_first_three(full, line, code):
    """What is understood reaches the list: mode C at full size."""
    assert code in codes(full, line)[:3]


@pytest.mark.parametrize(
    "line",
    [
        "DM Typ 2 ohne Nephropathie, ohne Retinopathie",
        "COPD ohne akute Exazerbation",
        "Streptokokken-Angina, keine Sepsis",
        "Abszess, antibiotisch behandelt",
        "Basalzellkarzinom, solid",
        "Papilla-Vateri-Karzinom",
        "Alleinerziehende Mutter mit Depression",
        "Nephrolithiasis, Hausstauballergie",
        "Rotatorenmanschettenruptur mit Infekt",
        "Anaphylaktischer Schock nach Penicillin",
    ],
)
def test_denied_findings_and_words_inside_words_make_no_combination(line):
    """A denial holds for what follows it; "behandelt" holds no hand; a reaction now is no history."""
    assert not wordings(line, "combination")


@pytest.mark.parametrize(
    "line",
    ["STEMI, CK max 2000 U/l", "Alkoholabhängigkeit, Thiamin 2000 mg", "Prostata-Ca 2024, PSA steigend"],
)
def test_a_dose_a_value_or_what_goes_on_is_not_past(line):
    """Four digits are a year only where they are no value, and a tumour is not past by its year alone."""
    assert not wordings(line, "state synonym")


@pytest.mark.full
def test_an_entry_that_says_a_filler_keeps_its_own_code(full):
    """What fills most lines may tell one entry from another: with it and without it compete."""
    assert codes(full, "Massive Lungenembolie")[0] == "I26.0"
    assert codes(full, "ausgeprägte Gonarthrose")[0] == codes(full, "Gonarthrose")[0]


@pytest.mark.full
def test_a_line_that_lists_diagnoses_gives_each_its_place(full):
    """Each of several diagnoses in a line is matched by itself, and the line is said to be their source."""
    result = full.suggest("aHT, HLP, VHF, DM Typ 2, COPD")
    found = [each.icd_code for each in result.suggestions[:5]]
    assert [code[:3] for code in sorted(found)] == ["E11", "E78", "I10", "I48", "J44"]
    assert all(each.source_segments == (0,) for each in result.suggestions[:5])
    assert result.diagnostics.segment_count == 1
    assert not full.suggest("aHT, HLP, VHF, o.B.").diagnostics.skipped
    explained = full.suggest("aHT, HLP, VHF, DM Typ 2, COPD", explain=True, related=2).suggestions
    assert all(each.explanation for each in explained)


@pytest.mark.full
def test_commas_of_one_diagnosis_part_it_not(full):
    """A title with commas, or a diagnosis with what says more of it, stays one."""
    title = "Diabetes mellitus, Typ 2: Mit Nierenkomplikationen: Nicht als entgleist bezeichnet"
    assert codes(full, title)[0] == "E11.20"
    assert codes(full, "Diabetes mellitus, Typ 2, entgleist")[0].startswith("E11")


@pytest.mark.full
@pytest.mark.parametrize(
    ("line", "history"),
    [("Z.n. Pneumonie", "Z87.0"), ("Z.n. Erysipel", "Z86.1"), ("Z.n. Larynxkarzinom", "Z85.2")],
)
def test_the_history_of_a_disease_stands_beside_it(full, line, history):
    """The classification itself says under which code a history belongs; others of its kind step back."""
    found = full.suggest(line).suggestions
    place = [each.icd_code for each in found].index(history)
    assert place < 3
    rest = [each.score for each in found if each.icd_code[:3] in ("Z85", "Z86", "Z87")]
    assert max(rest) == found[place].score


@pytest.mark.full
def test_both_sides_bring_no_cause_that_was_not_said(full):
    """Of the bilateral siblings the primary one leads, unless a cause is said."""
    assert codes(full, "Coxarthrose bds.")[0] == "M16.0"
    assert codes(full, "posttraumatische Coxarthrose bds.")[0] == "M16.4"


@pytest.mark.parametrize(
    ("line", "codes_alone"),
    [
        ("Barthel-Index 35", ("U50.40",)),
        ("MMST 19/30", ("U51.12",)),
        ("34. SSW", ("O09.4",)),
        ("Demenz, MMST 19", ()),
    ],
)
def test_a_value_alone_is_its_code(line, codes_alone):
    """A measured value that the classification has a code for is a diagnosis where nothing else is said."""
    assert understand(line).alone == codes_alone
