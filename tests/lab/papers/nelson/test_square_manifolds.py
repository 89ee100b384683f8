"""Squares: metrics measured on pixels come to the theory's, and claims decide."""

import json

import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, settle
from nearid.lab.papers.nelson.square_manifolds import SQUARE_MANIFOLDS as E
from nearid.lab.papers.nelson.square_manifolds import Parameters, cell, rows

SMOKE = settle(E, "smoke")


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


def test_the_same_seed_gives_the_same_and_another_another():
    p = changed(SMOKE, {"manifold": "xr"})
    first, again, other = (cell(p, seed, None) for seed in (0, 0, 1))
    assert first == again and first["scores"]["error"] != other["scores"]["error"]
    json.dumps(first, allow_nan=False)


def test_rows_halve_the_side():
    sides = {r.key: changed(Parameters(), r.changes).side for r in rows(Parameters())}
    assert (sides["xr"], sides["xr-2"], sides["xr-4"]) == (256, 128, 64)


@pytest.mark.parametrize("wrong", [{"manifold": "yr"}, {"points": 1}, {"blur": 0.0}])
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r", not "):
        Parameters(**wrong)


def claims(**changed_scores):
    """What claims say of a result as the theory has it, apart from what is given as row__column."""
    p = settle(E, "cpu")
    finished = []
    for c in cells_of(E, p, range(3)):
        value = {"error": 2.0, "anisotropy": 1.01, "lipschitz": 1.0, "lipschitz_error": 0.5}
        value["error"] = {"xr-2": 4.0, "xr-4": 8.0}.get(c.row.key, 2.0) + 0.1 * c.seed
        value["anisotropy"] = 1.41 if c.row.key == "xr-plain" else 1.01
        value |= changed_scores.get(c.row.key.replace("-", "_"), {})
        finished.append(Finished(c, {"scores": value}, 1.0, 1.0, {}))
    found = Result(E, "cpu", p, range(3), finished, (), {})
    return [str(o.status) == "reproduced" for _, o in found.outcomes]


def test_claims_decide():
    assert claims() == [True] * 4
    assert claims(xy={"lipschitz": 1.1}) == [False, True, True, True]
    assert claims(xyr={"anisotropy": 1.2}) == [True, False, True, True]
    assert claims(xr_plain={"anisotropy": 1.02}) == [True, False, True, True]
    assert claims(x={"error": 9.0}) == [True, True, False, True]
    assert claims(xr_2={"error": 1.0}) == [True, True, False, True]
    assert claims(xr={"lipschitz_error": 3.0}) == [True, True, True, False]


def test_the_smoke_preset_runs_with_figures(tmp_path, inline):
    found = reproduce(E, tmp_path / "out", preset="smoke")
    assert len(found.cells) == 2 * len(found.rows) == 16 and not found.failures
    plain, rescaled = E.figures(found)
    assert list(plain.curves) == ["4 r", "8 r"] and list(rescaled.curves) == ["4 r"]
    # Points lie near the lines.
    for plot, factor in ((plain, 8), (rescaled, 4)):
        x, y = plot.points["growing"]
        assert y == pytest.approx([factor * r for r in x], rel=0.15)
