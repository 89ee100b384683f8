"""Cells of a stored result in the place of cells that a run would compute again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nearid.base.errors import InputError
from nearid.base.jsonable import finite
from nearid.lab.framework.cells import Cell, Finished, Reused, is_cell_data, is_time
from nearid.lab.framework.experiment import CellData
from nearid.lab.framework.settings import as_dict
from nearid.show.view import counted


@dataclass(frozen=True)
class Reusable:
    """Cells of a stored result that are cells of a plan.

    Attributes
    ----------
    cells : mapping
        The finished cells by their name.
    machines : sequence
        Machines of the stored run. The file does not tell which cell ran on which.
    notes : sequence of str
        How many cells are reused, which are not, and why.
    """

    cells: Mapping[str, Finished] = field(default_factory=dict)
    machines: Sequence[dict[str, str]] = ()
    notes: Sequence[str] = ()


def reusable(path: Path, planned: Sequence[Cell]) -> Reusable:
    """The cells of a stored result that a plan needs.

    The experiment and its version must be those of the plan. A cell must have the parameters and the seed of the
    planned one. The version of nearid may differ, because the version of an experiment is raised when its cells would
    change. It is stored with each cell.
    """
    # Reading a pipe would block.
    if not path.is_file():
        raise InputError(
            f"{path} is not a regular file. --reuse takes the result.json of an earlier run."
            if path.exists()
            else f"There is no file {path}. --reuse takes the result.json of an earlier run."
        )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        made, name = record["provenance"], record["experiment"]
        # The first versions of nearid stored no version of the experiment.
        version, machines = made.get("version", 1), list(made.get("machines", ()))
        source = Reused(path.as_posix(), str(made["nearid"]))
        stored = {(cell["row"], cell["seed"]): cell for cell in record["cells"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not the result.json of an experiment ({type(error).__name__}: {error})."
        ) from error
    e = planned[0].experiment
    if name != e.name:
        raise InputError(f"{path} is a result of {name}, so {e.name} cannot reuse its cells.")
    if version != e.version:
        raise InputError(
            f"{path} is a result of version {version} of {e.name}. Cells of version {e.version} would differ, so none "
            "can be reused. Run it without --reuse."
        )
    cells: dict[str, Finished] = {}
    notes: dict[str, None] = {}
    for cell in planned:
        kept = stored.get((cell.row.key, cell.seed))
        if kept is None:
            continue
        finished = _finished(cell, kept, source)
        if finished is None:
            notes[f"{cell.label} is damaged in {path} and is run again."] = None
        elif unlike := _unlike(cell, kept):
            notes[f"Row {cell.row.key} is run again, because parameters differ in {path}: {', '.join(unlike)}."] = None
        else:
            cells[cell.name] = finished
    return Reusable(
        cells, machines, [f"{len(cells)} of {counted(len(planned), 'cell')} are reused from {path}.", *notes]
    )


def stored_data(kept: Mapping[str, Any]) -> CellData:
    """What a result stores of a cell: scores, curves, and the views that claims need."""
    data: CellData = {"scores": kept["scores"], "curves": kept["curves"]}
    if "views" in kept:
        data["views"] = kept["views"]
    return data


def _finished(cell: Cell, kept: Any, source: Reused) -> Finished | None:
    """A cell as it was stored; None if its entry is damaged."""
    try:
        data = stored_data(kept)
        times = kept["seconds"], kept.get("core_seconds", 0.0)
        if not is_cell_data(data, cell.experiment) or not all(map(is_time, times)):
            return None
        if not isinstance(kept["parameters"], dict):
            return None
        first = Reused(**kept["reused"]) if "reused" in kept else source
        if not all(isinstance(word, str) for word in vars(first).values()):
            return None
        return Finished(cell, data, times[0], times[1], {}, first)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _unlike(cell: Cell, kept: Mapping[str, Any]) -> list[str]:
    """Parameters in which a stored cell differs from the planned one."""
    # As in the file: None stands for what is not finite.
    wanted, there = finite(as_dict(cell.parameters)), kept["parameters"]
    return sorted(k for k in {*wanted, *there} if k not in wanted or k not in there or wanted[k] != there[k])
