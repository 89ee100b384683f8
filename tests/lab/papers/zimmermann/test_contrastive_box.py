"""Table 2 of the contrastive experiments: every loss with a box and without, and claims that decide."""

import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, settle
from nearid.lab.papers.zimmermann.contrastive_box import CONTRASTIVE_BOX
from nearid.lab.papers.zimmermann.contrastive_views import figures

E = CONTRASTIVE_BOX


def test_every_loss_with_a_box_and_without():
    p = settle(E, "paper")
    *made, supervised = [changed(p, row.changes) for row in E.rows(p)]
    assert {q.space for q in (*made, supervised)} == {"box"} and supervised.steps == 100_000
    assert [(q.conditional, q.exponent, q.output) for q in made] == [
        (conditional, exponent, output)
        for conditional, exponent in (("laplace", 1), ("generalised normal", 3), ("normal", 2), ("laplace", 2))
        for output in ("box", "unbounded")
    ]
    published = {row.key: row.published["mcc"].value for row in E.rows(p)}
    assert published["normal-unbounded"] == 58.26 and published["normal-box"] == 99.77


def result(**scores):
    """A result as the paper has it, apart from what is given as row__column."""
    cells = cells_of(E, settle(E, "cpu"), range(3))
    told = []
    for c in cells:
        free = c.row.key in ("normal-unbounded", "laplace-normal-unbounded")
        found = {"mcc": 60.0 + c.seed if free else 99.0 + 0.1 * c.seed, "r2": 99.5 + 0.1 * c.seed}
        told.append(Finished(c, {"scores": found | scores.get(c.row.key.replace("-", "_"), {})}, 1.0, 1.0, {}))
    return [str(o.status) for _, o in Result(E, "cpu", settle(E, "cpu"), range(3), told, (), {}).outcomes]


def test_claims_decide():
    assert result() == ["reproduced"] * 4
    no = "not reproduced"
    assert [s == no for s in result(gn3_box={"mcc": 80.0})] == [True, False, False, False]
    assert [s == no for s in result(normal_unbounded={"r2": 90.0})] == [False, True, False, False]
    assert [s == no for s in result(normal_unbounded={"mcc": 98.0})] == [False, False, True, True]
    assert [s == no for s in result(normal_box={"mcc": 75.0})] == [False, False, False, True]


def test_the_smoke_preset_runs_with_figures(tmp_path, inline):
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1)
    assert len(found.cells) == len(found.rows) == 9 and not found.failures
    assert len(figures(found)) == 2 * len(found.rows)
    assert "Table 2" in str(found)
