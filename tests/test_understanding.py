"""What ``understand`` reads from a line: codes, certainty, side, state, parts, lines without a diagnosis."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alpha_id_runtime.text import fold, is_calibration, normalise, twin_key
from alpha_id_runtime.understanding import Reading, understand
from tests.reference import SHARED, needs_shared


def texts(reading: Reading) -> list[str]:
    """Return the texts of all variants."""
    return [variant.text for variant in reading.variants]


@pytest.mark.parametrize(
    ("line", "codes", "core"),
    [
        ("Gonarthrose links, M17.1", ("M17.1",), "Gonarthrose"),
        ("essentielle Hypertonie (i10.-)", ("I10",), "essentielle Hypertonie"),
        ("Polyneuropathie G63.2*", ("G63.2",), "Polyneuropathie"),
        ("Diabetes mit Nephropathie E11.20+", ("E11.20",), "Diabetes mit Nephropathie"),
        ("ICD-10: K29.7 Gastritis", ("K29.7",), "Gastritis"),
        ("N40 Prostatahyperplasie", ("N40",), "Prostatahyperplasie"),
    ],
)
def test_a_code_in_the_line_is_given_and_taken_off(line, codes, core):
    """A code stands in ``codes_given`` in capitals without mark, and no longer in the core."""
    reading = understand(line)
    assert reading.codes_given == codes
    assert reading.core == core


@pytest.mark.parametrize(
    "line",
    [
        "Vitamin B12 Mangel",
        "Vit. B12-Mangel",
        "Bandscheibenvorfall L4/5",
        "Fraktur HWK C5/C6",
        "Prolaps L45",
        "Radikulopathie S1",
        "Fraktur Th12",
        "Kolonkarzinom T2 N0",
        "Diabetes, HbA1c 8,1 %",
        "Parvovirus B19 Infektion",
        "HLA-B27 positive Spondylarthritis",
        "Blutdruckkrise 210/110 mmHg",
        "Coenzym Q10",
    ],
)
def test_what_only_looks_like_a_code_is_left_alone(line):
    """Vitamins, vertebrae, TNM, laboratory names and viruses are no ICD codes."""
    assert understand(line).codes_given == ()


def test_letters_behind_a_code_say_certainty_and_side():
    """The letters in "M16.1 V L" say suspected and left, in whatever order."""
    for line in ("Coxarthrose M16.1 V L", "Coxarthrose M16.1 LV"):
        reading = understand(line)
        assert (reading.certainty, reading.laterality) == ("V", "L")
        assert reading.codes_given == ("M16.1",)


@pytest.mark.parametrize(
    ("line", "certainty", "core"),
    [
        ("V.a. Appendizitis", "V", "Appendizitis"),
        ("Verdacht auf eine Sarkoidose", "V", "Sarkoidose"),
        ("zum Ausschluss einer Endokarditis", "V", "Endokarditis"),
        ("Borreliose?", "V", "Borreliose"),
        ("fragliche Epilepsie", "V", "Epilepsie"),
        ("DD Zöliakie", "V", "Zöliakie"),
        ("Malignom nicht auszuschließen", "V", "Malignom"),
        ("Ausschluss einer Aortendissektion", "A", "Aortendissektion"),
        ("Appendizitis ausgeschlossen", "A", "Appendizitis"),
        ("Z. n. Pankreatitis", "Z", "Pankreatitis"),
        ("St.p. Nephrektomie", "Z", "Nephrektomie"),
        ("Zustand nach Meningitis", "Z", "Meningitis"),
        ("gesicherte Sarkoidose", "G", "Sarkoidose"),
        ("Sarkoidose", None, "Sarkoidose"),
    ],
)
def test_certainty_words_are_read_and_taken_off(line, certainty, core):
    """V, A, Z and G come from the words; nothing said is None."""
    reading = understand(line)
    assert (reading.certainty, reading.core) == (certainty, core)


def test_certainty_inside_a_line_belongs_to_its_part():
    """A suspicion behind "bei" does not make the diagnosis before it a suspected one."""
    reading = understand("Hämoptysen bei V.a. Bronchialkarzinom")
    assert reading.certainty is None
    parts = {variant.text: variant.certainty for variant in reading.variants if variant.is_part}
    assert parts == {"Hämoptysen": None, "Bronchialkarzinom": "V"}


def test_an_excluded_part_is_not_matched():
    """What is excluded behind a comma is neither core nor part; the rest is not excluded."""
    reading = understand("Synkope, Lungenembolie ausgeschlossen")
    assert (reading.core, reading.certainty) == ("Synkope", None)
    assert not any("embolie" in text for text in texts(reading))


def test_a_state_opens_both_readings():
    """The wording "Z.n." tries the disease itself and the wordings of history and state codes."""
    reading = understand("Z.n. Hepatitis B")
    assert reading.core == "Hepatitis B"
    assert "Zustand nach Hepatitis B" in texts(reading)
    assert "Hepatitis B in der Eigenanamnese" in texts(reading)


@pytest.mark.parametrize(
    ("line", "side", "core"),
    [
        ("Omarthrose re.", "R", "Omarthrose"),
        ("Omarthrose li", "L", "Omarthrose"),
        ("linksseitige Pneumonie", "L", "Pneumonie"),
        ("Leistenhernie bds.", "B", "Leistenhernie"),
        ("Gonarthrose re > li", "B", "Gonarthrose"),
        ("Gonarthrose rechts und links", "B", "Gonarthrose"),
        ("LA: Glaukom", "L", "Glaukom"),
        ("Katarakt BA", "B", "Katarakt"),
        ("RA, seropositiv", None, "RA, seropositiv"),
        ("Thrombus im linken Ventrikel", None, "Thrombus im linken Ventrikel"),
        ("Rechtsherzinsuffizienz", None, "Rechtsherzinsuffizienz"),
    ],
)
def test_side_words_are_read_and_taken_off_unless_they_are_anatomy(line, side, core):
    """R, L, B; the letters of the eye only beside the eye; a left ventricle is no side."""
    reading = understand(line)
    assert (reading.laterality, reading.core) == (side, core)


def test_both_sides_are_tried_in_words_where_siblings_differ_by_them():
    """The wording "bds." also tries "beidseitig", as titles say it."""
    reading = understand("Coxarthrose bds.")
    both = next(v for v in reading.variants if v.text == "Coxarthrose, beidseitig")
    assert both.weight > reading.core_weight


@pytest.mark.parametrize(
    ("line", "core"),
    [
        ("3. Hypothyreose", "Hypothyreose"),
        ("- Hypothyreose", "Hypothyreose"),
        ("Nebendiagnosen: Hypothyreose", "Hypothyreose"),
        ("Hypothyreose seit 2011", "Hypothyreose"),
        ("Hypothyreose (ED 03/2015)", "Hypothyreose"),
        ("Hypothyreose unter L-Thyroxin 75 µg", "Hypothyreose unter L-Thyroxin"),
        ("Mammakarzinom pT1c pN0 M0 G2", "Mammakarzinom"),
        ("Aortenstenose (KÖF 0,9 cm²)", "Aortenstenose"),
        ("3. Grades Verbrennung", "3. Grades Verbrennung"),
        ("V. Hirnnerv Neuralgie", "V. Hirnnerv Neuralgie"),
        ("Apoplex, keine Residuen", "Apoplex"),
    ],
)
def test_what_is_no_diagnosis_in_a_line_is_taken_off(line, core):
    """Numbering, headings, dates, doses, measured values, TNM and a denying tail go; degrees stay."""
    assert understand(line).core == core


@pytest.mark.parametrize("part", ["Metoprolol 47,5 mg 1-0-1", "CRP 112 mg/l", "RR 160/90 mmHg"])
def test_a_drug_or_value_behind_a_comma_is_taken_off(part):
    """A part that is but a drug with its dose or a value is none of the diagnosis."""
    reading = understand(f"Tinea pedis, {part}")
    assert (reading.core, reading.no_diagnosis) == ("Tinea pedis", None)


def test_what_is_denied_is_not_matched_beside_a_diagnosis():
    """A denied part is neither core nor variant, wherever it stands."""
    for line in ("kein Diabetes bekannt, Adipositas", "Adipositas, kein Diabetes bekannt"):
        reading = understand(line)
        assert (reading.core, reading.no_diagnosis) == ("Adipositas", None)
        assert not any("Diabetes" in text for text in texts(reading))


def test_two_diagnoses_in_a_line_are_tried_apart():
    """Each part joined by "mit", "bei", "und" or a comma may have its own code."""
    reading = understand("Hypothyreose und Vorhofflimmern bei Mitralinsuffizienz")
    assert [v.text for v in reading.variants if v.is_part] == [
        "Hypothyreose",
        "Vorhofflimmern",
        "Mitralinsuffizienz",
    ]


def test_a_shared_word_end_is_written_out():
    """The wording "Knie- und Hüftprellung" is two bruises."""
    parts = [v.text for v in understand("Knie- und Hüftprellung").variants if v.is_part]
    assert parts == ["Knieprellung", "Hüftprellung"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Bisoprolol 2,5 mg 1-0-0", "drug"),
        ("Clopidogrel 75", "drug"),
        ("Unbekanntin 20 mg tgl.", "drug"),
        ("Hemikolektomie rechts", "procedure"),
        ("Koloskopie", "procedure"),
        ("pT3 pN1 M0 R0", "TNM"),
        ("Kalium 3,1 mmol/l", "value"),
        ("CRP 112 mg/l", "value"),
        ("RR 145/90", "value"),
        ("kein Hinweis auf Rezidiv", "negated"),
        ("Fraktur nicht nachweisbar", "negated"),
        ("Abdomen unauffällig", "normal"),
        ("normale LV-Funktion", "normal"),
        ("Diagnosen:", "remark"),
        ("Cholezystektomie 2017", "procedure"),
        ("Insulin nach Schema", "drug"),
        ("4 Zyklen FOLFOX", "drug"),
        ("Temp. 38,4", "value"),
        ("ER pos., PR neg.", "value"),
        ("Pulmo frei", "normal"),
        ("Narbe reizlos", "normal"),
        ("Allergien: keine", "negated"),
        ("Aufklärung erfolgt", "remark"),
        ("Wiedervorstellung in 3 Wochen", "remark"),
        ("---", "no word"),
        ("Nebilet", "drug"),
        ("Losartan/HCT comp. bei Bedarf", "drug"),
        ("Unbekanntumab Fertigspritze alle 4 Wochen", "drug"),
        ("Xelox", "drug"),
        ("Vit. B12 410 pg/ml", "value"),
        ("CA 15-3 18 U/ml", "value"),
        ("Braden-Skala 21", "score"),
        ("Apgar 8/9/10", "score"),
        ("Toilettensitzerhöhung", "aid"),
        ("Termin Radiologie Montag", "order"),
        ("Generalvollmacht Sohn", "administrative"),
        ("Pflegegrad 4 seit März", "administrative"),
        ("Leber, Milz, Nieren unauffällig", "normal"),
        ("Milz nicht palpabel", "normal"),
        ("HCV-Serologie negativ", "negated"),
        ("Asthma: nein", "negated"),
        ("Röntgen Thorax: kein Infiltrat", "negated"),
        ("Palpitationen verneint", "negated"),
        ("Patientin wünscht Entlassung", "remark"),
    ],
)
def test_a_line_without_a_diagnosis_says_why(line, reason):
    """Drugs, procedures, TNM, laboratory values, normal and negated findings are no diagnoses."""
    assert reason in (understand(line).no_diagnosis or "")


@pytest.mark.parametrize(
    "line",
    [
        "Z.n. Hemikolektomie",
        "Wundinfektion nach Hemikolektomie",
        "Cholezystektomie bei Cholezystitis",
        "Z90.4 Splenektomie",
        "Hypokaliämie",
        "erhöhtes CRP",
        "Diabetes mellitus ohne Komplikationen",
        "Paralyse",
        "Rheumatoide Arthritis, RF negativ",
        "Ibuprofenunverträglichkeit",
        "Digitalisintoxikation",
        "Normaldruckhydrozephalus",
        "Struma, Euthyreose",
        "Ausschluss einer Sepsis",
        "Dauertherapie mit Antikoagulanzien",
        "Insulinresistenz",
        "Offener Knochenbruch",
        "kein Diabetes bekannt, Adipositas",
        "Tinea pedis unter Terbinafin 250 mg",
        "Überempfindlichkeit gegen Cefuroxim",
        "Ceftriaxon-Überempfindlichkeit",
        "Lithiumintoxikation",
        "Langzeittherapie mit Prednisolon",
        "Blutung unter Phenprocoumon",
        "Onychomykose, Terbinafin",
        "Schrittmacherträger",
        "TSH erhöht",
        "Ferritin ↑",
        "Femurpulse nicht tastbar",
        "Pupillen nicht isokor",
        "MS stabil",
        "Angina pectoris stabil",
        "Psychose Olanzapin begonnen",
        "Meniskusläsion OP geplant",
        "Demenz, verheiratet",
        "Zystitis, Nitrit nicht nachweisbar",
        "Wunde, Verbandswechsel",
        "Clusterkopfschmerz: selten",
        "Dermographismus",
        "Uterus duplex",
    ],
)
def test_a_diagnosis_is_not_taken_for_something_else(line):
    """States, complications and diseases beside a procedure, drug or laboratory word stay diagnoses."""
    assert understand(line).no_diagnosis is None


def test_one_unknown_word_keeps_a_line_of_known_ones():
    """A line of drugs, orders or aids alone is none; with a word that no list knows it may be a diagnosis."""
    for known in ("Kontrolle", "Candesartan", "Orthese", "Versichertenkarte", "Nierenlager frei"):
        assert understand(f"{known} rechts").no_diagnosis
        assert understand(f"{known} Xanthelasmen").no_diagnosis is None


@needs_shared
@pytest.mark.full
@pytest.mark.parametrize(("chapters", "prefix"), [("T", ""), ("T", "V.a. "), ("TZ", "Z.n. ")])
def test_phrases_that_name_drugs_and_procedures_for_a_reason_are_diagnoses(chapters, prefix):
    """Poisonings and side effects stay diagnoses; so do states, whatever they are the state after."""
    path = SHARED / "full" / "icd10gm2023_alphaidse_edvtxt_20220930.txt"
    lines = [line.split("|") for line in path.read_text(encoding="utf-8").splitlines()[::2]]
    phrases = [line[7] for line in lines if line[2].startswith(tuple(chapters))]
    assert len(phrases) > 1000
    assert [phrase for phrase in phrases if understand(prefix + phrase).no_diagnosis] in ([], ["Therapie"])


def test_the_core_falls_back_where_stripping_leaves_nothing():
    """A line that is only a code or only cue words keeps its text."""
    assert understand("I10.90 G").core == "I10.90 G"
    assert understand("V.a.").core == "V.a."


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=120))
def test_any_text_is_read_without_an_error(text):
    """No text raises; the original is kept; a text with a letter keeps a core with a letter."""
    reading = understand(text)
    assert reading.original == text
    if any(char.isalpha() for char in text):
        assert reading.core.strip()


WORDS = st.sampled_from(
    [
        "V.a.", "Z.n.", "DD", "?", "bds.", "re.", "li.", "RA:", "mit", "bei", "und", ",", ";", "/", "-",
        "(", ")", "[", "]", "KHK", "MS", "HWI", "Ca", "I10", "E11.9", "G", "kein", "ausgeschlossen",
        "seit", "2015", "5", "mg", "pT2", "N0", "Grad", "II", "NYHA", "III", "Child", "C", "3.", "SSW",
        "Hernie", "Leber-", "Lungenmetastasen", "Zucker", "vor", "2", "Jahren", "°", "%", "BMI", "34",
    ]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=14).map(" ".join))
def test_any_mix_of_cues_is_read_without_an_error(text):
    """Cue words in any order leave a core, weights between 0 and 1, and no variant equal to the core."""
    reading = understand(text)
    assert reading.core.strip()
    for variant in reading.variants:
        assert 0 < variant.weight <= 1
        assert variant.text.strip()
        assert variant.text.casefold() != reading.core.casefold()


@needs_shared
@pytest.mark.full
def test_phrases_of_the_corpus_are_diagnoses():
    """Fewer than one in a thousand phrases of the calibration quarter are refused."""
    path = SHARED / "full" / "icd10gm2023_alphaidse_edvtxt_20220930.txt"
    lines = path.read_text(encoding="utf-8").splitlines()[::3]
    phrases = [line.split("|")[7] for line in lines]
    kept = [phrase for phrase in phrases if is_calibration(twin_key(normalise(phrase)))]
    refused = [phrase for phrase in kept if understand(phrase).no_diagnosis]
    assert len(kept) > 5000
    assert len(refused) < len(kept) / 1000 + 2


def as_read(line: str) -> tuple[object, ...]:
    """Return what a line is read as, in folded spelling."""
    reading = understand(line)
    return (
        fold(reading.core),
        [(fold(v.text), v.weight, v.how, v.certainty) for v in reading.variants],
        reading.certainty,
        reading.laterality,
        [(d.scale, d.value, d.codes) for d in reading.degrees],
        reading.no_diagnosis,
    )


@pytest.mark.parametrize(
    "line",
    [
        "Schüttellähmung",
        "Rückenmarkentzündung für Abklärung",
        "Übergewicht mit Fußpilz",
        "Möglicher Hörsturz beidseitig",
        "Ösophagusvarizenblutung",
        "Schlüsselbeinbruch",
        "Hämorrhoiden dritten Grades",
        "Darmverschluß nicht auszuschließen",
        "Größe 182 cm",
        "Früheres Magengeschwür",
        "Adipositas Grad III über 40",
        "Harnsäure 9 mg/dl",
    ],
)
def test_a_line_is_read_alike_in_every_spelling(line):
    """Umlauts as two letters or two signs, ss for ß, and small letters change nothing."""
    letters = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}
    spelled = line.translate(str.maketrans(letters))
    wanted = as_read(line)
    assert as_read(spelled) == wanted
    assert as_read(unicodedata.normalize("NFD", line)) == wanted
    assert as_read(line.replace("ß", "ss")) == wanted
    assert as_read(line.lower()) == wanted


def test_capitals_are_read_as_small_letters():
    """A single word shouted is the same word."""
    assert as_read("SCHÜTTELLÄHMUNG") == as_read("Schüttellähmung")
    assert as_read("HERZSCHWÄCHE, AUSGESCHLOSSEN")[2] == "A"


def test_a_type_said_in_words_is_read_in_figures():
    """Dictation writes "Typ zwei"; other numbers in words are left alone."""
    assert understand("Diabetes mellitus Typ zwei").core == "Diabetes mellitus Typ 2"
    assert understand("Dekubitus Grad Drei").core == "Dekubitus Grad 3"
    assert understand("Zustand nach zwei Fehlgeburten").core.endswith("zwei Fehlgeburten")


def test_a_procedure_beside_a_diagnosis_takes_nothing_away():
    """Each part is asked by itself; a line of procedures alone is still none."""
    for line in ("VHF, Z.n. Kardioversion 2019", "VHF, Kardioversion geplant", "Struma, Koloskopie 2020"):
        assert understand(line).no_diagnosis is None, line
    assert understand("Koloskopie, Gastroskopie").no_diagnosis
