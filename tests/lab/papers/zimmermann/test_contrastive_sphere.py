"""Table 1 of the contrastive experiments: its rows are the processes they name, and its claims decide."""

import json

import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, settle
from nearid.lab.papers.zimmermann.contrastive_sphere import CONTRASTIVE_SPHERE, MARGINALS, MATCHED, MISMATCHED
from nearid.lab.papers.zimmermann.contrastive_views import figures

E = CONTRASTIVE_SPHERE


@pytest.mark.parametrize("row", E.rows(settle(E, "paper")), ids=lambda row: row.key)
def test_rows_break_what_their_claims_say(row):
    found = set(row.violated)
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
    saved = json.loads((tmp_path / "out" / "smoke,seeds=1" / "result.json").read_text())
    assert saved["table"][0]["scores"]["r2"]["published"]["value"] == 99.42
    assert "true against recovered" in (tmp_path / "out" / "smoke,seeds=1" / "report.html").read_text()


def test_published_values_belong_to_the_published_process():
    ten, four = settle(E, "paper"), settle(E, "cpu")
    assert {v.note for v in E.rows(ten)[0].published.values()} == {""}
    assert {v.note for v in E.rows(four)[0].published.values()} == {"Published for 10 latents, not 4."}
    assert not any(row.published for row in E.rows(changed(ten, {"kappa": 5.0})))
