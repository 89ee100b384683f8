"""A real browser to look at pages with, and results to draw."""

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import pytest

from toy_experiments import TOY


@pytest.fixture(scope="session")
def browser():
    """Open a file in headless Chromium, with a folder for its profile and switches; gives the completed process."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here: the report is not looked at in a browser (apt-get install chromium)")
    quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    quiet += " --disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=20000"

    def run(profile, file, *switches):
        command = [program, *quiet.split(), f"--user-data-dir={profile}", *switches, f"file://{file}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def chromium(tmp_path, browser):
    """Open a file in headless Chromium with some switches; gives the completed process."""
    return partial(browser, tmp_path / "profile")


def _cells(changes):
    """The toy experiment run in this process."""
    from nearid.engines.base import Failure
    from nearid.engines.processes import attempt
    from nearid.experiments.cells import Finished, Task, cells_of, run_cell
    from nearid.experiments.result import Failed, Result
    from nearid.experiments.settings import settle

    parameters = settle(TOY, "cpu", changes)
    finished, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        for cell in cells_of(TOY, parameters, range(3)):
            work = Path(folder, cell.name)
            told = attempt(run_cell, Task(TOY.cell, cell.parameters, cell.seed, work, ()))
            if isinstance(told, Failure):
                failures.append(Failed(cell, told))
            else:
                finished.append(Finished(cell, told["data"], told["seconds"], told["core_seconds"], told["machine"]))
    return Result(TOY, "cpu", parameters, (0, 1, 2), finished, failures, {"command": "nearid reproduce toy"})


@pytest.fixture(scope="session")
def result():
    """A whole result of the toy experiment."""
    return _cells({})


@pytest.fixture(scope="session")
def failing():
    """One of which a seed failed."""
    return _cells({"wrong": 1})
