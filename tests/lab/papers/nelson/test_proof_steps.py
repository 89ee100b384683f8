"""The steps of the proofs: maps whose constants are known, and claims that decide."""

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.proof_steps import (
    PROOF_STEPS as E,
    Parameters,
    ball,
    cell,
    deep_jacobian,
    rows,
    shares_of_bounds,
    two_sided,
    whiten,
)
from nearid.lab.papers.nelson.theorem_bounds import twisted


def test_points_fill_the_ball_and_twists_keep_it(rng):
    x = ball(5000, 3, rng)
    lengths = np.linalg.norm(x, axis=1)
    # Half of the volume lies beyond 2^(-1/3) of the radius.
    assert lengths.max() <= 0.5 and abs(np.median(lengths) - 0.5 * 2 ** (-1 / 3)) < 0.02
    moved = twisted(x, np.eye(3), 0.3)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), lengths)
    assert np.abs(moved - x).max() > 0.05


def test_shares_are_one_where_bounds_are_reached():
    z = np.array([[0.0, 0.0], [1.0, 0.0]])
    reached = shares_of_bounds(z, 1.5 * z, 1.5, 1.0)
    assert reached == {"stretch": pytest.approx(1), "change": pytest.approx(1)}
    assert shares_of_bounds(z, 1.5 * z, 2.25, 1.0) == {"stretch": pytest.approx(0.5), "change": pytest.approx(0.4)}
    assert two_sided(np.array([0.25, 2.0])) == 4


def test_whitened_rows_have_the_identity_as_covariance(rng):
    x = rng.laplace(size=(400, 3)) @ rng.normal(size=(3, 3)) + 5
    y = whiten(x)
    np.testing.assert_allclose(y.T @ y / len(y), np.eye(3), atol=1e-10)
    # The usual whitening turns nothing: its map is symmetric and positive.
    linear = np.linalg.lstsq(x - x.mean(axis=0), y)[0]
    np.testing.assert_allclose(linear, linear.T, atol=1e-10)
    assert np.linalg.eigvalsh(linear).min() > 0


@pytest.mark.parametrize("weights", ["normal", "orthogonal", "residual"])
def test_the_derivative_of_a_deep_network(weights, rng):
    p = Parameters(kind="start", weights=weights, depth=3, width=5)
    x, step = rng.normal(size=5), 1e-6

    def network(at):
        # The same weights in each call: the derivative of a shallow network is the product of what it multiplies.
        own = np.random.default_rng(3)
        for _ in range(p.depth):
            w = own.normal(size=(5, 5)) / np.sqrt(5)
            w = np.linalg.qr(w)[0] if weights == "orthogonal" else w
            y = np.tanh(w @ at)
            at = at + 0.1 * y if weights == "residual" else y
        return at

    sides = [(network(x + step * e) - network(x - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(deep_jacobian(p, x, np.random.default_rng(3)), np.stack(sides, axis=1), atol=1e-8)


@pytest.mark.parametrize("row", rows(Parameters()), ids=lambda row: row.key)
def test_cells(row, tmp_path):
    # ICA needs many rows to tell dependent components from normal ones.
    more = {"samples": 20_000} if row.key.startswith("ladder") else {}
    s = cell(parameters_for(E, "smoke", {**row.changes, **more}), 0, tmp_path)["scores"]
    assert all(np.isfinite(list(s.values()))) and set(s) <= {c.key for c in E.columns}
    if row.key in ("link-2", "link-6", "jacobian", "leaky"):
        assert 0.1 < s["stretch"] <= 1
    if row.key == "bent":
        assert s["stretch"] > 2 and s["change"] > 1
    if row.key == "whitening":
        assert 0 < s["share"] <= 1
    if row.key.startswith("ladder"):
        assert s["rigid_after"] < 0.5 * s["rigid_before"] and s["matched_after"] < 0.5 * s["matched_before"]
    if row.key == "start-normal":
        assert s["lipschitz"] > 100
    if row.key.startswith("normal"):
        assert (s["alike"] > 0.97) is (row.key == "normal-1")


GOOD = {
    "link": {"stretch": 0.8, "change": 0.3},
    "bent": {"stretch": 4.0, "change": 2.0},
    "jacobian": {"stretch": 0.9},
    "leaky": {"stretch": 0.9},
    "start-normal": {"lipschitz": 1e6},
    "start": {"lipschitz": 2.0},
    "whitening": {"share": 0.1},
    "ladder": {"rigid_before": 0.1, "rigid_after": 0.001, "matched_before": 0.1, "matched_after": 0.001},
    "normal-1": {"alike": 0.99},
    "normal-2": {"alike": 0.8},
}


def statuses(**changes):
    p = parameters_for(E, "cpu")

    def scores(key):
        own = next(GOOD[k] for k in (key, key.split("-")[0]) if k in GOOD)
        return own | changes.get(key.replace("-", "_"), {})

    done = [Finished(c, {"scores": scores(c.row.key)}, 1.0, 1.0, {}) for c in cells_of(E, p, range(3))]
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), done, (), {}).outcomes]


@pytest.mark.parametrize(
    ("failing", "changes"),
    [
        (0, {"link_6": {"stretch": 1.1}}),
        (0, {"link_2": {"change": 1.1}}),
        (1, {"bent": {"change": 0.9}}),
        (2, {"jacobian": {"stretch": 1.1}}),
        (3, {"leaky": {"stretch": 1.1}}),
        (4, {"start_orthogonal": {"lipschitz": 4.0}}),
        (4, {"start_normal": {"lipschitz": 50.0}}),
        (5, {"whitening": {"share": 1.1}}),
        (6, {"ladder_dependent": {"matched_after": 0.03}}),
        (6, {"ladder": {"rigid_before": 0.015}}),
        (7, {"normal_1": {"alike": 0.9}}),
        (7, {"normal_2": {"alike": 0.97}}),
    ],
)
def test_claims_decide(failing, changes):
    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 8
    assert statuses(**changes) == [no if k == failing else yes for k in range(8)]
