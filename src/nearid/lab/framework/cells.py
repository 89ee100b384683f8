"""Cells of a table (one row at one seed): their identity, how they run, and how finished cells are stored."""

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any

from nearid import __version__
from nearid.base.errors import InputError, unknown
from nearid.base.files import write_text
from nearid.base.jsonable import finite
from nearid.lab.framework.experiment import CellData, Experiment, Row
from nearid.lab.framework.settings import as_dict, changed

FORMAT = 1
# Numbers of a file beyond this, and NaN, are not numbers that a cell has stored.
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Cell:
    """A row at a seed."""

    experiment: Experiment[Any]
    row: Row
    parameters: Any
    seed: int

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that the result depends on. A stored cell with another identity is not reused."""
        return {
            "format": FORMAT,
            "experiment": self.experiment.name,
            "version": self.experiment.version,
            "nearid": __version__,
            "parameters": as_dict(self.parameters),
            "seed": self.seed,
        }

    @cached_property
    def name(self) -> str:
        """Name of its file. It includes a hash, because cells with other parameters may be in the same folder."""
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()
        return f"{self.row.key}-seed{self.seed}-{digest[:12]}"

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.row.title}, seed {self.seed}"


@dataclass(frozen=True)
class Reused:
    """Where a cell was read that this run did not compute.

    Attributes
    ----------
    file : str
        The stored result.
    nearid : str
        Version of nearid that computed the cell.
    """

    file: str
    nearid: str


@dataclass(frozen=True)
class Finished:
    """A cell and its result.

    Attributes
    ----------
    machine : dict
        Machine and versions of its run.
    reused : Reused, optional
        Set if the cell is from a stored result. Its data then lack the views, which results do not store.
    """

    cell: Cell
    data: CellData
    seconds: float
    core_seconds: float
    machine: dict[str, str]
    reused: Reused | None = None


@dataclass(frozen=True)
class Task:
    """Data that is sent to the process that runs a cell."""

    function: Callable[[Any, int, Path], CellData]
    parameters: Any
    seed: int
    folder: Path
    modules: tuple[str, ...]


def every_row(experiment: Experiment[Any], parameters: Any) -> Sequence[Row]:
    """The rows of the whole table."""
    return _made(experiment.rows, parameters)


# Rows check which assumptions they violate, which is the slowest part of making them.
@lru_cache(maxsize=32)
def _made(rows: Callable[[Any], Sequence[Row]], parameters: Any) -> Sequence[Row]:
    return tuple(rows(parameters))


def rows_of(experiment: Experiment[Any], parameters: Any, only: Sequence[str] = ()) -> list[Row]:
    """The rows with these keys in the order of the table; all rows if no key is given."""
    return _chosen(experiment, every_row(experiment, parameters), only)


def _chosen(experiment: Experiment[Any], rows: Sequence[Row], only: Sequence[str]) -> list[Row]:
    there = {row.key: row for row in rows}
    for key in only:
        if key not in there:
            raise InputError(unknown(f"row of {experiment.name}", key, there))
    return [row for key, row in there.items() if not only or key in only]


def cells_of(
    experiment: Experiment[Any], parameters: Any, seeds: Sequence[int], only: Sequence[str] = ()
) -> list[Cell]:
    """All cells of the table, or of the rows with these keys; all rows of a seed come before the next seed."""
    # Do not use the cache: rows may depend on files, which may have changed since.
    rows = _chosen(experiment, experiment.rows(parameters), only)
    return [Cell(experiment, row, changed(parameters, row.changes), seed) for seed in seeds for row in rows]


# The random state of torch is global to a process: two cells in threads of one worker would disturb each other.
_alone = Lock()


def run_cell(task: Task) -> dict[str, Any]:
    """Run a cell; return the content of its file without the identity."""
    with _alone:
        if "torch" in task.modules:
            import torch

            torch.set_num_threads(1)
        task.folder.mkdir(parents=True, exist_ok=True)
        began, core = time.perf_counter(), time.process_time()
        data = task.function(task.parameters, task.seed, task.folder)
        # Other work on the machine changes the wall time, but not the CPU time.
        taken = {"seconds": time.perf_counter() - began, "core_seconds": time.process_time() - core}
    # A cell that was read from its file and a cell that has just run must be the same.
    record: dict[str, Any] = json.loads(json.dumps(finite({"data": data, **taken, "machine": machine()})))
    return record


def machine() -> dict[str, str]:
    """Machine and versions of the run."""
    facts = {"system": platform.platform(), "processor": _processor(), "cores": str(os.cpu_count())}
    facts["python"] = platform.python_version()
    for package in ("numpy", "scipy", "scikit-learn", "torch", "transformers", "lightgbm"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def is_cell_data(data: Any, experiment: Experiment[Any]) -> bool:
    """Whether data from a file have the form of `CellData`: scores of the experiment as numbers, curves and views."""
    if not isinstance(data, dict) or not _are_numbers(data.get("scores", {}).values()):
        return False
    if not data.get("scores", {}).keys() & {column.key for column in experiment.columns}:
        return False
    curves = data.get("curves", {}).values()
    return isinstance(data.get("views", {}), dict) and all(
        len(curve["x"]) == len(curve["y"]) and _are_numbers([*curve["x"], *curve["y"]]) for curve in curves
    )


def _are_numbers(values: Iterable[Any]) -> bool:
    # None stands for what is not finite. A bool is an int, and an int of a file may be too large for a float.
    return all(value is None or (type(value) in (int, float) and abs(value) <= LARGEST) for value in values)


def is_time(seconds: Any) -> bool:
    """Whether what a file stores can be the time of a cell."""
    return type(seconds) in (int, float) and 0 <= seconds <= LARGEST


@dataclass(frozen=True)
class Store:
    """Finished cells in a folder, one file each, with a work folder for each unfinished cell."""

    folder: Path

    def file(self, cell: Cell) -> Path:
        """File of a finished cell."""
        return self.folder / f"{cell.name}.json"

    def work(self, cell: Cell) -> Path:
        """Folder where a cell may store what it needs to continue."""
        return self.folder / f"{cell.name}.work"

    def read(self, cell: Cell) -> Finished | None:
        """Return a finished cell; None if there is none, or if its file is damaged or belongs to something else."""
        # Only regular files: reading a pipe would block.
        if not self.file(cell).is_file():
            return None
        try:
            record = json.loads(self.file(cell).read_text(encoding="utf-8"))
            if record["identity"] != cell.identity:
                return None
            times = record["seconds"], record["core_seconds"]
            if not is_cell_data(record["data"], cell.experiment) or not all(map(is_time, times)):
                return None
            return Finished(cell, record["data"], times[0], times[1], dict(record["machine"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, cell: Cell, record: dict[str, Any]) -> Finished:
        """Store a cell that has just finished, atomically."""
        write_text(self.file(cell), json.dumps({"identity": cell.identity, "row": cell.row.key, **record}) + "\n")
        return Finished(cell, record["data"], record["seconds"], record["core_seconds"], record["machine"])
