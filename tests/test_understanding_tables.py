"""The tables of the understanding: degrees, abbreviations, synonyms, mined pairs, broken rows."""

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alpha_id_runtime.errors import ConfigError
from alpha_id_runtime.understanding import check_scales, mine_abbreviations, understand
from alpha_id_runtime.understanding.abbreviations import load_abbreviations
from alpha_id_runtime.understanding.cues import check_cues
from alpha_id_runtime.understanding.scales import load_scales
from alpha_id_runtime.understanding.sites import check_sites
from alpha_id_runtime.understanding.synonym_table import load_synonyms
from alpha_id_runtime.understanding.tables import TABLES, Finder, read_table
from tests.reference import SHARED, needs_shared


def degrees(line: str) -> list[tuple[str, tuple[str, ...], str, bool]]:
    """Return the degrees of a line as plain tuples."""
    return [(d.scale, d.codes, d.decides, d.as_complement) for d in understand(line).degrees]


@pytest.mark.parametrize(
    ("line", "codes", "decides"),
    [
        ("Linksherzinsuffizienz NYHA III", ("I50.13",), "one"),
        ("Herzinsuffizienz NYHA III", ("I50.13",), "several"),
        ("Rechtsherzinsuffizienz NYHA II", ("I50.03",), "one"),
        ("chronische Nierenkrankheit Stadium 3b", ("N18.3",), "one"),
        ("CNI, eGFR 22 ml/min", ("N18.4",), "one"),
        ("GFR < 15 bei chron. Niereninsuffizienz", ("N18.5",), "one"),
        ("COPD, FEV1 48 %", ("J44.?1",), "one"),
        ("COPD GOLD I", ("J44.?3",), "one"),
        ("COPD GOLD 2", ("J44.?2", "J44.?3"), "several"),
        ("pAVK IIa", ("I70.21",), "one"),
        ("pAVK Stadium II nach Fontaine", ("I70.21", "I70.22"), "several"),
        ("pAVK IV mit Gangrän D2", ("I70.25",), "one"),
        ("Adipositas, BMI 52", ("E66.?7",), "one"),
        ("Adipositas Grad II", ("E66.?1",), "one"),
        ("Asthma, teilweise kontrolliert, schwer", ("J45.?4",), "one"),
        ("mildes Asthma bronchiale", (), "none"),
        ("mittelschwere depressive Episode", ("F32.1",), "one"),
        ("rezidivierende depressive Störung, schwere Episode", ("F33.2",), "one"),
        ("schwere Intelligenzminderung", ("F72.9",), "one"),
        ("Demenz, mittelschwer", (), "none"),
        ("Dekubitus 4. Grades Ferse", ("L89.3?",), "one"),
        ("drittgradige Hämorrhoiden", ("K64.2",), "one"),
        ("AV-Block I°", ("I44.0",), "one"),
        ("Verbrennung 3. Grades Unterarm", ("T20.3", "T21.3?", "T22.3?", "T23.3", "T24.3", "T25.3"), "one"),
        ("Leberzirrhose Child B", ("K74.71",), "one"),
        ("hepatische Enzephalopathie Grad III", ("K72.73",), "one"),
        ("34. SSW", ("O09.4",), "one"),
        ("Schwangerschaft 33+2", ("O09.4",), "one"),
        ("20. SSW", ("O09.2",), "one"),
        ("SSW 20+0", ("O09.3",), "one"),
        ("Z.n. Myokardinfarkt vor 1 1/2 Jahren", ("I25.22",), "one"),
        ("Herzinfarkt vor 6 Wochen", ("I25.20",), "one"),
        ("Herzinfarkt vor 4 Monaten", ("I25.21",), "one"),
        ("NSTEMI Typ 2", ("I21.41",), "one"),
        ("KHK, Zweigefäßerkrankung", ("I25.12",), "one"),
        ("Angina pectoris CCS II", (), "none"),
        ("Prostatakarzinom Gleason 7", (), "none"),
        ("Hämorrhoiden zweiten Grades", ("K64.1",), "one"),
        ("Hämorrhoiden 3.-gradig", ("K64.2",), "one"),
        ("Dekubitus Grad zwei", ("L89.1?",), "one"),
        ("chronische Nierenkrankheit im dritten Stadium", ("N18.3",), "one"),
        ("chron. Niereninsuffizienz, 4. Stadium", ("N18.4",), "one"),
        ("erstgradiger AV-Block", ("I44.0",), "one"),
        ("Linksherzinsuffizienz NYHA IIIb", ("I50.13",), "one"),
        ("Linksherzinsuffizienz NYHA 2-3", ("I50.12", "I50.13"), "several"),
        ("pAVK Fontaine II b", ("I70.22",), "one"),
        ("Parkinson, Hoehn und Yahr 4", ("G20.1?",), "one"),
        ("M. Parkinson H&Y 2,5", ("G20.0?",), "one"),
        ("follikuläres Lymphom Grad IIIb", ("C82.4",), "one"),
        ("Lipödem Stadium II", ("E88.21",), "one"),
        ("Lymphödem der Beine Stadium 2", ("I89.01",), "one"),
        ("Lymphödem Stadium 2", ("I89.01", "I89.04"), "several"),
        ("CIN II", ("N87.1",), "one"),
        ("VIN 3", ("D07.1",), "one"),
        ("Sonnenbrand zweiten Grades", ("L55.1",), "one"),
        ("akute GvHD Grad III", ("T86.02",), "one"),
        ("moderates ARDS", ("J80.02",), "one"),
        ("offene Femurfraktur Grad III", ("S?1.89",), "one"),
    ],
)
def test_a_degree_said_decides_what_the_scale_says(line, codes, decides):
    """Each scale of the classification: one code, several or none."""
    assert [(c, d) for _, c, d, _ in degrees(line)] == [(codes, decides)]


@pytest.mark.parametrize(
    "line",
    [
        "Herzinsuffizienz",
        "COPD",
        "Adipositas",
        "Dekubitus",
        "chronische Niereninsuffizienz",
        "CLL, keine Remission",
        "Myelom in Teilremission",
        "Gonarthrose IV. Grades",
    ],
)
def test_a_degree_not_said_is_not_invented(line):
    """No degree word, no degree."""
    assert degrees(line) == []


def test_a_degree_with_a_code_of_its_own_is_a_complement():
    """Child-Pugh stands beside the cirrhosis; the disease is also tried without it."""
    reading = understand("Leberzirrhose Child C")
    assert reading.degrees[0].as_complement
    assert ("Leberzirrhose", "without degree") in [(v.text, v.how) for v in reading.variants]


def test_a_degree_knows_its_codes_and_the_sibling_without():
    """``fits``, ``is_unsaid`` and ``applies_to`` read the question marks of the table."""
    degree = understand("COPD, FEV1 48 %").degrees[0]
    assert degree.fits("J44.11")
    assert not degree.fits("J44.12")
    assert degree.is_unsaid("J44.99")
    assert degree.applies_to("J44.09")
    assert not degree.applies_to("J45.99")


def test_scales_are_checked_against_titles():
    """A missing code and a title that says something else are both named, with the row."""
    problems = check_scales({"I50.13": "Linksherzinsuffizienz: Ohne Beschwerden"}.get)
    assert any("no code N18.3" in problem for problem in problems)
    assert any(p.startswith("scales.tsv, line") and "I50.13 is titled" in p for p in problems)


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("Kniegelenkserguss", ("Unterschenkel", "Sonstige Lokalisationen der unteren Extremität")),
        ("Handgelenksganglion", ("Unterarm", "Obere Extremität")),
        ("Bandscheibenvorfall L5/S1", ("Lumbosakralbereich",)),
        ("HWS-Syndrom", ("Zervikalbereich",)),
        ("Behandlung", ()),
        ("Arthritis", ()),
        ("Arthrose an Schulter und Knie", ()),
    ],
)
def test_a_site_in_a_word_is_read_unless_there_are_several(line, labels):
    """Compounds, levels and short forms name a site of a family; two sites name none."""
    assert tuple(site.label for site in understand(line).sites) == labels


def test_labels_of_sites_are_checked_against_titles():
    """A label that no title bears is named with its row."""
    problems = check_sites([("M00.01", "Arthritis: Schulterregion [Klavikula]")])
    assert not any("Schulterregion" in problem for problem in problems)
    assert any(p.startswith("sites.tsv, line") and "'Oberarm'" in p for p in problems)


@needs_shared
@pytest.mark.full
def test_all_sites_are_labels_of_the_official_titles():
    """Every label of the sites ends a title of 2025."""
    lines = (SHARED / "oracle" / "icd10gm2025syst_kodes.txt").read_text(encoding="utf-8").splitlines()
    assert check_sites((fields[6], fields[8]) for fields in (line.split(";") for line in lines)) == []


@needs_shared
@pytest.mark.full
def test_all_scales_agree_with_the_official_titles():
    """Every code and title of the scales stands in the official metadata of 2025."""
    lines = (SHARED / "oracle" / "icd10gm2025syst_kodes.txt").read_text(encoding="utf-8").splitlines()
    titles = {fields[6]: fields[8] for fields in (line.split(";") for line in lines)}
    assert check_scales(titles.get) == []


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("ADHS", "Aufmerksamkeitsdefizit-Hyperaktivitätsstörung"),
        ("chron. Bronchitis", "chronische Bronchitis"),
        ("KHK", "koronare Herzkrankheit"),
        ("khk", "koronare Herzkrankheit"),
        ("Magen-Ca", "Magenkarzinom"),
        ("KolonCa", "Kolonkarzinom"),
        ("Niereninsuff.", "Niereninsuffizienz"),
        ("M. Bechterew", "Spondylitis ankylosans"),
        ("E.coli Sepsis", "Escherichia coli Sepsis"),
        ("Fil. pulm.", "Lungenmetastasen"),
        ("MS mit Schub", "Multiple Sklerose mit Schub"),
        ("MS und AI", "Mitralklappenstenose und Aortenklappeninsuffizienz"),
        ("fieberhafter HWI", "fieberhafter Harnwegsinfekt"),
        ("HWI, Stent RCA", "Hinterwandinfarkt, Stent rechte Koronararterie"),
    ],
)
def test_an_abbreviation_is_written_out_first(line, written):
    """The other words of the line settle an ambiguous one."""
    first = next(v for v in understand(line).variants if v.how == "abbreviation")
    assert first.text == written
    assert first.weight > 0.9


def test_an_unsettled_abbreviation_gives_all_its_readings():
    """Alone, "HWI" may be either."""
    readings = [v.text for v in understand("HWI").variants if v.how == "abbreviation"]
    assert readings == ["Harnwegsinfekt", "Hinterwandinfarkt"]


def test_case_matters_where_the_table_says_so():
    """The short form "MS" is written out, "ms" is not."""
    assert understand("MS").variants
    assert not understand("ms").variants


def test_mined_abbreviations_are_used_where_the_table_knows_none():
    """A short form that the corpus explains is written out."""
    mined = mine_abbreviations(["Syndrom mit XQZ [Xerotische Quaddelzelle]"])
    assert [v.text for v in understand("XQZ", mined).variants] == ["Xerotische Quaddelzelle"]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("Zucker", "Diabetes mellitus"),
        ("Herzschwäche", "Herzinsuffizienz"),
        ("Raucherin", "Nikotinabhängigkeit"),
        ("Wasser in den Beinen", "Beinödem"),
        ("Schlüsselbeinbruch", "Klavikulafraktur"),
        ("Speichenbruch", "Radiusfraktur"),
        ("Nabelbruch", "Nabelhernie"),
        ("Coxarthrose", "Koxarthrose"),
        ("Clavicula-Fraktur", "Klavikula-Fraktur"),
        ("Gallensteine", "Cholelithiasis"),
        ("jugendlicher Diabetes", "Diabetes mellitus Typ 1"),
        ("Kniegelenksverschleiß", "Kniegelenksarthrose"),
        ("pulmonal filialisiert", "Lungenmetastasen"),
        ("hepatische Filiae", "Lebermetastasen"),
        ("BSV C5/6", "zervikaler Bandscheibenvorfall/6"),
        ("Wanderröte", "Erythema chronicum migrans"),
        ("Frozen shoulder", "adhäsive Entzündung der Schultergelenkkapsel"),
    ],
)
def test_lay_words_and_spellings_are_also_tried_as_terms(line, meant):
    """Lay word, compound or spelling: the term of the field is among the texts to try."""
    assert meant in [v.text for v in understand(line).variants]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("offene Beine", "Ulcus cruris"),
        ("Wasser im Bein", "Beinödem"),
        ("Wasser in Beinen", "Beinödem"),
        ("reduzierte Hüften", None),
        ("Herz, offen", None),
    ],
)
def test_a_phrase_is_found_in_any_inflection_with_or_without_articles(line, meant):
    """Endings and articles may differ from the table; another word may not."""
    texts = [v.text for v in understand(line).variants if v.how == "synonym"]
    assert (meant in texts) if meant else not texts


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("dement", "Demenz"),
        ("schwer herzinsuffizient", "schwer Herzinsuffizienz"),
        ("hypokaliämisch, dement", "Hypokaliämie, Demenz"),
        ("Drogenabhängiger", "Abhängigkeit von Drogen"),
        ("Migränikerin", "Migräne"),
        ("adipöse Patientin", "Adipositas"),
        ("Epilepsiepatient", "Epilepsie"),
        ("Fieber", "Fieber, nicht näher bezeichnet"),
        ("Husten, Fieber", "Husten, Fieber, nicht näher bezeichnet"),
    ],
)
def test_a_word_alone_in_its_clause_stands_for_the_condition(line, meant):
    """Adjectives, persons and bare nouns that a list uses as a diagnosis are read as the condition."""
    assert meant in [v.text for v in understand(line).variants]


@pytest.mark.parametrize(
    "line",
    [
        "Psychose schizophren",
        "ischämisch",
        "depressive Reaktion",
        "hämorrhagisches Fieber",
        "Fieber bei Malaria",
        "Lähmung (paraplegisch)",
        "Grad 2: Fieber",
        "drogenabhängige Mutter",
        "bei Dementen",
        "Risikopatient",
    ],
)
def test_a_word_beside_others_is_no_condition_of_its_own(line):
    """An attribute, a noun with others around it, a word in brackets or behind a preposition stays."""
    assert not [v.text for v in understand(line).variants if v.how == "synonym"]


def test_an_abbreviation_is_not_written_out_where_its_long_form_stands():
    """The line that says "Multiresistenz 3MRGN" says already what "3MRGN" stands for."""
    found = [v.text for v in understand("Escherichia coli mit Multiresistenz 3MRGN").variants]
    assert not [text for text in found if text.count("Multiresistenz") > 1]
    assert "Multiresistenz 3MRGN" in [v.text for v in understand("3MRGN").variants]


@pytest.mark.parametrize("line", ["Schwangerschaftsabbruch", "Zahnstein", "Diabetes mellitus Typ 2"])
def test_a_kept_word_is_not_taken_apart(line):
    """An Abbruch is no Fraktur, a Zahnstein no Lithiasis, and what is said is not said twice."""
    found = " ".join(v.text for v in understand(line).variants)
    assert "fraktur" not in found
    assert "lithiasis" not in found
    assert "mellitus mellitus" not in found


def test_pairs_in_brackets_are_mined_both_ways_if_the_letters_fit():
    """Short before long, long before short; letters out of order or plain words are refused."""
    pairs = mine_abbreviations(
        [
            "ZKM [Zufällige Knochenmarkreaktion]",
            "Schwere akute Testkrankheit [SAT]",
            "ABC [Ganz etwas anderes]",
            "Stimmlippe [Stimmband]",
            "Larynx-QTP [Quer treibende Partikel]",
            "ohne Klammer",
        ]
    )
    assert pairs == {
        "ZKM": ("Zufällige Knochenmarkreaktion",),
        "SAT": ("Schwere akute Testkrankheit",),
        "QTP": ("Quer treibende Partikel",),
    }


@needs_shared
@pytest.mark.full
def test_the_full_corpus_yields_hundreds_of_pairs():
    """The full-size corpus explains more than 500 of its own abbreviations."""
    path = SHARED / "full" / "icd10gm2023_alphaidse_edvtxt_20220930.txt"
    pairs = mine_abbreviations(line.split("|")[7] for line in path.read_text(encoding="utf-8").splitlines())
    assert len(pairs) > 500
    assert "Koronare Herzkrankheit" in pairs["KHK"]


def test_the_tables_are_as_large_as_promised():
    """400 abbreviations or more, 300 synonyms or more, ambiguous short forms among them."""
    rows = read_table("abbreviations.tsv", ("short", "case", "long", "context", "join", "field"))
    shorts = [row["short"] for row in rows]
    assert len(set(shorts)) >= 400
    assert len(shorts) - len(set(shorts)) >= 30
    assert len(read_table("synonyms.tsv", ("said", "means", "kind", "way", "where"))) >= 300


@pytest.mark.parametrize(
    ("table", "load", "line", "says"),
    [
        (
            "abbreviations.tsv",
            load_abbreviations,
            "KHK\tsometimes\tx\t\t\t",
            "'case' must be one of exact, any",
        ),
        ("abbreviations.tsv", load_abbreviations, "KHK\tany", "6 cells expected, 2 found"),
        ("synonyms.tsv", load_synonyms, "Zucker\t\tlay\tto\tword", "'means' must not be empty"),
        ("cues.tsv", check_cues, "side\tR\t\t(re\t", "not a regular expression"),
        ("drugs.tsv", check_cues, "drug\tbrand\t\tAspirin\ta drug", "'value' must be one of"),
        ("drugs.tsv", check_cues, "drug\tword\t\t\ta drug", "'pattern' must not be empty"),
        ("scales.tsv", load_scales, "NYHA\t5\tlow\t\tI50.9\tone\t", "'low' must be a number"),
        ("scales.tsv", load_scales, "NYHA\t5\t\t\t\tone\t", "codes must be given"),
        (
            "scale_patterns.tsv",
            load_scales,
            "Apgar\tapgar\t\t\tapgar {V}\t\tP21\t\tdigit",
            "no row in scales.tsv",
        ),
    ],
)
def test_a_broken_row_is_named_with_file_and_line(tmp_path, table, load, line, says):
    """A ConfigError tells the file, the line and what is wrong with it."""
    folder = tmp_path / "tables"
    shutil.copytree(TABLES, folder)
    count = (folder / table).read_text(encoding="utf-8").rstrip("\n").count("\n") + 1
    text = (folder / table).read_text(encoding="utf-8").rstrip("\n")
    (folder / table).write_text(f"{text}\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"{table}, line {count + 1}: ") as caught:
        load(folder)
    assert says in str(caught.value)


def test_a_missing_table_is_named(tmp_path):
    """Without its file the error names the table and the cure."""
    with pytest.raises(ConfigError, match=r"synonyms\.tsv cannot be read"):
        load_synonyms(tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("abcd ", max_size=5), max_size=12), st.text("abcd ", max_size=30))
def test_a_finder_finds_what_stands_in_a_text(stems, text):
    """Of any stems, short ones too, exactly those that stand in the text are found."""
    finder = Finder(stems)
    wanted = {stem for stem in stems if stem and stem in text}
    assert set(finder.all_in(text)) == wanted
    assert finder.any_in(text) == bool(wanted)
