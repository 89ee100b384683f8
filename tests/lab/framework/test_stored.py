"""Results that are read again: scores of the file, claims of today; an older result as it was."""

import json
from dataclasses import replace
from unittest import mock

import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.claims import Claim, Outcome, Status, at_least
from nearid.lab.framework.experiment import HOMES
from nearid.lab.framework.stored import read_result
from toy_experiments import TOY


@pytest.fixture
def stored(result, tmp_path, monkeypatch):
    """The result of the toy experiment in a file, read after the experiment and the file were changed."""
    monkeypatch.setitem(HOMES, "toy", "toy_experiments:TOY")
    file = tmp_path / "result.json"

    def read(change=lambda record: None, **changes):
        record = result.to_dict()
        change(record)
        file.write_text(json.dumps(record))
        with mock.patch("toy_experiments.TOY", replace(TOY, **changes)):
            return read_result(file)

    return read


def test_read_again_it_says_the_same(stored, result):
    again = stored()
    assert not again.older and again.to_dict()["claims"] == result.to_dict()["claims"]
    assert again.to_dict()["table"] == result.to_dict()["table"] and again.seeds == result.seeds and not again.only
    assert again.curves("walk") == result.curves("walk")


def test_a_result_that_names_no_machine_can_be_read(stored, result):
    assert stored(lambda record: record["provenance"].update(machines=[])).seeds == result.seeds


def test_a_claim_is_worded_and_added_without_another_run(stored):
    more = Claim("Low is not low.", at_least("low", "score", 0.4))
    first = replace(TOY.claims[0], text="The high row is high.")
    again = stored(claims=(first, *TOY.claims[1:], more))
    assert [c.text for c, _ in again.outcomes] == [first.text, *(c.text for c in TOY.claims[1:]), more.text]
    assert again.outcomes[0][1].status is again.outcomes[-1][1].status is Status.REPRODUCED


def test_a_claim_that_needs_more_than_is_stored_keeps_its_outcome(stored, result):
    def on_views(result):
        return Outcome(Status.UNDECIDED, str(result.cells[0].data["views"]))

    again = stored(claims=(Claim("A claim on views.", on_views), *TOY.claims[1:]))
    claim, outcome = again.outcomes[0]
    kept = result.outcomes[0][1]
    assert claim.text == "A claim on views." and (outcome.status, outcome.sentence) == (kept.status, kept.sentence)
    assert outcome.figures == kept.figures
    again = stored(claims=(*TOY.claims, Claim("A claim on views.", on_views)))
    assert [o.status for _, o in again.outcomes] == [*(o.status for _, o in result.outcomes), Status.NOT_TESTABLE]


def test_outcomes_are_matched_by_sentence_first(stored, result):
    def on_views(result):
        return Outcome(Status.UNDECIDED, str(result.cells[0].data["views"]))

    before = {claim.text: outcome.status for claim, outcome in result.outcomes}
    first, *others = (replace(claim, test=on_views) for claim in TOY.claims)
    # In another order, and one of them worded anew.
    again = stored(claims=(*reversed(others), replace(first, text="The high row is high.")))
    now = {claim.text: outcome.status for claim, outcome in again.outcomes}
    assert (
        len(set(before.values())) > 1 and now.pop("The high row is high.") == before.pop(first.text) and now == before
    )


def test_a_result_without_a_version_is_of_the_first_version(stored):
    def unnamed(record):
        del record["provenance"]["version"]

    assert not stored(unnamed, version=1).older and stored(unnamed, version=2).older


def test_failed_cells_are_read_again(stored):
    def failing(record):
        cell = record["cells"].pop()
        record["failures"].append({"row": cell["row"], "seed": cell["seed"], "error": "It broke.", "trace": ""})

    [failed] = stored(failing).failures
    assert (failed.cell.row.key, failed.cell.seed, failed.failure.error) == ("high", 2, "It broke.")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["provenance"].update(version=0),
        lambda record: record["provenance"]["parameters"].update(vanished=3),
        lambda record: record["table"][0].update(row="vanished"),
    ],
    ids=["version", "parameter", "row"],
)
def test_a_result_of_another_experiment_than_todays_is_as_it_was(stored, change, result):
    def changed(record):
        change(record)
        for cell in record["cells"]:
            cell["row"] = record["table"][0]["row"] if cell["row"] == "low" else cell["row"]

    again = stored(changed, claims=(), columns=TOY.columns[:1])
    assert again.older and [c.text for c, _ in again.outcomes] == [c.text for c in TOY.claims]
    assert [o.status for _, o in again.outcomes] == [o.status for _, o in result.outcomes]
    assert again.estimate("high", "score") == result.estimate("high", "score") and str(again)


def test_the_command_of_an_older_result_is_the_one_that_was_typed(stored):
    typed = "nearid reproduce toy -o 'my results' --set 'kind=a b' --seeds 3"

    def changed(record):
        record["provenance"]["parameters"]["vanished"] = 3
        record["provenance"]["command"] = typed

    again = stored(changed)
    assert again.older and not again.readable
    assert again.recorded_command == "nearid reproduce toy --set 'kind=a b' --seeds 3"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"experiment": "toy"}', '{"experiment": 3, "provenance": 1}'])
def test_what_is_no_result_gets_a_sentence(tmp_path, monkeypatch, text):
    monkeypatch.setitem(HOMES, "toy", "toy_experiments:TOY")
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError):
        read_result(tmp_path / "result.json")
