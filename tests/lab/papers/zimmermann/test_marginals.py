"""Maps that stretch: linear at the start, radial or by coordinate; losses and the map are told."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.lab.papers.zimmermann.marginals import (
    CONTRASTIVE_MARGINALS,
    EVERY,
    NORMAL,
    Parameters,
    cell,
    linear,
    process,
    rows,
    stretched,
)

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

SMALL = Parameters(n=3, units=8, steps=4, batch=64, held_out=300, looks=2)


@pytest.mark.parametrize("marginal", ["normal", "laplace"])
def test_both_families_begin_at_the_same_map(marginal):
    z = torch.randn(20, 3)
    made = stretched(replace(SMALL, marginal=marginal))
    torch.testing.assert_close(made(z), linear(3)(z))


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
    # After a few steps the map has hardly left the linear one.
    np.testing.assert_allclose(y, x, rtol=0.2, atol=1e-6)


def test_claims_speak_of_rows_that_are_there():
    keys = {row.key for row in rows(Parameters())}
    assert set(EVERY) | set(NORMAL) <= keys and len(keys) == 8
    published = {row.key: row.published["r2"].value for row in rows(Parameters()) if row.published}
    assert published == {"normal-10": 98.76, "laplace-10": 98.13}
    assert not CONTRASTIVE_MARGINALS.datasets(Parameters())
