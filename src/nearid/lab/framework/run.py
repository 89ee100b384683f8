"""Running experiments into folders: cells farmed out, kept as they finish, taken up again by the next run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nearid import __version__
from nearid.base.errors import InputError
from nearid.base.files import alone_in, check_parent
from nearid.engines.base import Failure
from nearid.engines.local import open_engine
from nearid.lab.framework.cells import Cell, Finished, Store, Task, run_cell
from nearid.lab.framework.experiment import Experiment
from nearid.lab.framework.plan import Plan, check_machine, plan
from nearid.lab.framework.result import Failed, Result
from nearid.lab.framework.settings import USUAL, as_dict
from nearid.lab.models.log import reached

CELLS = "cells"
Say = Callable[[str], object]


def reproduce(
    experiment: Experiment[Any],
    folder: Path,
    *,
    preset: str = USUAL,
    seeds: int | None = None,
    rows: Sequence[str] = (),
    changes: Mapping[str, Any] | None = None,
    engine: str | None = None,
    command: str = "",
    say: Say = lambda text: None,
) -> Result:
    """Run an experiment, or what is missing of it, and write result.json and report.html.

    The whole table of the preset cpu is written to the folder itself; any other run to a folder in it that is named
    after what was asked for, so that no run replaces the result of another. The result depends on the parameters and
    seeds alone, not on the engine or on how often the run was interrupted.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Made if it does not exist. Finished cells of all runs are kept in its folder "cells".
    preset : str
    seeds : int, optional
        Seeds 0, 1, ... of each row; those of the preset by default.
    rows : sequence of str
        Keys of the rows to run; all by default. Claims that need others are then not testable.
    changes : mapping, optional
        Parameters to set, as values or as text.
    engine : str, optional
        As `nearid.engines.local.open_engine` takes it. Dask workers on other machines need not see the folder, but a
        cell can then not go on where another worker left it.
    command : str
        What the user typed, for the record.
    say : callable
        Told of every cell that begins and ends.
    """
    made = plan(experiment, folder, preset=preset, seeds=seeds, rows=rows, changes=changes)
    [result] = run([made], engine=engine, command=command, say=say)
    return result


def run(plans: Sequence[Plan], *, engine: str | None = None, command: str = "", say: Say) -> Iterator[Result]:
    """Run what is missing of several plans, and give the result of each as soon as its last cell is done.

    All cells are farmed out together: processes are started once, and none waits for the last cell of an experiment.
    """
    for asked in plans:
        check_machine(asked, engine)
    stores = [make_store(asked.folder) for asked in plans]
    with ExitStack() as locks:
        for asked in plans:
            locks.enter_context(alone_in(asked.folder))
        told = {"command": command, "engine": engine or "local"}
        tables = [_Table(asked, store, told) for asked, store in zip(plans, stores, strict=True)]
        several = len(plans) > 1
        for table in tables:
            name = f"{table.plan.experiment.name}: " if several else ""
            for note in table.plan.notes:
                say(f"{name}{note}")
            if table.found:
                say(f"{name}{len(table.found)} of {len(table.plan.cells)} cells were finished before.")
            if not table.missing:
                yield table.result(say)
        todo = [(table, cell) for table in tables for cell in table.missing]
        if todo:
            names = [f"{table.plan.experiment.name}: {cell.label}" if several else cell.label for table, cell in todo]
            yield from _farm(todo, names, engine, say)


def _farm(todo: Sequence[tuple[_Table, Cell]], names: Sequence[str], engine: str | None, say: Say) -> Iterator[Result]:
    def begins(k: int) -> None:
        table, cell = todo[k]
        step = reached(table.store.work(cell))
        say(f"{names[k]}: " + ("begins" if step is None else f"goes on, having come to step {step} before"))

    tasks = [table.task(cell) for table, cell in todo]
    began, count = 0.0, 0
    with open_engine(engine) as opened, closing(opened.each(run_cell, tasks, begins)) as done:
        for k, told in done:
            table, cell = todo[k]
            table.keep(cell, told)
            # Processes start and load their modules but once: time is counted from where the first cell began.
            began = began or table.began
            now, count, rest = time.time(), count + 1, len(todo) - count - 1
            left = f", about {_time((now - began) / count * rest)} left" if rest else ""
            how = f"failed: {told.error}" if isinstance(told, Failure) else f"done in {_time(told['seconds'])}"
            say(f"{names[k]}: {how} ({count} of {len(todo)} cells{left})")
            if not table.missing:
                yield table.result(say)


def make_store(folder: Path) -> Store:
    """The place of the cells, made if it does not exist."""
    cells = folder / CELLS
    there = next(p for p in (cells, *cells.parents) if p.exists())
    if not there.is_dir():
        raise InputError(f"{there} is a file, but results are written to a folder; name another with -o.")
    check_parent(there / folder.name)
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The folder {folder} for the results cannot be made ({error.strerror}); name another with -o."
        ) from error
    return Store(cells)


def left_behind(folder: Path) -> str:
    """What an interrupted run has left in a folder or in those in it, and how to go on."""
    kept = len(list(folder.glob(f"**/{CELLS}/*.json")))
    said = f"{kept} finished cell{'s are' if kept != 1 else ' is'} kept in {folder}" if kept else "no cell was finished"
    return f"{said}; run the same command again to go on"


@dataclass
class _Table:
    """A plan under way: what is there of its cells."""

    plan: Plan
    store: Store
    provenance: dict[str, str]
    found: dict[str, Finished] = field(default_factory=dict)
    failures: list[Failed] = field(default_factory=list)
    began: float = 0.0

    def __post_init__(self) -> None:
        for cell in self.plan.cells:
            kept = self.store.read(cell)
            if kept:
                self.found[cell.name] = kept
                # A run may be killed between keeping a cell and this.
                self._clear(cell)

    @property
    def missing(self) -> list[Cell]:
        """Cells that are neither finished nor failed."""
        failed = {f.cell.name for f in self.failures}
        return [cell for cell in self.plan.cells if cell.name not in self.found and cell.name not in failed]

    def task(self, cell: Cell) -> Task:
        """What travels to the process that runs a cell."""
        work = self.store.work(cell).resolve()
        return Task(cell.experiment.cell, cell.parameters, cell.seed, work, tuple(cell.experiment.requires))

    def keep(self, cell: Cell, told: dict[str, Any] | Failure) -> None:
        """Take up what a cell gave."""
        self.began = self.began or time.time() - (0.0 if isinstance(told, Failure) else told["seconds"])
        if isinstance(told, Failure):
            self.failures.append(Failed(cell, told))
            return
        self.found[cell.name] = self.store.write(cell, told)
        self._clear(cell)

    def _clear(self, cell: Cell) -> None:
        shutil.rmtree(self.store.work(cell), ignore_errors=True)

    def result(self, say: Say) -> Result:
        """The result, finished cells in the order of the table; written to the place of the run."""
        plan, now = self.plan, time.time()
        began = self.began or now
        finished = [self.found[cell.name] for cell in plan.cells if cell.name in self.found]
        result = Result(
            plan.experiment,
            plan.preset,
            plan.parameters,
            tuple(range(plan.seeds)),
            finished,
            self.failures,
            {
                **self.provenance,
                "nearid": __version__,
                "version": plan.experiment.version,
                "preset": plan.preset,
                "parameters": as_dict(plan.parameters),
                "variant": plan.variant,
                "seeds": plan.seeds,
                "started": datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
                # Of this run alone, and of all cells, whichever run finished them.
                "seconds": round(now - began, 1),
                "cell_seconds": round(sum(f.seconds for f in finished), 1),
                "core_seconds": round(sum(f.core_seconds for f in finished), 1),
                "machines": _unlike([f.machine for f in finished]),
            },
            plan.only,
        )
        result.save(plan.place)
        say(f"Result and report written to {plan.place}")
        return result


def _unlike(machines: list[dict[str, str]]) -> list[dict[str, str]]:
    return [m for k, m in enumerate(machines) if m not in machines[:k]]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
