"""Squares: metrics measured on pixels come to the theory's, and claims decide."""

import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.nelson.square_manifolds import SQUARE_MANIFOLDS as E, Parameters, cell, rows

SMOKE = parameters_for(E, "smoke")


def scores(**changes):
    return cell(changed(SMOKE, changes), 0, None)["scores"]


def test_moving_is_an_isometry_and_growing_is_not():
    moving, growing = scores(manifold="xy"), scores(manifold="xr")
    assert moving["lipschitz"] == pytest.approx(1, abs=1e-3) and moving["spread"] == pytest.approx(1, abs=1e-3)
    assert growing["lipschitz"] > 1.1 and growing["spread"] > 1.2


def test_errors_fall_with_the_blur_to_first_order():
    coarse, fine = scores(manifold="xyr", side=64), scores(manifold="xyr", side=128)
    for key in ("error", "lipschitz_error"):
        assert coarse[key] / fine[key] == pytest.approx(2, rel=0.1)
    # The images themselves are as blurred as they should be.
    assert coarse["blurred_error"] < 0.05 and fine["cosine"] < 1e-3


def test_the_half_side_needs_its_unit_and_pixels_need_blur():
    assert scores(manifold="xr", rescaled=False)["anisotropy"] > 1.4 > 1.1 > scores(manifold="xr")["anisotropy"]
    assert scores(manifold="x", blur=0.2)["spread"] > 2


def test_rows_halve_the_side():
    sides = {r.key: changed(Parameters(), r.changes).side for r in rows(Parameters())}
    assert (sides["xr"], sides["xr-2"], sides["xr-4"]) == (256, 128, 64)


def claims(**changed_scores):
    """What claims say of a result as the theory has it, apart from what is given as row__column."""
    p = parameters_for(E, "cpu")
    finished = []
    for c in cells_of(E, p, range(3)):
        value = {"error": 2.0, "anisotropy": 1.01, "lipschitz": 1.0, "lipschitz_error": 0.5}
        value["error"] = {"xr-2": 4.0, "xr-4": 8.0}.get(c.row.key, 2.0) + 0.1 * c.seed
        value["anisotropy"] = 1.41 if c.row.key == "xr-plain" else 1.01
        value |= changed_scores.get(c.row.key.replace("-", "_"), {})
        finished.append(Finished(c, {"scores": value}, 1.0, 1.0, {}))
    found = ExperimentResult(E, "cpu", p, range(3), finished, (), {})
    return [str(o.status) == "reproduced" for _, o in found.outcomes]


def test_too_little_blur_is_named_below_the_table():
    notes = {row.key: row.note for row in rows(changed(Parameters(), {"blur": 0.5}))}
    assert "a blur of 0.5 pixels" in notes["x"] and "not the theory" in notes["xyr"] and not notes["x-sharp"]
    assert not any(row.note for row in rows(Parameters()))


def test_claims_decide():
    assert claims() == [True] * 4
    assert claims(xy={"lipschitz": 1.1}) == [False, True, True, True]
    assert claims(xyr={"anisotropy": 1.2}) == [True, False, True, True]
    assert claims(xr_plain={"anisotropy": 1.02}) == [True, False, True, True]
    assert claims(x={"error": 9.0}) == [True, True, False, True]
    assert claims(xr_2={"error": 1.0}) == [True, True, False, True]
    assert claims(xr={"lipschitz_error": 3.0}) == [True, True, True, False]
