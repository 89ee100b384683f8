"""Logits of a classifier beside those of the process."""

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.reizinger.cross_entropy_optimum import (
    CROSS_ENTROPY_OPTIMUM as E,
    ROWS,
    Parameters,
    explained,
    rows,
)


def test_what_all_labels_share_does_not_count(rng):
    true = rng.normal(size=(30, 7))
    assert explained(true + rng.normal(size=(30, 1)), true) == pytest.approx(1)
    # Nothing is fitted: logits that are twice as large are not equal.
    assert explained(2 * true, true) == pytest.approx(0)
    assert explained(rng.normal(size=(30, 7)), true) < 0


def test_training_brings_logits_nearer(tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    changes = {"labels": "classes", "normalise": False, "widths": (64, 64), "batch": 256}
    scores = [
        E.cell(parameters_for(E, "smoke", {**changes, "steps": steps}), 0, tmp_path / str(steps))["scores"]
        for steps in (5, 400)
    ]
    assert scores[0]["logits"] < 0.6 and scores[1]["logits"] > 0.8
    assert scores[1]["excess"] < scores[0]["excess"] and set(scores[1]) == {c.key for c in E.columns}


def test_the_claim_decides():
    assert [row.key for row in rows(Parameters())] == list(ROWS)

    def status(**changes):
        p = parameters_for(E, "cpu")
        done = [
            Finished(c, {"scores": {"logits": changes.get(c.row.key.replace("-", "_"), 0.98)}}, 1.0, 1.0, {})
            for c in cells_of(E, p, range(3))
        ]
        return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), done, (), {}).outcomes]

    assert status() == ["reproduced"]
    for row in ROWS:
        assert status(**{row.replace("-", "_"): 0.9}) == ["not reproduced"]
    assert np.isclose(explained(np.eye(3), np.eye(3)), 1)
