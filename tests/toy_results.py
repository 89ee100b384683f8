"""Results of the toy experiment, for tests of several rooms."""

import tempfile
from pathlib import Path

import pytest

from toy_experiments import TOY


def _cells(changes):
    """The toy experiment run in this process."""
    from nearid.engines.base import Failure
    from nearid.engines.processes import attempt
    from nearid.lab.framework.cells import Finished, Task, cells_of, run_cell
    from nearid.lab.framework.result import ExperimentResult, Failed
    from nearid.lab.framework.settings import parameters_for

    parameters = parameters_for(TOY, "cpu", changes)
    finished, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        for cell in cells_of(TOY, parameters, range(3)):
            work = Path(folder, cell.name)
            told = attempt(run_cell, Task(TOY.cell, cell.parameters, cell.seed, work, ()))
            if isinstance(told, Failure):
                failures.append(Failed(cell, told))
            else:
                finished.append(Finished(cell, told["data"], told["seconds"], told["core_seconds"], told["machine"]))
    return ExperimentResult(TOY, "cpu", parameters, (0, 1, 2), finished, failures, {"command": "nearid reproduce toy"})


@pytest.fixture(scope="session")
def result():
    """A whole result of the toy experiment."""
    return _cells({})


@pytest.fixture(scope="session")
def failing():
    """One of which a seed failed."""
    return _cells({"wrong": 1})
