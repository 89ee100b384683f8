"""Cells: what they are known by, and how they are kept."""

import json
import os
from dataclasses import replace

import pytest

from nearid.lab.framework.cells import Store, Task, cells_of, machine, run_cell


@pytest.fixture
def cell(toy):
    experiment, _ = toy
    return cells_of(experiment, experiment.defaults, [3])[0]


def test_the_whole_table_at_a_seed_before_the_next(toy):
    experiment, _ = toy
    found = cells_of(experiment, experiment.defaults, range(2))
    assert [(c.row.key, c.seed) for c in found] == [("low", 0), ("high", 0), ("low", 1), ("high", 1)]
    assert [c.parameters.level for c in found] == [0.5, 0.9, 0.5, 0.9]


def test_names_differ_with_all_that_the_result_depends_on(cell, monkeypatch):
    others = [
        replace(cell, seed=4),
        replace(cell, parameters=replace(cell.parameters, noise=0.02)),
        replace(cell, experiment=replace(cell.experiment, version=2)),
        replace(cell, experiment=replace(cell.experiment, name="other")),
    ]
    assert len({c.name for c in (cell, *others)}) == 5
    same = replace(cell, experiment=replace(cell.experiment, about="Another sentence."))
    assert same.name == cell.name
    monkeypatch.setattr("nearid.lab.framework.cells.__version__", "9.9.9")
    assert replace(cell).name != cell.name


def test_kept_and_read_again(cell, tmp_path):
    store = Store(tmp_path)
    assert store.read(cell) is None
    told = run_cell(Task(cell.experiment.cell, cell.parameters, cell.seed, store.work(cell), ()))
    kept = store.write(cell, told)
    assert store.read(cell) == kept and kept.data["scores"]["undefined"] is None and kept.seconds > 0
    assert kept.machine == machine() and {"python", "numpy", "processor"} <= set(kept.machine)


@pytest.mark.parametrize("damage", ["", "{", "[]", "3", "null", '{"identity": 1}', "[" * 100_000, "\x00" * 9])
def test_a_damaged_file_is_no_cell(cell, tmp_path, damage):
    store = Store(tmp_path)
    store.file(cell).write_text(damage)
    assert store.read(cell) is None


@pytest.fixture
def kept(cell, tmp_path):
    """Write a cell that has run, after its record was changed; gives what the store reads."""
    store = Store(tmp_path)
    record = run_cell(Task(cell.experiment.cell, cell.parameters, cell.seed, store.work(cell), ()))

    def read(change):
        store.write(cell, record)
        told = json.loads(store.file(cell).read_text())
        change(told)
        store.file(cell).write_text(json.dumps(told))
        return store.read(cell)

    return read


# Values of another type, by the key of a record.
WRONG = {
    "identity": [None, "text", 3, [], {}],
    "data": [None, "text", 3, [], {}, {"scores": 3}],
    "seconds": [None, "text", "12", True, [], {}, -1.0, float("nan"), float("inf")],
    "core_seconds": [None, "text", "12", True, [], {}, -1.0, float("nan"), float("inf")],
    "machine": [None, "text", 3, [1]],
}


@pytest.mark.parametrize("key", WRONG)
def test_a_file_with_a_key_missing_or_of_another_type_is_no_cell(kept, key):
    assert kept(lambda told: None) is not None
    assert kept(lambda told: told.pop(key)) is None
    for value in WRONG[key]:
        assert kept(lambda told, value=value: told.update({key: value})) is None, value


@pytest.mark.parametrize(
    "data",
    [
        {"scores": None},
        {"scores": {}},
        {"scores": {"of another experiment": 1.0}},
        {"scores": {"score": "high"}},
        {"scores": {"score": True}},
        {"scores": {"score": 10**400}},
        {"scores": {"score": float("nan")}},
        {"scores": {"score": float("-inf")}},
        {"scores": {"score": [1.0]}},
        {"curves": []},
        {"curves": {"walk": 3}},
        {"curves": {"walk": {"x": [1]}}},
        {"curves": {"walk": {"x": [1, 2], "y": [1]}}},
        {"curves": {"walk": {"x": [1], "y": ["a"]}}},
        {"views": []},
    ],
)
def test_data_of_another_form_are_no_cell(kept, data):
    assert kept(lambda told: told["data"].update(data)) is None


def test_a_truncated_file_is_no_cell(cell, kept, tmp_path):
    kept(lambda told: None)
    file = Store(tmp_path).file(cell)
    whole = file.read_text()
    for length in range(0, len(whole) - 2, 7):
        file.write_text(whole[:length])
        assert Store(tmp_path).read(cell) is None


@pytest.mark.parametrize("key", ["version", "format", "nearid", "experiment", "seed"])
def test_a_cell_of_another_version_is_no_cell(kept, key):
    assert kept(lambda told: told["identity"].update({key: 99})) is None


def test_a_folder_in_the_place_of_a_cell_is_no_cell(cell, tmp_path):
    Store(tmp_path).file(cell).mkdir()
    assert Store(tmp_path).read(cell) is None


def test_a_file_of_something_else_is_no_cell(cell, tmp_path):
    store = Store(tmp_path)
    store.write(cell, run_cell(Task(cell.experiment.cell, cell.parameters, cell.seed, store.work(cell), ())))
    told = json.loads(store.file(cell).read_text())
    told["identity"]["parameters"]["noise"] = 0.5
    store.file(cell).write_text(json.dumps(told))
    assert store.read(cell) is None


def test_a_pipe_is_no_cell_and_not_waited_for(cell, tmp_path, monkeypatch):
    store = Store(tmp_path)
    os.mkfifo(store.file(cell))
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: pytest.fail("it was opened"))
    assert store.read(cell) is None
