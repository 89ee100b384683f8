"""What a person sees of bi-Lipschitz constants."""

import numpy as np
import pytest
import torch

from nearid import lipschitz
from nearid.show.terminal import text
from nearid.show.view import BAD, CAREFUL, GOOD


@pytest.fixture
def z(rng):
    return rng.normal(size=(40, 2))


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_and_tells_the_figures(z, width):
    shown = text(lipschitz(lambda x: torch.cat([2 * x, x**3], 1), z, name="a [bold]cube[/]").view, width)
    assert max(map(len, shown.splitlines())) <= width and "…" not in shown
    for word in ("10 random directions", "all directions", "scaled by", "maximum", "a [bold]cube[/]", "780 pairs"):
        assert word in " ".join(shown.split()), word


def test_an_isometry_a_stretch_and_a_loss(z):
    isometry = lipschitz(lambda x: 3 * x, z, constant=2.0)
    assert isometry.view.colour == GOOD and "near enough to a scaled isometry" in isometry.view.headline
    told = isometry.view.facts
    assert "does not apply" in told["Theorem 1, rigid motions"] and "or more" in told["Theorem 1, rigid motions"]
    assert "c = 2" in told["Theorem 1, with one scale"] and "proven" in told["Theorem 1, with one scale"]
    assert "7.2%" in told["Maximum"]  # 1 - 0.05^(1/40)
    assert "No c was given" in lipschitz(lambda x: x, z).view.facts["Theorem 1, rigid motions"]
    assert "near enough to an isometry" in lipschitz(lambda x: x, z).view.headline
    stretch = lipschitz(lambda x: x * torch.tensor([1.0, 9.0]), z)
    assert stretch.view.colour == CAREFUL and "too far from an isometry" in stretch.view.headline
    lost = lipschitz(lambda x: x * torch.tensor([1.0, 0.0]), z)
    assert lost.view.colour == BAD and lost.view.headline.startswith("No: some directions")
    told = lost.view.facts
    assert "Maximum" not in told and "L is infinite" in told["Theorem 1, rigid motions"] and "inf" in str(lost)


def test_without_jacobians_nothing_is_said_of_them(z):
    found = lipschitz(lambda x: x, z, exact=False)
    assert "Dynamical isometry" not in found.view.facts and "all directions" not in str(found)
    assert np.isfinite(found.sampled.local.mean.value)


@pytest.fixture
def missed(rng):
    """One of 256 directions is lost but for a 13th: L is 12.7 everywhere, and no random direction shows it."""
    weights = torch.ones(256, dtype=torch.float64)
    weights[0] = 1 / 12.7
    return lipschitz(lambda x: x * weights, rng.normal(size=(40, 256)))


def test_random_directions_alone_promise_nothing(missed):
    assert missed.exact is None and missed.scaled_bound.applies and missed.bound.applies
    assert missed.view.colour == CAREFUL
    assert "L is at least 1." in missed.view.headline and "at most" not in missed.view.headline
    assert missed.view.headline.startswith("Undecided: 10 random directions cannot show")
    told = missed.view.facts
    assert (
        "exceed it" not in told["Maximum"]
        and "7.2% of such latents give more over as many directions. Other directions" in told["Maximum"]
    )
    assert told["Theorem 1, rigid motions"].startswith(
        f"if L is nowhere larger than {missed.bound.lipschitz:.3f}, it is"
    )
    assert told["Theorem 1, with one scale"].startswith("if L is nowhere larger than")


def test_random_directions_can_tell_that_a_constant_is_too_large(rng):
    found = lipschitz(lambda x: x * torch.tensor([1.0, 9.0]), rng.normal(size=(40, 2)), exact=False)
    assert found.view.colour == CAREFUL and "L is at least" in found.view.headline
    assert found.view.headline.startswith("No: the decoder is too far from an isometry for Theorem 1")


def test_shares_are_written_out(z):
    found = lipschitz(lambda x: x * torch.tensor([1.0, 9.0]), z)
    assert "100% of the variance" in found.view.facts["Dynamical isometry"]


def test_shares_add_up_and_infinite_constants_are_not_drawn():
    z = np.array([[0.0, 1.0], [30.0, 0.0], [30.0, 0.0], [0.5, 0.5]])
    histogram, spectrum = lipschitz(torch.tanh, z).view.figures
    sampled, exact = histogram.curves.values()
    assert sum(sampled.y) == pytest.approx(1) and sum(exact.y) == pytest.approx(0.5)
    # A singular value of 0 has no place on the axis.
    low, high = spectrum.curves["5% and 95%"]
    assert np.isnan(low.y[1]) and high.y[1] > 0
    assert histogram.draw()["layout"]["xaxis"]["type"] == "log" and spectrum.draw()["layout"]["yaxis"]["type"] == "log"


def test_captions_of_random_directions_alone_promise_nothing(z):
    [alone] = lipschitz(lambda x: 1.01 * x, z, exact=False).view.figures
    both = lipschitz(lambda x: 1.01 * x, z).view.figures[0]
    assert "over all directions it may be far larger" in alone.caption and " and over all directions." in both.caption
