"""The result of an experiment: measured and published values, and the outcome of every claim."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.base.files import write_text
from nearid.base.jsonable import finite
from nearid.engines.base import Failure
from nearid.lab.framework.cells import Cell, Finished, Reused, every_row, rows_of
from nearid.lab.framework.claims import Claim, Outcome, Status
from nearid.lab.framework.experiment import Column, Curve, Experiment, Row
from nearid.lab.framework.settings import SMOKE, as_dict, set_by_user
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View

RESULT, REPORT = "result.json", "report.html"
# Why claims are not judged in the preset that only checks that everything runs.
TOO_SHORT = f"Claims are not judged on runs as short as those of the preset {SMOKE}."


@dataclass(frozen=True)
class Failed:
    """A cell that gave no result."""

    cell: Cell
    failure: Failure


@dataclass(frozen=True, repr=False)
class ExperimentResult(Result):
    """Result of an experiment: measured and published values, and the outcome of every claim.

    Attributes
    ----------
    experiment : Experiment
        The paper's table: its rows, columns, published values and claims.
    preset : str
    parameters : dataclass instance
        Parameters of the run; rows change some of them.
    seeds : sequence of int
    cells : sequence of Finished
        Result of each row at each seed.
    failures : sequence of Failed
        Cells that gave no result.
    provenance : dict
        Command, versions, machines and seconds of the run.
    only : sequence of str
        Keys of the rows that were run; empty for all rows.

    Examples
    --------
    >>> import nearid
    >>> small = {"side": 32, "points": 4}
    >>> result = nearid.reproduce("square-manifolds", preset="smoke", seeds=1, rows=["x"], parameters=small)
    >>> {str(outcome.status) for _, outcome in result.outcomes}
    {'not judged: preset too short'}
    """

    experiment: Experiment[Any]
    preset: str
    parameters: Any
    seeds: Sequence[int]
    cells: Sequence[Finished]
    failures: Sequence[Failed]
    provenance: dict[str, Any]
    only: Sequence[str] = ()

    @cached_property
    def rows(self) -> list[Row]:
        """Rows of the table that were run."""
        return rows_of(self.experiment, self.parameters, self.only)

    @cached_property
    def every_row(self) -> Sequence[Row]:
        """All rows of the table, including those that were not run."""
        return every_row(self.experiment, self.parameters)

    @cached_property
    def ran(self) -> frozenset[str]:
        """Keys of the rows that were run."""
        return frozenset(row.key for row in self.rows)

    @cached_property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Parameters that differ from those of the preset: their value and the preset's."""
        return set_by_user(self.experiment, self.preset, self.parameters)

    @property
    def judged(self) -> bool:
        """Whether the preset of the run is long enough to judge claims."""
        return self.preset != SMOKE

    def of_row(self, row: str) -> list[Finished]:
        """Finished cells of a row by its key, in the order of their seeds.

        Parameters
        ----------
        row : str
            Key of a row of the table.

        Returns
        -------
        list of Finished
        """
        return [f for f in self.cells if f.cell.row.key == row]

    def scores(self, row: str, column: str) -> dict[int, float]:
        """A score by seed; missing scores (None in the cell) are left out.

        Parameters
        ----------
        row : str
            Key of a row of the table.
        column : str
            Key of a score.

        Returns
        -------
        dict of int to float
        """
        scores = {f.cell.seed: f.data["scores"].get(column) for f in self.of_row(row)}
        return {seed: float(value) for seed, value in scores.items() if value is not None}

    def failed_seeds(self, row: str) -> list[int]:
        """Seeds without a result of a row, because the cell failed.

        Parameters
        ----------
        row : str
            Key of a row of the table.

        Returns
        -------
        list of int
        """
        return [f.cell.seed for f in self.failures if f.cell.row.key == row]

    def estimate(self, row: str, column: str) -> Estimate:
        """Mean of a score over seeds and its interval.

        Parameters
        ----------
        row : str
            Key of a row of the table.
        column : str
            Key of a score.

        Returns
        -------
        Estimate
        """
        return Estimate.over(self.scores(row, column).values())

    def curves(self, key: str) -> dict[tuple[str, int], Curve]:
        """Training curves by the title of their row and their seed.

        Parameters
        ----------
        key : str
            Name of a curve that the cells record.

        Returns
        -------
        dict of tuple to Curve
            By the key of the row and the seed.
        """
        curves = {(f.cell.row.title, f.cell.seed): f.data.get("curves", {}).get(key) for f in self.cells}
        return {place: curve for place, curve in curves.items() if curve is not None}

    def label(self, row: str, column: str) -> str:
        """A score in words.

        Parameters
        ----------
        row : str
            Key of a row of the table.
        column : str
            Key of a score.

        Returns
        -------
        str
        """
        titles = {r.key: r.title for r in self.every_row}
        return f"{self.column(column).title} of {titles.get(row, row)!r}"

    def column(self, key: str) -> Column:
        """A column by its key.

        Parameters
        ----------
        key : str
            Key of a score.

        Returns
        -------
        Column
        """
        return next(c for c in self.experiment.columns if c.key == key)

    @cached_property
    def outcomes(self) -> list[tuple[Claim, Outcome]]:
        """Every claim with its outcome in this run."""
        # Tests always run: a short run then shows that they work.
        tested = [(claim, self._tested(claim)) for claim in self.experiment.claims]
        return tested if self.judged else [(claim, Outcome(Status.NOT_JUDGED, TOO_SHORT)) for claim, _ in tested]

    def _tested(self, claim: Claim) -> Outcome:
        try:
            return claim.test(self)
        except KeyError as missing:
            if missing.args != ("views",) or not self.reused:
                raise
            return Outcome(Status.NOT_TESTABLE, "Reused cells lack what this claim needs. Run it without --reuse.")

    @property
    def reused(self) -> dict[Reused, int]:
        """How many cells were read from each stored result."""
        return dict(Counter(f.reused for f in self.cells if f.reused is not None))

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data, without the views that no claim needs."""
        e = self.experiment
        record = {
            "experiment": e.name,
            "shows": e.shows,
            "about": e.about,
            "paper": vars(e.paper),
            "table": [self._row(row) for row in self.rows],
            "claims": [
                {
                    "claim": c.text,
                    "added": c.added,
                    "late": c.late,
                    "status": str(o.status),
                    "why": o.sentence,
                    "figure": o.figures,
                }
                for c, o in self.outcomes
            ],
            "cells": [
                {
                    "row": f.cell.row.key,
                    "seed": f.cell.seed,
                    "parameters": as_dict(f.cell.parameters),
                    "scores": f.data["scores"],
                    "curves": f.data.get("curves", {}),
                    **self._kept(f),
                    "seconds": round(f.seconds, 2),
                    "core_seconds": round(f.core_seconds, 2),
                    **({} if f.reused is None else {"reused": vars(f.reused)}),
                }
                for f in self.cells
            ],
            "failures": [
                {"row": f.cell.row.key, "seed": f.cell.seed, "error": f.failure.error, "trace": f.failure.trace}
                for f in self.failures
            ],
            "alerts": [vars(alert) for alert in self.alerts],
            "provenance": self.provenance,
        }
        clean: dict[str, Any] = finite(record)
        return clean

    def _kept(self, f: Finished) -> dict[str, Any]:
        """The views of a cell that its experiment keeps, if there are any."""
        views = {name: view for name, view in f.data.get("views", {}).items() if name in self.experiment.kept}
        return {"views": views} if views else {}

    def _row(self, row: Row) -> dict[str, Any]:
        scores = {}
        for column in self.experiment.columns:
            score, published = self.estimate(row.key, column.key), row.published.get(column.key)
            scores[column.key] = {
                "mean": score.value,
                "interval": [score.low, score.high],
                "by_seed": {str(seed): value for seed, value in self.scores(row.key, column.key).items()},
                "published": None if published is None else vars(published),
            }
        return {
            "row": row.key,
            "title": row.title,
            "changes": dict(row.changes),
            "violated": list(row.violated),
            "note": row.note,
            "scores": scores,
        }

    @property
    def alerts(self) -> list[Alert]:  # type: ignore[override]
        """Alerts about failed cells and changed parameters."""
        failed = [Alert("failed_cell", f"{f.cell.label} failed: {f.failure.error}") for f in self.failures]
        if not self.judged:
            return [Alert("claims_not_judged", TOO_SHORT), *failed]
        if self.changes:
            names = ", ".join(self.changes)
            return [Alert("changed_parameters", f"Claims are judged with changed parameters: {names}."), *failed]
        return failed

    def save(self, folder: Path) -> None:
        """Write result.json and report.html to a folder, each atomically.

        Parameters
        ----------
        folder : Path
            Made if it is not there. Its parent must exist.
        """
        folder.mkdir(exist_ok=True)
        write_text(folder / RESULT, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        self.save_report(folder / REPORT)

    def _view(self) -> View:
        from nearid.lab.framework.view import view

        return view(self)

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for row in self.rows:
            for column in self.experiment.columns:
                score, published = self.estimate(row.key, column.key), row.published.get(column.key)
                value = None if published is None else published.value
                known = {
                    "mean": score.value,
                    "low": score.low,
                    "high": score.high,
                    "seeds": score.n,
                    "published": value,
                }
                records.append({"row": row.key, "setting": row.title, "score": column.key, **known})
        return records
