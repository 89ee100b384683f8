"""Running an experiment into a folder: cells farmed out, kept as they finish, taken up again by the next run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nearid import __version__
from nearid.data.places import find, how_to_get
from nearid.data.registry import dataset
from nearid.engines.base import Failure
from nearid.engines.open import open_engine
from nearid.errors import InputError
from nearid.experiments.base import Experiment
from nearid.experiments.cells import Cell, Finished, Store, Task, cells_of, rows_of, run_cell
from nearid.experiments.result import Failed, Result
from nearid.experiments.settings import as_dict, changed, preset_of, settle
from nearid.files import alone_in, check_parent

CELLS = "cells"
# Engines whose cells run on this machine.
HERE = (None, "local", "dask")


def reproduce(
    experiment: Experiment[Any],
    folder: Path,
    *,
    preset: str = "cpu",
    seeds: int | None = None,
    rows: Sequence[str] = (),
    changes: Mapping[str, Any] | None = None,
    engine: str | None = None,
    command: str = "",
    say: Callable[[str], object] = lambda text: None,
) -> Result:
    """Run an experiment, or what is missing of it, and write result.json and report.html to a folder.

    The result depends on the parameters and seeds alone, not on the engine or on how often the run was interrupted.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Made if it does not exist. Finished cells are kept in its folder "cells".
    preset : str
    seeds : int, optional
        Seeds 0, 1, ... of each row; those of the preset by default.
    rows : sequence of str
        Keys of the rows to run; all by default. Claims that need others are then not testable.
    changes : mapping, optional
        Parameters to set, as values or as text.
    engine : str, optional
        As `nearid.engines.open.open_engine` takes it. Dask workers on other machines need not see the folder, but a
        cell can then not go on where another worker left it.
    command : str
        What the user typed, for the record.
    say : callable
        Told of every cell that begins and ends.
    """
    parameters = settle(experiment, preset, changes)
    wanted = preset_of(experiment, preset).seeds if seeds is None else seeds
    if wanted < 1:
        raise InputError(f"At least one seed is needed, not {wanted}.")
    require(experiment, parameters, rows, engine)
    cells = cells_of(experiment, parameters, range(wanted), rows)
    store = make_store(folder)
    began, started = time.perf_counter(), datetime.now(UTC)
    with alone_in(folder):
        finished, failures = _Runner(store, say).run(cells, engine)
    result = Result(
        experiment,
        preset,
        parameters,
        tuple(range(wanted)),
        finished,
        failures,
        {
            "command": command,
            "nearid": __version__,
            "preset": preset,
            "parameters": as_dict(parameters),
            "seeds": wanted,
            "engine": engine or "local",
            "started": started.isoformat(timespec="seconds"),
            # Of this run alone, and of all cells, whichever run finished them.
            "seconds": round(time.perf_counter() - began, 1),
            "cell_seconds": round(sum(f.seconds for f in finished), 1),
            "core_seconds": round(sum(f.core_seconds for f in finished), 1),
            "machines": _unlike([f.machine for f in finished]),
        },
        rows,
    )
    result.save(folder)
    return result


def require(experiment: Experiment[Any], parameters: Any, rows: Sequence[str] = (), engine: str | None = None) -> None:
    """Refuse to begin without what the cells need: modules, and data sets wherever cells run on this machine."""
    for module, extra in experiment.requires.items():
        if find_spec(module) is None:
            raise InputError(
                f"The experiment {experiment.name} needs {module}, which is not installed: "
                f"pip install 'nearid[{extra}]'."
            )
    if engine not in HERE:
        return
    there = [changed(parameters, row.changes) for row in rows_of(experiment, parameters, rows)]
    # Each once, in the order of the table.
    for name in dict.fromkeys(name for p in there for name in experiment.datasets(p)):
        wanted = dataset(name)
        if wanted.files and find(wanted) is None:
            raise InputError(
                f"The experiment {experiment.name} needs {wanted.title}, which is not here: {how_to_get(wanted)}"
            )


def make_store(folder: Path) -> Store:
    """The place of the cells, made if it does not exist."""
    cells = folder / CELLS
    there = next(p for p in (cells, *cells.parents) if p.exists())
    if not there.is_dir():
        raise InputError(f"{there} is a file, but results are written to a folder; name another with -o.")
    check_parent(there / folder.name)
    cells.mkdir(parents=True, exist_ok=True)
    return Store(cells)


def left_behind(folder: Path) -> str:
    """What an interrupted run has left, and how to go on."""
    kept = len(list((folder / CELLS).glob("*.json")))
    said = f"{kept} finished cell{'s are' if kept != 1 else ' is'} kept in {folder}" if kept else "no cell was finished"
    return f"{said}; run the same command again to go on"


@dataclass(frozen=True)
class _Runner:
    store: Store
    say: Callable[[str], object]

    def run(self, cells: list[Cell], engine: str | None) -> tuple[list[Finished], list[Failed]]:
        """Finished cells in the order of the table, and those that failed."""
        found = {cell.name: kept for cell in cells if (kept := self.store.read(cell))}
        missing = [cell for cell in cells if cell.name not in found]
        failures: list[Failed] = []
        for kept in found.values():
            # A run may be killed between keeping a cell and this.
            self._clear(kept.cell)
        if found:
            self.say(f"{len(found)} of {len(cells)} cells were finished before.")
        if missing:
            for cell, outcome in self._farm(missing, engine):
                if isinstance(outcome, Failed):
                    failures.append(outcome)
                else:
                    found[cell.name] = outcome
        return [found[cell.name] for cell in cells if cell.name in found], failures

    def _farm(self, cells: list[Cell], engine: str | None) -> list[tuple[Cell, Finished | Failed]]:
        tasks = [self._task(cell) for cell in cells]
        began, outcomes = time.perf_counter(), []
        with (
            open_engine(engine) as opened,
            closing(opened.each(run_cell, tasks, lambda k: self.say(f"{cells[k].label}: begins"))) as done,
        ):
            for k, told in done:
                cell = cells[k]
                outcomes.append((cell, self._keep(cell, told)))
                taken, rest = time.perf_counter() - began, len(cells) - len(outcomes)
                left = f", about {_time(taken / len(outcomes) * rest)} left" if rest else ""
                how = f"failed: {told.error}" if isinstance(told, Failure) else f"done in {_time(told['seconds'])}"
                self.say(f"{cell.label}: {how} ({len(outcomes)} of {len(cells)} cells{left})")
        return outcomes

    def _task(self, cell: Cell) -> Task:
        experiment = cell.experiment
        work = self.store.work(cell).resolve()
        return Task(experiment.cell, cell.parameters, cell.seed, work, tuple(experiment.requires))

    def _keep(self, cell: Cell, told: dict[str, Any] | Failure) -> Finished | Failed:
        if isinstance(told, Failure):
            return Failed(cell, told)
        kept = self.store.write(cell, told)
        self._clear(cell)
        return kept

    def _clear(self, cell: Cell) -> None:
        shutil.rmtree(self.store.work(cell), ignore_errors=True)


def _unlike(machines: list[dict[str, str]]) -> list[dict[str, str]]:
    return [m for k, m in enumerate(machines) if m not in machines[:k]]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
