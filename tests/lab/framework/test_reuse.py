"""Cells of a stored result are reused by a later run: only equal ones, and the result names them."""

import json
import os
from dataclasses import replace

import pytest

from nearid import __version__
from nearid.base.errors import InputError
from nearid.lab.framework.claims import Claim, Outcome, Status
from nearid.lab.framework.experiment import HOMES
from nearid.lab.framework.run import plan, reproduce, run
from nearid.lab.framework.stored import read_result
from toy_results import Inline


@pytest.fixture
def earlier(toy, tmp_path):
    """A stored result of the low row, and what to change in its file."""
    experiment, ran = toy
    whole = reproduce(experiment, tmp_path / "first", rows=["low"], engine=Inline())
    ran()
    file = tmp_path / "stored.json"

    def write(change=lambda record: None):
        record = whole.to_dict()
        change(record)
        file.write_text(json.dumps(record))
        return file

    return write


def test_only_missing_cells_run_and_the_result_is_that_of_a_whole_run(toy, earlier, tmp_path, inline):
    experiment, ran = toy
    whole = reproduce(experiment, tmp_path / "whole", engine=Inline())
    ran()
    file = earlier(lambda record: record["provenance"].update(nearid="0.0.1", machines=[{"processor": "old"}]))
    said = []
    [again] = run([plan(experiment, tmp_path / "out", reuse=file)], say=said.append)
    assert ran() == ["0.9 0", "0.9 1", "0.9 2"] and f"3 of 6 cells are reused from {file}." in said
    assert [o.status for _, o in again.outcomes] == [o.status for _, o in whole.outcomes]
    assert again.to_dict()["table"] == whole.to_dict()["table"]
    assert again.curves("walk") == whole.curves("walk")
    # What was reused is named: in the cells, in the provenance and in the table that a reader sees.
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    source = {"file": file.as_posix(), "nearid": "0.0.1"}
    assert [cell.get("reused") for cell in record["cells"] if cell["row"] == "low"] == [source] * 3
    assert not any("reused" in cell for cell in record["cells"] if cell["row"] == "high")
    assert record["provenance"]["reused"] == [source | {"cells": 3}]
    assert record["provenance"]["nearid"] == __version__ and {"processor": "old"} in record["provenance"]["machines"]
    assert again.view.facts[f"from {file}"] == "3 cells, computed with nearid 0.0.1"
    # Cells of another version are not mixed with those that this version has computed.
    assert len(list((tmp_path / "out" / "cells").glob("*.json"))) == 3


def test_a_reused_cell_keeps_its_time_and_its_first_origin(toy, earlier, tmp_path, monkeypatch):
    experiment, _ = toy
    monkeypatch.setitem(HOMES, "toy", "toy_experiments:TOY")

    def slow(record):
        for cell in record["cells"]:
            cell.update(seconds=100.0, core_seconds=90.0)

    first = earlier(slow)
    second = reproduce(experiment, tmp_path / "out", reuse=first, engine=Inline())
    assert 270 <= second.provenance["core_seconds"] < 280
    third = reproduce(experiment, tmp_path / "other", reuse=tmp_path / "out" / "result.json", engine=Inline())
    files = {f.cell.row.key: f.reused.file for f in third.cells}
    assert files == {"low": first.as_posix(), "high": (tmp_path / "out" / "result.json").as_posix()}
    # Read again from its file, a result says the same.
    assert read_result(tmp_path / "out" / "result.json").reused == second.reused


def test_a_cell_with_other_parameters_or_of_another_seed_is_run_again(toy, earlier, tmp_path, inline):
    experiment, ran = toy
    said = []
    asked = plan(experiment, tmp_path / "out", rows=["low"], seeds=4, parameters={"steps": 6}, reuse=earlier())
    [_] = run([asked], say=said.append)
    assert ran() == ["0.5 0", "0.5 1", "0.5 2", "0.5 3"]
    assert any(line.startswith("Row low is run again") and line.endswith(": steps.") for line in said)
    [_] = run([plan(experiment, tmp_path / "out", rows=["low"], seeds=4, reuse=earlier())])
    assert ran() == ["0.5 3"]


@pytest.mark.parametrize(
    "change",
    [
        {"scores": None},
        {"seconds": "long"},
        {"seconds": "12"},
        {"core_seconds": True},
        {"curves": {"walk": {"x": [1], "y": []}}},
        {"parameters": [["steps", [1]]]},
        {"reused": {"file": 3, "nearid": [1]}},
    ],
)
def test_a_damaged_cell_is_named_and_run_again(toy, earlier, tmp_path, inline, change):
    experiment, ran = toy
    said = []
    file = earlier(lambda record: record["cells"][1].update(change))
    [_] = run([plan(experiment, tmp_path / "out", rows=["low"], reuse=file)], say=said.append)
    assert ran() == ["0.5 1"] and any("seed 1 is damaged in" in line for line in said)


def test_claims_and_figures_that_need_more_than_is_stored_are_left_out(toy, earlier, tmp_path):
    def on_views(result):
        return Outcome(Status.REPRODUCED, str([f.data["views"] for f in result.cells]))

    def drawn(result):
        return [result.cells[0].data["views"]]

    wants = replace(toy[0], claims=(Claim("On views.", on_views), *toy[0].claims), figures=drawn)
    result = reproduce(wants, tmp_path / "out", reuse=earlier(), engine=Inline())
    assert result.outcomes[0][1].status is Status.NOT_TESTABLE and "--reuse" in result.outcomes[0][1].sentence
    assert [o.status for _, o in result.outcomes[1:]] == [
        o.status for _, o in reproduce(toy[0], engine=Inline()).outcomes
    ]
    assert (tmp_path / "out" / "report.html").exists()


def test_views_that_claims_need_are_stored_and_reused(toy, tmp_path, inline, monkeypatch):
    def on_views(result):
        return Outcome(Status.REPRODUCED, str([f.data["views"] for f in result.cells]))

    keeps = replace(toy[0], claims=(Claim("On views.", on_views),), kept=("went_on_after",))
    monkeypatch.setattr("toy_experiments.TOY", keeps)
    monkeypatch.setitem(HOMES, "toy", "toy_experiments:TOY")
    reproduce(keeps, tmp_path / "few", seeds=2, engine=Inline())
    file = next((tmp_path / "few").rglob("result.json"))
    assert all(cell["views"] == {"went_on_after": 0} for cell in json.loads(file.read_text())["cells"])
    # Judged again on the file, and in a run with more seeds.
    [(_, outcome)] = read_result(file).outcomes
    assert outcome.status is Status.REPRODUCED and outcome.sentence == str([{"went_on_after": 0}] * 4)
    more = reproduce(keeps, tmp_path / "more", seeds=3, reuse=file, engine=Inline())
    [(_, outcome)] = more.outcomes
    assert sum(more.reused.values()) == 4 and outcome.sentence == str([{"went_on_after": 0}] * 6)


def test_a_pipe_is_refused_and_not_waited_for(toy, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match=r"pipe\.json is not a regular file"):
        reproduce(toy[0], reuse=tmp_path / "pipe.json")


def test_a_file_that_is_nested_too_deeply_is_refused(toy, tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"is not the result.json of an experiment \(RecursionError"):
        reproduce(toy[0], reuse=tmp_path / "deep.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record.update(experiment="radial"), "is a result of radial, so toy cannot reuse its cells"),
        (lambda record: record["provenance"].update(version=7), "is a result of version 7 of toy. Cells of version 1"),
        (lambda record: record.pop("cells"), "is not the result.json of an experiment"),
    ],
)
def test_a_result_of_something_else_is_refused_before_any_cell(toy, earlier, tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        reproduce(toy[0], tmp_path / "out", reuse=earlier(change))
    assert toy[1]() == [] and not (tmp_path / "out").exists()
