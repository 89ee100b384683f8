"""Results that were written to result.json, read again: the stored scores, judged by the claims of today."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nearid.base.errors import InputError
from nearid.engines.base import Failure
from nearid.lab.framework.cells import Cell, Finished, Reused, every_row
from nearid.lab.framework.claims import Claim, Outcome, Status
from nearid.lab.framework.experiment import Column, Experiment, Published, Row, experiment
from nearid.lab.framework.result import ExperimentResult, Failed
from nearid.lab.framework.reuse import stored_data
from nearid.lab.framework.settings import changed, parameters_for


@dataclass(frozen=True, repr=False)
class StoredResult(ExperimentResult):
    """A result that was read from its file.

    Attributes
    ----------
    older : bool
        Whether the experiment has changed since the run. Rows, claims and statuses are then those of the file.
    readable : bool
        Whether the experiment still has all parameters of the run. If not, `parameters` are the defaults.
    """

    older: bool = False
    readable: bool = True

    @property
    def recorded_command(self) -> str:
        """What was typed to make the result, without the folder for it."""
        words = shlex.split(self.provenance.get("command", ""))
        kept = [w for k, w in enumerate(words) if not {"-o", "--out"} & {w, *words[max(k - 1, 0) : k]}]
        return shlex.join(kept)


def read_result(path: Path) -> StoredResult:
    """A result from the file result.json that a run has written.

    Scores are those of the file. If the experiment is still the same, its claims are tested again on these scores, so
    that a claim may be worded better without another run. A claim that needs more than scores and curves keeps the
    outcome of the file.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return _result(record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not the result.json of an experiment ({type(error).__name__}: {error})."
        ) from error


def _result(record: Mapping[str, Any]) -> StoredResult:
    e, made = experiment(record["experiment"]), record["provenance"]
    keys = [row["row"] for row in record["table"]]
    readable = True
    try:
        parameters = parameters_for(e, made["preset"], made["parameters"])
        there = {row.key: row for row in every_row(e, parameters)}
        # The first versions of nearid stored no version of the experiment.
        older = made.get("version", 1) != e.version or not set(keys) <= there.keys()
    except InputError:
        parameters, there, older, readable = e.defaults, {}, True, False
    if older:
        e = _as_it_was(e, record)
        there = {row.key: row for row in e.rows(parameters)}
    else:
        e = replace(e, claims=[_tested_again(*both) for both in matched(e.claims, record["claims"])])
    # What the figures of the experiment itself are drawn from is not stored.
    e = replace(e, figures=None)
    # A result whose cells are all reused may name no machine.
    machines = made.get("machines") or [{}]
    set_by_row = {key: parameters if older else changed(parameters, row.changes) for key, row in there.items()}

    def cell_of(stored: Mapping[str, Any]) -> Cell:
        return Cell(e, there[stored["row"]], set_by_row[stored["row"]], stored["seed"])

    finished = [
        Finished(
            cell_of(cell),
            stored_data(cell),
            cell["seconds"],
            # Not stored by the first versions.
            cell.get("core_seconds", 0.0),
            machines[0],
            Reused(**cell["reused"]) if "reused" in cell else None,
        )
        for cell in record["cells"]
    ]
    failures = [Failed(cell_of(cell), Failure(cell["error"], cell["trace"])) for cell in record["failures"]]
    only = () if keys == list(there) else tuple(keys)
    seeds = tuple(range(made["seeds"]))
    return StoredResult(e, made["preset"], parameters, seeds, finished, failures, dict(made), only, older, readable)


def matched(
    claims: Sequence[Claim], stored: Sequence[Mapping[str, Any]]
) -> list[tuple[Claim, Mapping[str, Any] | None]]:
    """Each claim with its stored outcome: the one of the same sentence, or None.

    If as many stored outcomes as claims have no partner, the claims were worded anew, and their order decides.
    """
    named = {outcome["claim"]: outcome for outcome in stored}
    texts = {claim.text for claim in claims}
    left = [outcome for outcome in stored if outcome["claim"] not in texts]
    new = [claim.text for claim in claims if claim.text not in named]
    if len(new) == len(left):
        named |= dict(zip(new, left, strict=True))
    return [(claim, named.get(claim.text)) for claim in claims]


def _as_it_was(e: Experiment[Any], record: Mapping[str, Any]) -> Experiment[Any]:
    """An experiment with the rows, the columns and the outcomes that its file has."""
    rows = [
        Row(
            row["row"],
            row["title"],
            row["changes"],
            {key: Published(**score["published"]) for key, score in row["scores"].items() if score["published"]},
            row["violated"],
            # Not stored by the first versions.
            row.get("note", ""),
        )
        for row in record["table"]
    ]
    known = {column.key: column for column in e.columns}
    keys = dict.fromkeys(key for row in record["table"] for key in row["scores"])
    # Not stored by the first versions.
    added = {claim.text: claim.added for claim in e.claims}
    claims = [
        replace(
            _stored_claim(claim),
            added=claim.get("added", added.get(claim["claim"], False)),
            late=claim.get("late", False),
        )
        for claim in record["claims"]
    ]
    return replace(
        e, rows=lambda p: rows, columns=[known.get(key, Column(key, key)) for key in keys], claims=claims, curves=()
    )


def _stored_claim(claim: Mapping[str, Any]) -> Claim:
    # The first versions stored no figure. The sentence then stands in its place.
    outcome = Outcome(Status(claim["status"]), claim["why"], figure=claim.get("figure", ""))
    return Claim(claim["claim"], lambda result: outcome)


def _tested_again(claim: Claim, stored: Mapping[str, Any] | None) -> Claim:
    """A claim that is tested on stored scores; if it needs the views of the cells, its outcome is the stored one."""

    def test(result: ExperimentResult) -> Outcome:
        try:
            return claim.test(result)
        except KeyError as missing:
            if missing.args != ("views",):
                raise
            if stored is None:
                return Outcome(Status.NOT_TESTABLE, "The stored run lacks what this claim needs: run it again.")
            return _stored_claim(stored).test(result)

    return replace(claim, test=test)
