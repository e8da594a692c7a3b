"""``alpha-id`` as its users meet it: processes, streams, exit codes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.command import COMMAND, alpha_id, answer, complaint, environment

if TYPE_CHECKING:
    from pathlib import Path

INPUT = "Asiatische Cholera\n\nGehirnschlag\n"


def _codes(plain: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["icd_code"] for each in plain["suggestions"]]


# --- suggest: streams


def test_a_pipe_gets_json_and_standard_input_is_read(sample_storage: Path) -> None:
    """Without a file, or with -; nothing on stderr."""
    done = alpha_id("suggest", "--storage", sample_storage, stdin=INPUT.encode())
    plain = json.loads(done.stdout)

    assert (done.returncode, done.stderr) == (0, b"")
    assert _codes(plain)[:2] == ["A00.0", "I64"]
    assert plain["diagnostics"]["segment_count"] == 2
    assert _codes(answer("suggest", "-", "--storage", sample_storage, stdin=INPUT)) == _codes(plain)


def test_a_file_with_bom_and_crlf_is_read(sample_storage: Path, tmp_path: Path) -> None:
    """As Windows writes it."""
    file = tmp_path / "Diagnosen Müller.txt"
    file.write_bytes(b"\xef\xbb\xbf" + "1. Schüttellähmung\r\n\r\n2. Gehirnschlag\r\n".encode())
    plain = answer("suggest", file, "--storage", sample_storage)

    assert plain["diagnostics"]["segment_count"] == 2
    assert {"G20.90", "I64"} <= set(_codes(plain)[:2])
    assert {o["phrase"] for each in plain["suggestions"] for o in each["origins"]} == {
        "Schüttellähmung",
        "Gehirnschlag",
    }


def test_each_gives_one_answer_a_non_empty_line(sample_storage: Path) -> None:
    """With its phrase; no line gives an empty list."""
    plain = answer("suggest", "--each", "--storage", sample_storage, stdin=INPUT + "???\n")

    assert [each["phrase"] for each in plain] == ["Asiatische Cholera", "Gehirnschlag", "???"]
    assert [_codes(each)[:1] for each in plain] == [["A00.0"], ["I64"], []]
    assert plain[2]["diagnostics"]["reason"]
    assert answer("suggest", "--each", "--storage", sample_storage, stdin="\n") == []


def test_a_table_is_for_people(sample_storage: Path) -> None:
    """Code, title, source, tags, and what the product is not; the line without code is named."""
    done = alpha_id("suggest", "--table", "--storage", sample_storage, stdin=b"Asiatische Cholera\n???\n")
    text = " ".join(done.stdout.decode().split())

    assert done.returncode == 0
    for part in ("A00.0", "“Asiatische Cholera” (I9900044, ORPHA 173)", "billable", "not a medical device"):
        assert part in text
    assert "Line 1 yields no code" in text


@pytest.mark.parametrize("option", ["--json", "--table"])
def test_output_is_utf_8_whatever_the_locale_says(sample_storage: Path, option: str) -> None:
    """A service without a locale, and an environment that asks for ASCII."""
    poor = {
        "LC_ALL": "C",
        "LANG": "",
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = alpha_id(
        "suggest", option, "--storage", sample_storage, stdin="Schüttellähmung".encode(), variables=poor
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert "Schüttellähmung" in done.stdout.decode()


def test_help_and_errors_survive_an_ascii_terminal(sample_storage: Path) -> None:
    """With examples in the help; a name with umlauts in the error."""
    poor = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = alpha_id("suggest", "--help", variables=poor)
    assert done.returncode == 0
    assert b"examples:" in done.stdout
    complaint(alpha_id("code", "Ü99", "--storage", sample_storage, variables=poor), 2)


def test_a_reader_that_goes_away_is_no_error(sample_storage: Path) -> None:
    """``| head`` of a long answer."""
    lines = "".join(f"Hypertonie {n}\n" for n in range(200))
    with subprocess.Popen(
        [*COMMAND, "suggest", "--each", "--storage", str(sample_storage)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(lines.encode())
        process.stdin.close()
        assert process.stdout.read(1) == b"["
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_full_disk_is_one_paragraph(sample_storage: Path) -> None:
    """What could not be written is not claimed."""
    with open("/dev/full", "wb") as full:  # noqa: PTH123 -- a device
        done = subprocess.run(
            [*COMMAND, "suggest", "--storage", str(sample_storage)],
            input=b"Gicht",
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert done.returncode == 2
    assert b"standard output" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_closed_streams_are_one_paragraph(sample_storage: Path) -> None:
    """As a badly written service starts it."""
    for redirection, word in (("<&-", "input"), (">&-", "output")):
        done = subprocess.run(
            [
                "bash",
                "-c",
                f'echo Gicht | "$@" {redirection}',
                "-",
                *COMMAND,
                "suggest",
                "--storage",
                sample_storage,
            ],
            capture_output=True,
            env=environment(),
            check=False,
        )
        assert f"Standard {word} is closed" in complaint(done, 2)


# --- suggest: exit codes


def test_a_phrase_in_the_place_of_a_file_is_not_repeated(sample_storage: Path) -> None:
    """Who types a phrase is told how to pass it, and no error text holds it."""
    said = complaint(alpha_id("suggest", "Herzinsuffizienz NYHA III", "--storage", sample_storage), 2)
    assert "alpha-id suggest -" in said
    assert "Herz" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--chapters", "99"], "--chapters 99"),
        (["--groups", "I15-I10"], "--groups I15-I10"),
        (["--prefix", "11"], "--prefix 11"),
        (["--age", "alt"], "--age"),
        (["no such file.txt"], "no such file.txt"),
        (["/"], "cannot be read"),
        (["--config", "no such.toml"], "no such.toml"),
    ],
)
def test_wrong_use_ends_in_2(sample_storage: Path, arguments: list[str], words: str) -> None:
    """One paragraph on stderr, nothing on stdout."""
    done = alpha_id("suggest", *arguments, "--storage", sample_storage)

    assert words in complaint(done, 2)
    assert done.stdout == b""


@pytest.mark.parametrize(
    "arguments", [["--sex", "q"], ["--top", "0"], ["--top", "x"], ["--json", "--table"], ["--nope"]]
)
def test_an_option_that_is_none_ends_in_2(arguments: list[str]) -> None:
    """With the usage."""
    done = alpha_id("suggest", *arguments)

    assert done.returncode == 2
    assert done.stderr.startswith(b"usage: alpha-id ")
    assert b"Traceback" not in done.stderr


def test_input_that_is_not_utf_8_ends_in_2_and_is_not_quoted(sample_storage: Path) -> None:
    """Phrases are patient data; not even the traceback shows them."""
    done = alpha_id(
        "suggest", "--debug", "--storage", sample_storage, stdin="Gehirnschlag, Müller".encode("cp1252")
    )

    assert done.returncode == 2
    assert b"not UTF-8 (byte 15)" in done.stderr
    assert b"Traceback" in done.stderr
    assert b"Gehirnschlag" not in done.stderr


def test_without_a_build_it_ends_in_3_with_the_command(tmp_path: Path) -> None:
    """For suggest and code; ``info`` says it and ends in 0. --debug shows the traceback."""
    assert "alpha-id index build" in complaint(alpha_id("suggest", "--storage", tmp_path, stdin=b"x"), 3)
    assert "alpha-id index build" in complaint(alpha_id("code", "I10", "--storage", tmp_path), 3)
    done = alpha_id("suggest", "--debug", "--storage", tmp_path, stdin=b"x")
    assert done.returncode == 3
    assert b"Traceback" in done.stderr

    plain = answer("info", "--storage", tmp_path)
    assert plain["build"] is None
    assert {"what": "a published build", "command": "alpha-id index build"} in plain["missing"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("current.json", b"{"),
        ("current.json", b'{"build_id": "gone"}'),
        ("manifest.json", b"null"),
        ("codes.parquet", b"no parquet"),
        ("phrases.parquet", b""),
        ("tantivy/meta.json", b"{}"),
        ("tantivy/ids.npy", b"\x93NUMPY"),
    ],
)
def test_a_damaged_build_ends_in_3_with_the_command(
    sample_storage: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    """Whatever file it is; and ``info`` still answers."""
    for path in sample_storage.rglob("*"):
        if path.is_file() and "assets" not in path.parts:
            copy = tmp_path / path.relative_to(sample_storage)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content if str(path).endswith(f"/{name}") else path.read_bytes())

    assert "alpha-id index build" in complaint(alpha_id("suggest", "--storage", tmp_path, stdin=b"Gicht"), 3)
    if name.endswith(".json"):
        assert answer("info", "--storage", tmp_path)["build"] is None


# --- filters at the command line


def test_filters_are_options(sample_storage: Path) -> None:
    """All of them together; sex and age, too."""
    plain = answer(
        "suggest", "--billable-only", "--sector", "ambulant", "--valid-only", "--chapters", "C,9",
        "--exclude-exotic", "--content-only", "--sex", "w", "--age", "45", "--strict",
        "--storage", sample_storage,
        stdin="Prostatakarzinom\nMammakarzinom\nHypertonie\nAsiatische Cholera",
    )  # fmt: skip
    codes = _codes(plain)

    assert {"C50.9", "I10.90"} <= set(codes)
    assert "C61" not in codes
    assert all(code[0] in "CI" for code in codes)


def test_flags_weigh_more_than_the_environment_and_that_more_than_the_file(
    sample_storage: Path, tmp_path: Path
) -> None:
    """``config`` says where each value comes from; a flag takes back a filter of the file."""
    file = tmp_path / "a.toml"
    file.write_text(
        f'storage = "{sample_storage}"\ntop = 3\n[filter]\nchapters = ["I"]\nstrict = true\nsex = "w"\n'
        "[lexical]\npool = 50\n"
    )
    variables = {
        "ALPHA_ID_CONFIG": str(file),
        "ALPHA_ID_TOP": "2",
        "ALPHA_ID_FILTER_CHAPTERS": "A,G",
        "ALPHA_ID_MIN_SCORE": "0",  # what passes is unlike the lines
    }
    done = alpha_id("config", "--json", variables=variables)
    listed = json.loads(done.stdout)

    assert listed["top"] == {"value": 2, "from": "ALPHA_ID_TOP"}
    assert listed["filter.chapters"] == {"value": ["A", "G"], "from": "ALPHA_ID_FILTER_CHAPTERS"}
    assert listed["filter.strict"] == {"value": True, "from": str(file)}
    assert listed["filter.sex"] == {"value": "w", "from": str(file)}
    assert listed["lexical.pool"] == {"value": 50, "from": str(file)}
    assert listed["mode"] == {"value": "a", "from": "default"}
    assert listed["filter.billable_only"] == {"value": False, "from": "default"}

    done = alpha_id("suggest", stdin=b"Prostatakarzinom\nGehirnschlag", variables=variables)
    assert {code[0] for code in _codes(json.loads(done.stdout))} <= {"A", "G"}
    assert len(json.loads(done.stdout)["suggestions"]) == 2
    done = alpha_id(
        "suggest",
        "--top",
        "1",
        "--chapters",
        "C",
        "--no-strict",
        stdin=b"Prostatakarzinom",
        variables=variables,
    )
    [only] = json.loads(done.stdout)["suggestions"]
    assert (only["icd_code"], only["conflict"]) == ("C61", ["sex"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("top = 0", "top = 0 is not a whole number of 1 or more"),
        ("top = inf", "top = inf"),
        ("tpo = 3", "there is no setting tpo"),
        ("[filter]\nsex = 'q'", "one of m, w, d, x"),
        ("[filter]\nstrict = 1", "true or false"),
        ("data = 5", "path"),
        ("top = ", "cannot be read as TOML"),
    ],
)
def test_a_configuration_that_cannot_be_meant_ends_in_2(tmp_path: Path, text: str, words: str) -> None:
    """The file and the setting are named."""
    file = tmp_path / "a.toml"
    file.write_text(text)

    message = complaint(alpha_id("config", "--config", file), 2)
    assert words in message
    assert str(file) in message


# --- info and code


def test_info_tells_editions_counts_and_what_is_missing(sample_storage: Path, tmp_path: Path) -> None:
    """And what the product is not, and the command for what is missing."""
    plain = answer("info", "--storage", sample_storage)
    assert plain["build"]["claml"]["edition"] == 2026
    assert plain["build"]["counts"]["phrases"] > 500
    assert all(each["command"] for each in plain["missing"])
    assert "not a medical device" in plain["notice"]

    text = alpha_id(
        "info", "--table", "--storage", sample_storage, "--data", tmp_path / "none"
    ).stdout.decode()
    assert "alpha_id: edition 2026" in text
    assert "none is not there" in text


def test_a_code_is_shown_with_its_tags_place_inclusions_and_phrases(sample_storage: Path) -> None:
    """As JSON and for people; with or without dot and mark."""
    plain = answer("code", "e1172", "--storage", sample_storage)
    assert (plain["icd_code"], plain["suggested"], plain["why_not"]) == ("E11.72", True, None)
    assert [each["icd_code"] for each in plain["hierarchy"]] == ["IV", "E10-E14", "E11.-", "E11.7-"]
    assert "Typ-2-Diabetes mit mehreren Folgeschäden" in [each["text"] for each in plain["phrases"]]
    assert plain["tags"]["billable"] is True

    text = alpha_id("code", "E11.72", "--table", "--storage", sample_storage).stdout.decode()
    assert "Para295 P, Para301 P" in text


def test_a_tolerated_code_says_why_it_is_not_suggested(sample_storage: Path) -> None:
    """E11.7: Para295 is P, and yet it is subdivided."""
    plain = answer("code", "E11.7", "--storage", sample_storage)

    assert (plain["suggested"], plain["tags"]["para295"], plain["tags"]["billable"]) == (False, "P", False)
    assert "subdivided" in plain["why_not"]
    assert "GP care" in plain["why_not"]
    assert [each["icd_code"] for each in plain["children"]] == ["E11.72", "E11.73", "E11.74", "E11.75"]
    assert "placeholder" in answer("code", "U13.0", "--storage", sample_storage)["why_not"]
    assert answer("code", "I10-I15", "--storage", sample_storage)["kind"] == "block"
    assert "has no code" in complaint(alpha_id("code", "Z00.999", "--storage", sample_storage), 2)


def test_the_table_says_certainty_and_side(sample_storage):
    """A bill needs both; and what is excluded is said to be so, not to be unbillable as such."""
    done = alpha_id(
        "suggest", "-", "--mode", "c", "--table", "--storage", sample_storage,
        stdin=b"V.a. Pneumonie\nSchenkelhalsfraktur links\nAusschluss Hypertonie\n",
    )  # fmt: skip
    shown = done.stdout.decode()
    assert "V suspected" in shown
    assert "L left" in shown
    assert "A excluded" in shown


def test_nothing_but_blank_lines_says_why_under_each_too(sample_storage):
    """A table of no lines is no empty screen."""
    arguments = ["suggest", "-", "--mode", "c", "--each", "--table", "--storage", sample_storage]
    assert "holds no non-empty line" in alpha_id(*arguments, stdin=b"\n \n").stdout.decode()
