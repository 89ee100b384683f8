"""Results in docs/results are of the program as it is: same experiments, parameters and rows, text and JSON alike."""

import json
import re
from pathlib import Path

import pytest

from nearid.lab.framework.experiment import HOMES, experiment
from nearid.lab.framework.settings import as_dict, parameters_for

RESULTS = Path(__file__).parents[1] / "docs" / "results"
FILES = sorted(RESULTS.glob("*.json"))
PAGE = (RESULTS.parent / "reproduce.md").read_text()
# Results that the page declares to be of an older version of their experiment.
OLDER = re.findall(r"\]\(results/([\w-]+)\.txt\)(?:(?!\n-).)*?of an older version", PAGE, re.DOTALL)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_result_is_of_the_present_program(file):
    told = json.loads(file.read_text())
    e = experiment(told["experiment"])
    made = told["provenance"]
    p = parameters_for(e, made["preset"], made["parameters"])
    assert as_dict(p) == made["parameters"] and told["about"] == e.about
    # Results from before experiments told their version have none.
    assert (made.get("version", e.version) != e.version) == (file.stem in OLDER)
    rows = [row.key for row in e.rows(p)]
    found = [row["row"] for row in told["table"]]
    if file.stem in HOMES:
        # Not changed by the user, and whole.
        assert p == parameters_for(e, "cpu") and found == rows and not told["failures"]
        assert len(told["cells"]) == len(rows) * made["seeds"]
    else:
        assert set(found) <= set(rows)
    assert [c["claim"] for c in told["claims"]] == [claim.text for claim in e.claims]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_printed_table_is_that_of_the_json(file):
    told = json.loads(file.read_text())
    lines = file.with_suffix(".txt").read_text().splitlines()
    printed = [line.split(" ", 1)[1].partition(": ")[0] for line in lines if line[:1] in ("✓", "✗", "?")]
    assert printed == [c["status"] for c in told["claims"]]
    text = " ".join(" ".join(lines).split())
    for shown in (told["about"], *(claim["claim"] for claim in told["claims"])):
        assert " ".join(shown.split()) in text
