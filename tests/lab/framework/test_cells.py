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


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"identity": 1}', "[" * 100_000])
def test_a_damaged_file_is_no_cell(cell, tmp_path, damage):
    store = Store(tmp_path)
    store.file(cell).write_text(damage)
    assert store.read(cell) is None


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
