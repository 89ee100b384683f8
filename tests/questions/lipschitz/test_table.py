"""The table of bi-Lipschitz constants: what it says, at any width."""

import numpy as np
import pytest
import torch

from nearid import bilipschitz
from nearid.questions.lipschitz.table import as_text, facts, headline, standing


@pytest.fixture
def z(rng):
    return rng.normal(size=(40, 2))


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_and_tells_the_figures(z, width):
    text = as_text(bilipschitz(lambda x: torch.cat([2 * x, x**3], 1), z, name="a [bold]cube[/]"), width)
    assert max(map(len, text.splitlines())) <= width and "…" not in text
    for word in ("10 random directions", "all directions", "scaled by", "maximum", "a [bold]cube[/]", "780 pairs"):
        assert word in " ".join(text.split()), word


def test_an_isometry_a_stretch_and_a_loss(z):
    isometry = bilipschitz(lambda x: 3 * x, z, constant=2.0)
    assert standing(isometry) == "good" and "near enough to an isometry" in headline(isometry)
    told = dict(facts(isometry))
    assert "silent" in told["Theorem 1, rigid motions"] and "or more" in told["Theorem 1, rigid motions"]
    assert "c = 2" in told["Theorem 1, with one scale"] and "proven" in told["Theorem 1, with one scale"]
    assert "7.2%" in told["Maximum"]  # 1 - 0.05^(1/40)
    assert "no c was given" in dict(facts(bilipschitz(lambda x: x, z)))["Theorem 1, rigid motions"]
    stretch = bilipschitz(lambda x: x * torch.tensor([1.0, 9.0]), z)
    assert standing(stretch) == "careful" and "too far from an isometry" in headline(stretch)
    lost = bilipschitz(lambda x: x * torch.tensor([1.0, 0.0]), z)
    assert standing(lost) == "bad" and headline(lost).startswith("Not bi-Lipschitz")
    told = dict(facts(lost))
    assert "Maximum" not in told and "L is infinite" in told["Theorem 1, rigid motions"] and "inf" in as_text(lost)


def test_without_jacobians_nothing_is_said_of_them(z):
    found = bilipschitz(lambda x: x, z, exact=False)
    assert "Dynamical isometry" not in dict(facts(found)) and "all directions" not in as_text(found)
    assert np.isfinite(found.sampled.local.mean)


@pytest.fixture
def missed(rng):
    """One of 256 directions is lost but for a 13th: L is 12.7 everywhere, and no random direction shows it."""
    weights = torch.ones(256, dtype=torch.float64)
    weights[0] = 1 / 12.7
    return bilipschitz(lambda x: x * weights, rng.normal(size=(40, 256)))


def test_random_directions_alone_promise_nothing(missed):
    assert missed.exact is None and missed.scaled_bound.applies and missed.bound.applies
    assert standing(missed) == "careful"
    assert headline(missed).startswith("L is at least 1.") and "at most" not in headline(missed)
    assert "10 random directions alone cannot tell" in headline(missed)
    told = dict(facts(missed))
    assert (
        "exceed it" not in told["Maximum"]
        and "7.2% of such latents give more over as many; along others" in told["Maximum"]
    )
    assert told["Theorem 1, rigid motions"].startswith(f"if L is no larger than {missed.bound.lipschitz:.3f}, error")
    assert told["Theorem 1, with one scale"].startswith("if L is no larger than")


def test_random_directions_can_tell_that_a_constant_is_too_large(rng):
    found = bilipschitz(lambda x: x * torch.tensor([1.0, 9.0]), rng.normal(size=(40, 2)), exact=False)
    assert standing(found) == "careful" and headline(found).startswith("L is at least")
    assert headline(found).endswith("too far from an isometry for Theorem 1")


def test_shares_are_written_out(z):
    found = bilipschitz(lambda x: x * torch.tensor([1.0, 9.0]), z)
    assert "100% of the variance" in dict(facts(found))["Dynamical isometry"]
