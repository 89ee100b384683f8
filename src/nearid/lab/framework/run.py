"""Run experiments: cells run in parallel, are stored when they finish, and are reused by the next run."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nearid.base.errors import InputError
from nearid.base.files import alone_in, check_parent, check_target
from nearid.base.jsonable import finite
from nearid.base.options import Count, checked
from nearid.base.progress import Progress, Reporting, reporting, silent
from nearid.base.provenance import provenance
from nearid.engines.base import Engine, Failure
from nearid.engines.local import Local, open_engine
from nearid.lab.data.base import FileSet
from nearid.lab.data.registry import dataset, find, how_to_get
from nearid.lab.framework.cells import Cell, Finished, Store, Task, cells_of, every_row, rows_of, run_cell
from nearid.lab.framework.experiment import Experiment, experiment, summary
from nearid.lab.framework.result import ExperimentResult, Failed
from nearid.lab.framework.reuse import Reusable, reusable
from nearid.lab.framework.settings import (
    USUAL,
    as_dict,
    described,
    overriding_rows,
    parameters_for,
    preset_of,
    set_by_user,
    shown,
)
from nearid.lab.models.log import reached

# The longest name of a folder that is kept in full.
LONGEST = 100
# The most seeds of a row: far more than any interval needs, and few enough to be counted at once.
MOST_SEEDS = 1000
# Engines whose cells run on this machine.
LOCAL_ENGINES = ("local", "dask")

CELLS = "cells"
Say = Callable[[str], object]


@checked
def reproduce(
    name: str | Experiment[Any],
    out: str | os.PathLike[str] | None = None,
    *,
    preset: str = USUAL,
    seeds: Count | None = None,
    rows: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    reuse: str | os.PathLike[str] | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> ExperimentResult:
    """Run an experiment of a paper and return published and measured values side by side, with every claim tested.

    The result depends only on the parameters and seeds, not on the engine or on interruptions.

    Parameters
    ----------
    name : str
        Name of the experiment. The command `nearid reproduce` lists all names.
    out : path, optional
        Folder for result.json and report.html; created if it does not exist. The whole table of the preset cpu is
        written to the folder itself. Any other run is written to a subfolder named after its options, so no run
        replaces the result of another. Finished cells of all runs are stored in the subfolder "cells", and the next run
        reuses them. Default: nothing is stored.
    preset : {"cpu", "smoke", "quick", "paper"}
        Hours at most, seconds, a shorter version of cpu that some experiments have, or the published protocol.
    seeds : int, optional
        Seeds 0, 1, ... of each row, at most 1000; those of the preset by default.
    rows : sequence of str
        Keys of the rows to run. Default: all rows. Claims that need other rows are then not testable.
    parameters : mapping, optional
        Parameters to set, as values or as text.
    reuse : path, optional
        The result.json of an earlier run of the same version of the experiment. Its cells with the same parameters and
        seeds are not run again. The result names them. Figures and claims that need more than scores and curves of
        every cell are then left out.
    engine : {"local", "dask"}, address or Engine, optional
        "local", "dask", or the address of a Dask scheduler. Dask workers on other machines need no access to the
        folder, but then a cell cannot continue where another worker stopped.
    progress : bool or callable
        Whether to draw a bar of the cells.

    Returns
    -------
    ExperimentResult
        The table of published and measured values with intervals, the outcome of each claim, and figures.

    Examples
    --------
    >>> import nearid
    >>> small = {"side": 32, "points": 4}
    >>> result = nearid.reproduce("square-manifolds", preset="smoke", seeds=1, rows=["x"], parameters=small)
    >>> round(float(result.estimate("x", "lipschitz")), 3)
    1.0
    """
    chosen = experiment(name) if isinstance(name, str) else name
    with ExitStack() as stack:
        bars = stack.enter_context(reporting(progress))
        folder = Path(out if out is not None else stack.enter_context(TemporaryDirectory()))
        planned = plan(chosen, folder, preset=preset, seeds=seeds, rows=rows, parameters=parameters, reuse=reuse)
        [result] = run([planned], engine=engine, progress=bars)
    return result


def run(
    plans: Sequence[Plan],
    *,
    engine: str | Engine | None = None,
    command: str = "",
    say: Say = lambda text: None,
    progress: Progress = silent,
) -> Iterator[ExperimentResult]:
    """Run the missing cells of several plans; yield the result of each plan when its last cell is done.

    The cells of all plans run together: processes are started once, and none waits for the last cell of an experiment.

    Parameters
    ----------
    command : str
        Command that the user typed, for the provenance.
    say : callable
        Function that is called with a line of text when a cell begins or ends.
    progress : Progress
        Advanced when a cell ends.
    """
    # Refuse an unknown engine before a folder is created.
    opening = open_engine(engine)
    for planned in plans:
        check_machine(planned, engine)
    stores = [make_store(planned.folder) for planned in plans]
    with ExitStack() as locks:
        for planned in plans:
            locks.enter_context(alone_in(planned.folder))
        made_by = {"command": command, "engine": _name(engine)}
        tables = [_Table(planned, store, made_by) for planned, store in zip(plans, stores, strict=True)]
        several = len(plans) > 1
        for table in tables:
            name = f"{table.plan.experiment.name}: " if several else ""
            for note in table.plan.notes:
                say(f"{name}{note}")
            for file in table.replaced:
                say(f"{name}{file.name} is damaged or not a cell of this run. The cell runs again.")
            if table.finished:
                say(f"{name}{len(table.finished)} of {len(table.plan.cells)} cells were finished before.")
            if not table.missing:
                yield table.result(say)
        todo = [(table, cell) for table in tables for cell in table.missing]
        if todo:
            names = [f"{table.plan.experiment.name}: {cell.label}" if several else cell.label for table, cell in todo]
            yield from _farm(todo, names, opening, say, progress("cells", len(todo)))


def _farm(
    todo: Sequence[tuple[_Table, Cell]],
    names: Sequence[str],
    opening: AbstractContextManager[Engine],
    say: Say,
    step: Callable[..., object],
) -> Iterator[ExperimentResult]:
    def begins(k: int) -> None:
        table, cell = todo[k]
        step = reached(table.store.work(cell))
        say(f"{names[k]}: " + ("begins" if step is None else f"goes on, having come to step {step} before"))

    tasks = [table.task(cell) for table, cell in todo]
    began, count = 0.0, 0
    with opening as opened, closing(opened.each(run_cell, tasks, begins)) as done:
        for k, record in done:
            table, cell = todo[k]
            table.keep(cell, record)
            # Processes start and load their modules only once, so time is counted from the start of the first cell.
            began = began or table.began
            now, count, rest = time.time(), count + 1, len(todo) - count - 1
            left = f", about {_time((now - began) / count * rest)} left" if rest else ""
            how = f"failed: {record.error}" if isinstance(record, Failure) else f"done in {_time(record['seconds'])}"
            say(f"{names[k]}: {how} ({count} of {len(todo)} cells{left})")
            step()
            if not table.missing:
                yield table.result(say)


def make_store(folder: Path) -> Store:
    """Return the store of the cells; create its folder if it does not exist."""
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


def resume_hint(folder: Path) -> str:
    """How many finished cells an interrupted run has stored, and how to continue."""
    kept = len(list(folder.glob(f"**/{CELLS}/*.json")))
    held = f"{kept} finished cell{'s are' if kept != 1 else ' is'} kept in {folder}" if kept else "no cell was finished"
    return f"{held}; run the same command again to go on"


@dataclass
class _Table:
    """A plan in progress: its finished and failed cells."""

    plan: Plan
    store: Store
    made_by: dict[str, str]
    finished: dict[str, Finished] = field(default_factory=dict)
    failures: list[Failed] = field(default_factory=list)
    replaced: list[Path] = field(default_factory=list)
    began: float = 0.0

    def __post_init__(self) -> None:
        for cell in self.plan.cells:
            kept = self.store.read(cell) or self.plan.reusable.cells.get(cell.name)
            if kept:
                self.finished[cell.name] = kept
                # A run may be killed between keeping a cell and this.
                self._clear(cell)
            elif os.path.lexists(file := self.store.file(cell)):
                # Report what cannot be replaced before the work starts.
                if not file.is_file():
                    raise InputError(
                        f"{file} is not a regular file, so the result of a cell cannot be stored there. Remove it, or "
                        "name another folder with -o."
                    )
                check_target(file)
                self.replaced.append(file)

    @property
    def missing(self) -> list[Cell]:
        """Cells that are neither finished nor failed."""
        failed = {f.cell.name for f in self.failures}
        return [cell for cell in self.plan.cells if cell.name not in self.finished and cell.name not in failed]

    def task(self, cell: Cell) -> Task:
        """What travels to the process that runs a cell."""
        work = self.store.work(cell).resolve()
        return Task(cell.experiment.cell, cell.parameters, cell.seed, work, tuple(cell.experiment.requires))

    def keep(self, cell: Cell, record: dict[str, Any] | Failure) -> None:
        """Store the result or the failure of a cell."""
        self.began = self.began or time.time() - (0.0 if isinstance(record, Failure) else record["seconds"])
        if isinstance(record, Failure):
            self.failures.append(Failed(cell, record))
            return
        self.finished[cell.name] = self.store.write(cell, record)
        self._clear(cell)

    def _clear(self, cell: Cell) -> None:
        shutil.rmtree(self.store.work(cell), ignore_errors=True)

    def result(self, say: Say) -> ExperimentResult:
        """Return the result with cells in the order of the table, and write it to the folder of the run."""
        plan, now = self.plan, time.time()
        began = self.began or now
        finished = [self.finished[cell.name] for cell in plan.cells if cell.name in self.finished]
        # Cells end in any order. The result must not depend on it.
        place = {cell.name: k for k, cell in enumerate(plan.cells)}
        failures = sorted(self.failures, key=lambda failed: place[failed.cell.name])
        reused = Counter(f.reused for f in finished if f.reused is not None)
        machines = plan.reusable.machines if reused else ()
        result = ExperimentResult(
            plan.experiment,
            plan.preset,
            plan.parameters,
            tuple(range(plan.seeds)),
            finished,
            failures,
            provenance(
                plan.options,
                (),
                **self.made_by,
                version=plan.experiment.version,
                preset=plan.preset,
                parameters=as_dict(plan.parameters),
                variant=plan.variant,
                seeds=plan.seeds,
                started=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
                # Time of this run, and of all cells, including those of earlier runs.
                seconds=round(now - began, 1),
                cell_seconds=round(sum(f.seconds for f in finished), 1),
                core_seconds=round(sum(f.core_seconds for f in finished), 1),
                machines=_unlike([*(f.machine for f in finished if f.reused is None), *machines]),
                reused=[vars(source) | {"cells": count} for source, count in reused.items()],
            ),
            plan.only,
        )
        result.save(plan.place)
        say(f"Result and report written to {plan.place}")
        return result


def _unlike(machines: list[dict[str, str]]) -> list[dict[str, str]]:
    return [m for k, m in enumerate(machines) if m not in machines[:k]]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@dataclass(frozen=True)
class Plan:
    """A planned run and the folder for its results.

    Attributes
    ----------
    only : tuple of str
        Keys of the rows to run; none stands for all.
    folder : Path
        Folder of the experiment. Cells of all its runs are stored there.
    notes : tuple of str
        Remarks for the user.
    reuse : Path, optional
        A stored result whose cells are not run again.
    reusable : Reusable
        These cells.
    """

    experiment: Experiment[Any]
    preset: str
    parameters: Any
    seeds: int
    only: tuple[str, ...]
    folder: Path
    notes: tuple[str, ...] = ()
    reuse: Path | None = None
    reusable: Reusable = field(default_factory=Reusable, compare=False)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells."""
        return cells_of(self.experiment, self.parameters, range(self.seeds), self.only)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `reproduce` that give this run."""
        changes = set_by_user(self.experiment, self.preset, self.parameters)
        chosen = {"name": self.experiment.name, "preset": self.preset, "seeds": self.seeds, "rows": self.only}
        reuse = {} if self.reuse is None else {"reuse": str(self.reuse)}
        return {**chosen, "parameters": {name: value for name, (value, _) in changes.items()}, **reuse}

    @property
    def variant(self) -> str:
        """How the run differs from the whole table of the default preset; empty if it does not."""
        parts = [] if self.preset == USUAL else [self.preset]
        if self.seeds != preset_of(self.experiment, self.preset).seeds:
            parts.append(f"seeds={self.seeds}")
        changes = set_by_user(self.experiment, self.preset, self.parameters)
        parts += [f"{name}={shown(value).replace(',', '+')}" for name, (value, _) in changes.items()]
        parts += [f"row={key}" for key in self.only]
        return ",".join(parts)

    @property
    def place(self) -> Path:
        """Folder of the result: no run replaces the result of another."""
        return self.folder / file_name(self.variant)


def file_name(variant: str) -> str:
    """A variant as a part of a path. Another variant has another name."""
    safe = re.sub(r"[^\w.,=+-]+", "_", variant)
    if safe != variant or len(safe) > LONGEST:
        safe = f"{safe[:LONGEST]}-{hashlib.sha256(variant.encode()).hexdigest()[:8]}"
    return safe


def plan(
    experiment: Experiment[Any],
    folder: Path,
    *,
    preset: str = USUAL,
    seeds: int | None = None,
    rows: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    reuse: str | os.PathLike[str] | None = None,
) -> Plan:
    """Return the plan of a run; raise an error if it cannot be run.

    Parameters
    ----------
    folder : Path
        Of the experiment.
    seeds : int, optional
        Seeds 0, 1, ... of each row; those of the preset by default.
    rows : sequence of str
        Keys of the rows to run; all by default.
    parameters : mapping, optional
        Parameters to set, as values or as text.
    reuse : path, optional
        A stored result whose cells are not run again.
    """
    chosen = parameters_for(experiment, preset, parameters)
    wanted = preset_of(experiment, preset).seeds if seeds is None else seeds
    if not 1 <= wanted <= MOST_SEEDS:
        raise InputError(f"The number of seeds must be between 1 and {MOST_SEEDS}, not {wanted}.")
    only = [row.key for row in rows_of(experiment, chosen, rows)]
    every = [row.key for row in every_row(experiment, chosen)]
    notes = [note for name in parameters or {} if (note := _override_note(experiment, chosen, name, only))]
    made = Plan(experiment, preset, chosen, wanted, () if only == every else tuple(only), folder, tuple(notes))
    if reuse is None:
        return made
    stored = reusable(Path(reuse), made.cells)
    return replace(made, reuse=Path(reuse), reusable=stored, notes=(*notes, *stored.notes))


def _override_note(experiment: Experiment[Any], parameters: Any, name: str, chosen: Sequence[str]) -> str:
    """A note if some rows set a parameter that the user sets too; an error if all rows do."""
    own = [key for key in overriding_rows(parameters, experiment.rows, name) if key in chosen]
    if own and len(own) == len(chosen):
        raise InputError(
            f"The parameter {name} of {experiment.name} cannot be set: every row that is run sets it itself. "
            f"nearid reproduce {experiment.name} --show lists the rows. Choose rows with --row."
        )
    given = getattr(parameters, name)
    others = [row.key for row in every_row(experiment, parameters) if row.key in own and row.changes[name] != given]
    if not others:
        return ""
    who = (
        f"row {others[0]} sets {name} itself" if len(others) == 1 else f"rows {', '.join(others)} set {name} themselves"
    )
    return f"The {who}: {name}={shown(given)} changes only the other rows."


def _name(engine: str | Engine | None) -> str:
    """Name of an engine in the provenance."""
    if isinstance(engine, Engine):
        return "local" if isinstance(engine, Local) else type(engine).__name__
    return engine or "local"


def check_machine(plan: Plan, engine: str | Engine | None = None) -> None:
    """Raise an error if the cells lack a module or, if they run on this machine, a file, device or data set."""
    for module in missing_modules(plan.experiment):
        raise InputError(
            f"The experiment {plan.experiment.name} needs {module}, which is not installed: "
            f"pip install 'nearid[{plan.experiment.requires[module]}]'."
        )
    # Refuses a name that no engine has; nothing is opened yet.
    open_engine(engine)
    if _name(engine) not in LOCAL_ENGINES:
        return
    device = getattr(plan.parameters, "device", "auto")
    if device not in ("auto", "cpu"):
        from nearid.questions.extract.network import torch_device

        torch_device(device)
    plan.experiment.ready(plan.parameters)
    for wanted in missing_datasets(plan):
        raise InputError(
            f"The experiment {plan.experiment.name} needs {wanted.title}, which is not here: {how_to_get(wanted)}"
        )


def missing_modules(experiment: Experiment[Any]) -> list[str]:
    """Modules that the cells import and that are not installed."""
    return [module for module in experiment.requires if find_spec(module) is None]


def missing_datasets(plan: Plan) -> list[FileSet]:
    """Data sets that the cells read and that are not here, each once, in the order of the table."""
    names = dict.fromkeys(name for c in plan.cells for name in plan.experiment.datasets(c.parameters))
    return [wanted for name in names if (wanted := dataset(name)).files and find(wanted) is None]


def lacking(experiment: Experiment[Any]) -> list[str]:
    """What the usual preset of an experiment cannot run without here: modules, data sets and files of the user."""
    planned = plan(experiment, Path(), seeds=1)
    missing = [*missing_modules(experiment), *(wanted.name for wanted in missing_datasets(planned))]
    try:
        experiment.ready(planned.parameters)
    except InputError:
        missing.append("your files")
    return missing


def details(plan: Plan) -> dict[str, Any]:
    """A planned run as JSON data: its parameters, rows and claims."""
    e, values = plan.experiment, as_dict(plan.parameters)
    record = summary(e) | {
        "preset": plan.preset,
        "seeds": plan.seeds,
        "parameters": {name: {"value": values[name], "about": about} for name, _, about in described(plan.parameters)},
        "rows": [
            {"row": r.key, "title": r.title, "changes": dict(r.changes), "violated": list(r.violated), "note": r.note}
            for r in rows_of(e, plan.parameters, plan.only)
        ],
        "claims": [claim.text for claim in e.claims],
        "folder": str(plan.place),
    }
    clean: dict[str, Any] = finite(record)
    return clean
