"""Intervals of the similarities: standard errors of rows and of blocks, a sample for many rows, and what is printed."""

import numpy as np
import pytest

import nearid.questions.compare.similar as room
from nearid import compare


def related(rng, n=600, d=4):
    x = rng.normal(size=(n, d))
    return x, x @ rng.normal(size=(d, d)) + rng.normal(size=(n, d))


def test_every_similarity_has_an_interval_and_says_what_of(rng):
    x, y = related(rng)
    found = compare(x, y, permutations=1)
    for name in ("cca", "svcca", "cka"):
        value = getattr(found.similarity, name)
        assert -1 <= value.low < value.value < value.high <= 1 and value.high - value.low < 0.2
        assert value.of.startswith("rows") and found.to_dict()["similarity"][name]["of"] == value.of
    assert "mean of 4 directions" in str(found)
    assert found.to_dict()["similarity"]["directions"] == {
        "cca": [4] * 5,
        "svcca": found.similarity.directions["svcca"],
    }


def test_the_same_representation_leaves_no_doubt(rng):
    x = rng.normal(size=(400, 3))
    found = compare(x, 2 * x[:, ::-1], permutations=1).similarity
    for value in (found.cca, found.svcca, found.cka):
        assert value.low == pytest.approx(1, abs=1e-6) and value.high <= 1


def test_intervals_shrink_with_the_root_of_the_rows(rng):
    x, y = related(rng, n=8000)
    few, many = (compare(x[:n], y[:n], permutations=1).similarity for n in (500, 8000))
    for name in ("cca", "svcca", "cka"):
        a, b = getattr(few, name), getattr(many, name)
        assert (a.high - a.low) / (b.high - b.low) == pytest.approx(4, rel=0.4)


def test_a_sample_of_many_rows_gives_nearly_the_same(rng, monkeypatch):
    x, y = related(rng, n=4000)
    whole = compare(x, y, permutations=1).similarity
    monkeypatch.setattr(room, "ROWS", 1000)
    monkeypatch.setattr(room, "LEAST_ROWS", 1000)
    part = compare(x, y, permutations=1).similarity
    for name in ("cca", "svcca", "cka"):
        a, b = getattr(whole, name), getattr(part, name)
        assert b.value == a.value and b.high - b.low == pytest.approx(a.high - a.low, rel=0.2) and b.low != a.low


def test_copies_in_blocks_add_nothing(rng):
    """Rows that are there five times, each time in one block, tell as much as once."""
    x, y = related(rng, n=300)
    copies = np.repeat(np.arange(300), 5)
    once = compare(x, y, permutations=1, blocks=np.arange(300)).similarity
    often = compare(x[copies], y[copies], permutations=1, blocks=copies).similarity
    alone = compare(x[copies], y[copies], permutations=1, blocks="none").similarity
    for name in ("cca", "svcca", "cka"):
        widths = [getattr(found, name).high - getattr(found, name).low for found in (once, often, alone)]
        assert widths[1] == pytest.approx(widths[0], rel=0.05) and widths[2] < 0.7 * widths[0]


def test_of_many_rows_blocks_are_drawn(rng, monkeypatch):
    """Single rows of a sample would seem to be independent."""
    images = np.repeat(np.arange(400), 10)
    x, y = related(rng, n=400)
    x, y = (side[images] + 0.1 * rng.normal(size=(4000, 4)) for side in (x, y))
    whole = compare(x, y, permutations=1, blocks=images).similarity
    monkeypatch.setattr(room, "ROWS", 1000)
    monkeypatch.setattr(room, "LEAST_ROWS", 1000)
    part = compare(x, y, permutations=1, blocks=images).similarity
    for name in ("cca", "svcca", "cka"):
        a, b = getattr(whole, name), getattr(part, name)
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.35) and b.low != a.low
