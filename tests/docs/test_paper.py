"""The paper cites what its bibliography has, and its figures are those of the pages."""

import re
from itertools import takewhile

from blocks import ROOT

PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", BIBLIOGRAPHY, re.M | re.S)
NUMBER = r"\d+(?:,\d{3})*"
FIGURE = re.compile(rf"{NUMBER} of {NUMBER}|\.\d+ to \.\d+")


def cells(text, start):
    """The rows of the first table below a heading or a sentence, as lists of cells."""
    lines = text.split(start, 1)[1].splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("|"))
    rows = list(takewhile(bool, lines[first:]))[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_every_reference_is_cited_and_every_citation_is_listed():
    assert {key for key, _ in ENTRIES} == set(re.findall(r"@(\w+)", PAPER))
    for key, fields in ENTRIES:
        for needed in ("title", "author", "year"):
            assert re.search(rf"^  {needed} = ", fields, re.M), f"{key} has no {needed}"
        assert re.search(r"^  (doi|url) = ", fields, re.M), f"{key} has neither doi nor url"


def test_error_rates_are_those_of_the_validity_page():
    page = (ROOT / "docs" / "concepts" / "validity.md").read_text(encoding="utf-8")
    stated = {figure for row in cells(page, "## In one table") for cell in row for figure in FIGURE.findall(cell)}
    figures = [figure for row in cells(PAPER, "**Error rates.**") for figure in FIGURE.findall(row[-1])]
    assert len(figures) >= 9 and set(figures) <= stated


def claims_sentence(board):
    """What the paper must say of the runs and claims that the scoreboard counts."""
    *rows, total = cells(board, "<!-- scoreboard")
    runs = sum("further run" not in row[0] for row in rows)
    reproduced, missed, undecided, untested = total[5].strip("*").split("/")
    return (
        f"In {runs} stored runs, {reproduced} claims are reproduced, {missed} are not "
        f"reproduced, {undecided} are undecided and {untested} could not be tested."
    )


def test_claims_are_those_of_the_scoreboard():
    sentence = claims_sentence((ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8"))
    text = " ".join(PAPER.split())
    now = re.search(r"In \d+ stored runs, [^.]*\.", text)
    assert sentence in text, f"In paper/paper.md, replace {now and now[0]!r} by {sentence!r}"


def test_further_runs_are_not_counted():
    board = (
        "<!-- scoreboard -->\n\n| experiment | | | | | claims |\n|---|---|---|---|---|---|\n"
        "| [radial](#radial) | | | | | 3/0/0/0 |\n"
        "| [radial-long](#radial)<br>further run | | | | | – |\n| **all experiments** | | | | | **3/0/1/2** |\n"
    )
    assert claims_sentence(board).startswith("In 1 stored runs, 3 claims are reproduced, 0 are")


def test_the_paper_has_the_sections_and_the_length_that_joss_asks_for():
    body = PAPER.split("---", 2)[2]
    sections = re.findall(r"^# (.+)$", body, re.M)
    asked = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"]
    assert sections[:5] == asked and {"AI usage disclosure", "References"} <= set(sections)
    assert 750 <= len(body.split()) <= 1750
