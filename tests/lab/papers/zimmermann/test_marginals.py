"""Maps that stretch: linear at the start, radial or by coordinate; losses and the map are told."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.zimmermann.marginals import (
    CONTRASTIVE_MARGINALS,
    EVERY,
    NORMAL,
    Parameters,
    best_factor,
    cell,
    process,
    rows,
    stretched,
)

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

SMALL = Parameters(n=3, units=8, steps=4, batch=64, held_out=300, looks=2)


@pytest.mark.parametrize("marginal", ["normal", "laplace"])
def test_training_begins_at_a_linear_map(marginal):
    z = torch.randn(20, 3)
    torch.testing.assert_close(stretched(replace(SMALL, marginal=marginal))(z), z)


def test_the_best_factor_has_the_least_loss():
    from nearid.lab.models.objectives import infonce

    p = replace(SMALL, batch=256, width=3.0)
    best = best_factor(p, np.random.default_rng(0))
    z, positives = (torch.as_tensor(side) for side in process(p).pairs(4096, np.random.default_rng(1)))

    def loss(c):
        parts = zip(z.split(256), positives.split(256), strict=True)
        return np.mean([float(infonce(c * a, c * b, p=2.0)) for a, b in parts])

    assert loss(best) < min(loss(0.7 * best), loss(1.4 * best))


def test_a_radial_map_keeps_directions_and_the_other_keeps_signs():
    z = torch.randn(50, 3)
    for marginal in ("normal", "laplace"):
        made = stretched(replace(SMALL, marginal=marginal))
        with torch.no_grad():
            made.log_stretch[-1].weight.normal_()
            mapped = made(z)
        ratio = mapped / z
        assert (ratio > 0).all()
        assert (ratio.std(dim=1) < 1e-5).all() == (marginal == "normal")
        # Equal lengths are stretched alike.
        torch.testing.assert_close(made(z.flip(1)), mapped.flip(1))


def test_the_process_is_that_of_the_row():
    p = replace(SMALL, n=2, width=4.0)
    z, positives = process(p).pairs(50_000, np.random.default_rng(0))
    assert z.std() == pytest.approx(4, rel=0.02) and (positives - z).std() == pytest.approx(1, rel=0.02)


def test_a_cell_tells_losses_and_the_map(tmp_path):
    told = cell(SMALL, 0, tmp_path)
    scores = told["scores"]
    assert scores["gain"] == pytest.approx(scores["loss_linear"] - scores["loss_stretched"])
    x, y = (told["curves"]["map"][axis] for axis in "xy")
    # After a few steps the map is still nearly a straight line, if not yet the best one.
    slopes = np.divide(y[1:], x[1:])
    assert y[0] == 0 and slopes.max() < 1.5 * slopes.min()


def test_claims_speak_of_rows_that_are_there():
    keys = {row.key for row in rows(Parameters())}
    assert set(EVERY) | set(NORMAL) <= keys and len(keys) == 8
    published = {row.key: row.published["r2"].value for row in rows(Parameters()) if row.published}
    assert published == {"normal-10": 98.76, "laplace-10": 98.13}
    assert not CONTRASTIVE_MARGINALS.datasets(Parameters())


def result(**changes):
    """Three seeds as the finding has them, apart from what is given as row__column."""
    e, p = CONTRASTIVE_MARGINALS, parameters_for(CONTRASTIVE_MARGINALS, "cpu")
    told = []
    for c in cells_of(e, p, range(3)):
        scores = {"r2": 90.0 + 2 * c.parameters.width, "loss_linear": 6.0, "loss_stretched": 5.5, "gain": 0.5}
        scores |= {k.split("__")[1]: v for k, v in changes.items() if k.split("__")[0] == c.row.key.replace("-", "_")}
        scores = {k: v + 0.01 * c.seed * (k == "r2") + 0.001 * c.seed * (k == "loss_linear") for k, v in scores.items()}
        told.append(
            Finished(c, {"scores": scores, "curves": {"map": {"x": [0.0, 1.0], "y": [0.0, 2.0]}}}, 1.0, 1.0, {})
        )
    return ExperimentResult(e, "cpu", p, range(3), told, (), {})


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, ()),
        ({"laplace_10__loss_stretched": 6.5}, (0,)),
        ({"normal_4__r2": 97.9}, (1, 2)),
        ({"normal_10_wide_4__r2": 90.0}, (2,)),
    ],
)
def test_claims_decide(changes, fails):
    expected = ["not reproduced" if k in fails else "reproduced" for k in range(3)]
    assert [str(o.status) for _, o in result(**changes).outcomes] == expected


def test_figures_show_the_map_and_the_width():
    e = CONTRASTIVE_MARGINALS
    curves = e.section.figure(result()).curves
    assert set(curves) == {row.title for row in rows(Parameters())} | {"the best linear map"}
    assert curves["the best linear map"].x == curves["the best linear map"].y == [0.0, 1.0]
    [by_width] = e.figures(result())
    assert by_width.curves["4 latents"][0] == [1.0, 2.0, 4.0]
    nothing = ExperimentResult(e, "cpu", Parameters(), range(1), (), (), {})
    assert e.section.figure(nothing) is None and e.figures(nothing) == []
