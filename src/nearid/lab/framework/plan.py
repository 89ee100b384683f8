"""A run as it was asked for: settled and checked before anything is computed, with a place for its result alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nearid.base.errors import InputError
from nearid.lab.data.places import find, how_to_get
from nearid.lab.data.registry import dataset
from nearid.lab.framework.cells import Cell, cells_of, every_row, rows_of
from nearid.lab.framework.experiment import Experiment
from nearid.lab.framework.settings import USUAL, overruled, preset_of, set_by_user, settle, shown

# The longest name of a folder that is told in full.
LONGEST = 100
# Engines whose cells run on this machine.
HERE = (None, "local", "dask")


@dataclass(frozen=True)
class Plan:
    """What is to be run, and where it is kept.

    Attributes
    ----------
    experiment : Experiment
    preset : str
    parameters : dataclass instance
    seeds : int
    only : tuple of str
        Keys of the rows to run; none stands for all.
    folder : Path
        Of the experiment. Cells are kept there, whatever run they are of.
    notes : tuple of str
        What the user should know of it.
    """

    experiment: Experiment[Any]
    preset: str
    parameters: Any
    seeds: int
    only: tuple[str, ...]
    folder: Path
    notes: tuple[str, ...] = ()

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells."""
        return cells_of(self.experiment, self.parameters, range(self.seeds), self.only)

    @property
    def variant(self) -> str:
        """What sets the run apart from the whole table of the usual preset; empty where nothing does."""
        parts = [] if self.preset == USUAL else [self.preset]
        if self.seeds != preset_of(self.experiment, self.preset).seeds:
            parts.append(f"seeds={self.seeds}")
        changes = set_by_user(self.experiment, self.preset, self.parameters)
        parts += [f"{name}={shown(value).replace(',', '+')}" for name, (value, _) in changes.items()]
        parts += [f"row={key}" for key in self.only]
        return ",".join(parts)

    @property
    def place(self) -> Path:
        """Where the result is written: no run replaces that of another."""
        name = self.variant
        safe = re.sub(r"[^\w.,=+-]+", "_", name)
        if safe != name or len(safe) > LONGEST:
            safe = f"{safe[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.folder / safe


def plan(
    experiment: Experiment[Any],
    folder: Path,
    *,
    preset: str = USUAL,
    seeds: int | None = None,
    rows: Sequence[str] = (),
    changes: Mapping[str, Any] | None = None,
) -> Plan:
    """Settle a run; what cannot be run is refused.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Of the experiment.
    preset : str
    seeds : int, optional
        Seeds 0, 1, ... of each row; those of the preset by default.
    rows : sequence of str
        Keys of the rows to run; all by default.
    changes : mapping, optional
        Parameters to set, as values or as text.
    """
    parameters = settle(experiment, preset, changes)
    wanted = preset_of(experiment, preset).seeds if seeds is None else seeds
    if wanted < 1:
        raise InputError(f"At least one seed is needed, not {wanted}.")
    chosen = [row.key for row in rows_of(experiment, parameters, rows)]
    every = [row.key for row in every_row(experiment, parameters)]
    notes = [note for name in changes or {} if (note := _heard(experiment, parameters, name, chosen))]
    only = () if chosen == every else tuple(chosen)
    return Plan(experiment, preset, parameters, wanted, only, folder, tuple(notes))


def _heard(experiment: Experiment[Any], parameters: Any, name: str, chosen: Sequence[str]) -> str:
    """A note where some rows do not heed what the user sets; refuse what none heeds."""
    deaf = [key for key in overruled(parameters, experiment.rows, name) if key in chosen]
    if deaf and len(deaf) == len(chosen):
        raise InputError(
            f"The parameter {name} of {experiment.name} cannot be set: every row that is run sets it itself. "
            f"nearid reproduce {experiment.name} --show lists the rows, of which --row picks some."
        )
    given = getattr(parameters, name)
    told = [row.key for row in every_row(experiment, parameters) if row.key in deaf and row.changes[name] != given]
    if not told:
        return ""
    who = f"row {told[0]} sets {name} itself" if len(told) == 1 else f"rows {', '.join(told)} set {name} themselves"
    return f"The {who}: {name}={shown(given)} changes the other rows alone."


def check_machine(plan: Plan, engine: str | None = None) -> None:
    """Refuse to begin without what the cells need: modules and, where they run here, files, a device and data sets."""
    for module, extra in plan.experiment.requires.items():
        if find_spec(module) is None:
            raise InputError(
                f"The experiment {plan.experiment.name} needs {module}, which is not installed: "
                f"pip install 'nearid[{extra}]'."
            )
    if engine not in HERE:
        return
    device = getattr(plan.parameters, "device", "auto")
    if device not in ("auto", "cpu"):
        from nearid.questions.extract.network import torch_device

        torch_device(device)
    plan.experiment.ready(plan.parameters)
    # Each once, in the order of the table.
    for name in dict.fromkeys(name for c in plan.cells for name in plan.experiment.datasets(c.parameters)):
        wanted = dataset(name)
        if wanted.files and find(wanted) is None:
            raise InputError(
                f"The experiment {plan.experiment.name} needs {wanted.title}, which is not here: {how_to_get(wanted)}"
            )
