"""Results in docs/results are of the program as it is: same parameters, rows, columns and claims."""

import json
from pathlib import Path

import pytest

from nearid.lab.framework.experiment import HOMES, experiment
from nearid.lab.framework.settings import parameters_for
from nearid.lab.framework.stored import matched, read_result

RESULTS = Path(__file__).parents[1] / "docs" / "results"
FILES = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_result_is_of_the_present_program_or_of_an_older_version_that_it_names(file):
    record = json.loads(file.read_text())
    e, made, result = experiment(record["experiment"]), record["provenance"], read_result(file)
    # Nothing but a version that was raised makes a result an older one: rows and parameters do not change silently.
    assert result.older == (made.get("version", 1) != e.version)
    if result.older:
        return
    # Sentences of claims may be worded better, but no stored outcome is lost or given to two claims.
    outcomes = [id(outcome) for _, outcome in matched(e.claims, record["claims"]) if outcome is not None]
    assert sorted(outcomes) == sorted(id(claim) for claim in record["claims"])
    keys = {c.key for c in e.columns}
    assert all(keys == row["scores"].keys() for row in record["table"])
    if file.stem in HOMES:
        # Not changed by the user, and whole but for rows that were added to the table since the run.
        assert result.parameters == parameters_for(e, made["preset"]) and not record["failures"]
        assert len(record["cells"]) == len(record["table"]) * made["seeds"]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_stored_table_and_statuses_follow_from_the_stored_cells(file):
    record, result = json.loads(file.read_text()), read_result(file)
    for row in record["table"]:
        for column, score in row["scores"].items():
            mean = result.estimate(row["row"], column).value
            assert score["mean"] is None or mean == pytest.approx(score["mean"], rel=1e-9)
            assert {int(seed): value for seed, value in score["by_seed"].items()} == result.scores(row["row"], column)
    assert [str(outcome.status) for _, outcome in result.outcomes] == [c["status"] for c in record["claims"]]
