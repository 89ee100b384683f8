"""Batch metrics against brute force on small data, and on data whose answer is known."""

import numpy as np
import pytest

from nearid.measures import neighbourhoods as neighbours
from nearid.measures.neighbourhoods import mixing


def brute_mixing(x, labels, batches, k):
    ratios, lisi = [], []
    for i in range(len(x)):
        others = [j for j in range(len(x)) if labels[j] == labels[i] and j != i]
        near = min(k, len(others) // 2)
        if near < 2 or len(set(batches[[*others, i]])) < 2:
            continue
        closest = sorted(others, key=lambda j: np.linalg.norm(x[i] - x[j]))[:near]
        pairs = [(a, b) for a in closest for b in closest if a != b]
        possible = [(a, b) for a in others for b in others if a != b]
        local = np.mean([batches[a] != batches[b] for a, b in pairs])
        ratios.append(local / np.mean([batches[a] != batches[b] for a, b in possible]))
        shares = np.bincount(batches[closest]) / near
        lisi.append(1 / np.sum(shares**2))
    return np.mean(ratios), np.mean(lisi)


def test_mixing_is_what_brute_force_finds(rng, monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK", 7)
    x, labels, batches = rng.normal(size=(40, 3)), rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    found = mixing(x, labels, batches, 4)
    assert (found.value, found.lisi) == pytest.approx(brute_mixing(x, labels, batches, 4)) and found.rows == 40
    assert found.each.mean() == pytest.approx(found.value) and sorted(found.places) == list(range(40))


def test_mixed_and_parted_batches(rng):
    x, batches = rng.normal(size=(600, 2)), np.arange(600) % 3
    assert mixing(x, np.zeros(600, int), batches).value == pytest.approx(1, abs=0.05)
    apart = mixing(x + 100 * batches[:, None], np.zeros(600, int), batches)
    assert apart.value == 0 and apart.lisi == 1
    assert np.isnan(mixing(x, np.arange(600), batches).value)
