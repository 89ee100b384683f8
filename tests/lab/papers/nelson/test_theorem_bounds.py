"""Bounds beside errors: maps whose derivatives are known, and claims that decide."""

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.theorem_bounds import (
    THEOREM_BOUNDS as E,
    Parameters,
    cell,
    jacobians,
    largest_rigid_error,
    rows,
    twisted,
)


def test_a_map_without_a_twist_is_the_identity(rng):
    z, turns = rng.normal(size=(20, 3)), np.eye(3)
    np.testing.assert_array_equal(twisted(z, turns, 0.0), z)
    np.testing.assert_allclose(jacobians(z, turns, 0.0), np.broadcast_to(np.eye(3), (20, 3, 3)), atol=1e-8)
    # A twist stretches here and shrinks there.
    stretches = np.linalg.svd(jacobians(z, turns, 0.3), compute_uv=False)
    assert stretches.max() > 1.05 and stretches.min() < 0.95


def test_the_largest_error_of_a_rigid_motion(rng):
    x = rng.normal(size=(50, 4))
    turned = x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 3
    assert largest_rigid_error(x, turned) < 1e-10
    turned[7, 0] += 0.5
    assert 0.2 < largest_rigid_error(x, turned) <= 0.5


@pytest.mark.parametrize("row", rows(Parameters()), ids=lambda row: row.key)
def test_cells_keep_what_the_theorems_promise(row, tmp_path):
    s = cell(parameters_for(E, "smoke", dict(row.changes)), 0, tmp_path)["scores"]
    assert all(np.isfinite(list(s.values()))) and set(s) <= {c.key for c in E.columns}
    if "margin" in s:
        assert s["margin"] >= 0 and s["bound"] >= s["measured"] > 0
    if row.key.startswith("rigid"):
        # Smooth maps are nearer than the rate says.
        assert 0.6 < s["exponent"] < 1.2
    if row.key == "regression":
        assert s["statistical"] < 0.15 and s["nearest"] < 0.15 < s["structural"]
    if row.key == "masked":
        assert s["statistical"] < 0.05 < 0.1 < s["structural"] < 1 and s["reconstruction"] < 0.9


def statuses(**changes):
    p = parameters_for(E, "cpu")
    good = {"margin": 1.0, "statistical": 0.01, "structural": 0.3, "nearest": 0.01, "reconstruction": 0.6}
    told = [
        Finished(c, {"scores": good | changes.get(c.row.key.replace("-", "_"), {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 5
    assert statuses(rigid_6={"margin": -0.1}) == [no] + [yes] * 4
    assert statuses(ica={"margin": -0.1}) == [yes, no] + [yes] * 3
    assert statuses(structural={"margin": -0.1}) == [yes] * 2 + [no] + [yes] * 2
    for wrong in ({"statistical": 0.1}, {"nearest": 0.1}, {"structural": 0.05}):
        assert statuses(regression=wrong) == [yes] * 3 + [no, yes]
    for wrong in ({"statistical": 0.1}, {"reconstruction": 0.99}, {"structural": 0.05}):
        assert statuses(masked=wrong) == [yes] * 4 + [no]
