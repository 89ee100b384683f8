"""A toy experiment that tells which of its cells have run."""

import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from canonical_files import write_corpora
from nearid.engines.processes import attempt
from toy_experiments import TOY


@pytest.fixture
def toy(tmp_path):
    """A quick experiment of two rows; gives it and the cells that have run, as a function."""
    log = tmp_path / "log"
    defaults = replace(TOY.defaults, log=str(log))

    def ran():
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(lines)

    return replace(TOY, defaults=defaults), ran


class Inline:
    """An engine without processes."""

    def each(self, task, items, begun=None):
        for k, item in enumerate(items):
            if begun:
                begun(k)
            yield k, attempt(task, item)


@pytest.fixture
def inline(monkeypatch):
    """Cells run in this process: quicker, where the processes are not what is tested."""
    monkeypatch.setattr("nearid.lab.framework.run.open_engine", lambda engine: nullcontext(Inline()))


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """Small texts in the place of WikiText-2 and the treebank."""
    from nearid.lab.papers.common.wikitext import wikitext
    from nearid.lab.papers.roeder.gpt2_states import treebank

    write_corpora(tmp_path / "corpora")
    monkeypatch.setenv("NEARID_DATA", str(tmp_path / "corpora"))
    for cached in (treebank, wikitext):
        cached.cache_clear()
    yield
    for cached in (treebank, wikitext):
        cached.cache_clear()


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
