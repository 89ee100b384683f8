"""Table 1 of the contrastive experiments: its rows are the processes they name, and its claims decide."""

import json

import numpy as np
import pytest

from nearid.experiments.cells import Finished, cells_of
from nearid.experiments.contrastive import figures, process
from nearid.experiments.contrastive_sphere import CONTRASTIVE_SPHERE, MARGINALS, MATCHED, MISMATCHED
from nearid.experiments.result import Result
from nearid.experiments.run import reproduce
from nearid.experiments.settings import changed, settle
from nearid.processes.assumptions import violated

E = CONTRASTIVE_SPHERE


def broken(row, preset="paper"):
    """Conditions of the theorem that a row does not meet, and whether it knows the latents' own coordinates."""
    p = changed(settle(E, preset), row.changes)
    generating = process(changed(p, {"n": 3}), np.random.default_rng(0))
    loss = "dot" if p.exponent == 0 else p.exponent
    names = {a.name for a in violated(generating.assumptions(loss))} - {"exponent other than 2"}
    # The theorem on the sphere is for one concentration, which the loss of unit temperature stands for.
    return names | ({"matching conditional"} if p.conditional == "vmf" and p.kappa != 1 else set())


@pytest.mark.parametrize("row", E.rows(settle(E, "paper")), ids=lambda row: row.key)
def test_rows_break_what_their_claims_say(row):
    found = broken(row)
    if row.key in MATCHED:
        assert not found
    elif row.key in MISMATCHED:
        assert found == {"matching conditional"}
    elif row.key.removesuffix("-observed") in MARGINALS:
        assert "uniform marginal" in found
    else:
        assert row.key.startswith("supervised") and row.changes["steps"] == 100_000


def result(r2, identity=60.0):
    """A result in which all rows score the same, apart from those given."""
    cells = cells_of(E, settle(E, "cpu"), range(3))
    told = [
        Finished(c, {"scores": {"r2": r2.get(c.row.key, 99.0) + 0.01 * c.seed, "identity_r2": identity}}, 1.0, 1.0, {})
        for c in cells
    ]
    return Result(E, "cpu", settle(E, "cpu"), range(3), told, (), {})


def test_claims_decide():
    assert [str(o.status) for _, o in result({}).outcomes] == ["reproduced"] * 4
    for row, claim in (("box-normal", 0), ("sphere-laplace", 1), ("unbounded-normal", 2)):
        statuses = [str(o.status) for _, o in result({row: 90.0}).outcomes]
        assert statuses.pop(claim) == "not reproduced" and set(statuses) == {"reproduced"}
    assert str(result({}, identity=99.5).outcomes[3][1].status) == "not reproduced"


def test_the_smoke_preset_runs_with_figures(tmp_path, inline):
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1)
    assert len(found.cells) == len(found.rows) == 16 and not found.failures
    assert len(figures(found)) == 2 * len(found.rows)
    saved = json.loads((tmp_path / "out" / "result.json").read_text())
    assert saved["table"][0]["scores"]["r2"]["published"]["value"] == 99.42
    assert "true against recovered" in (tmp_path / "out" / "report.html").read_text()
