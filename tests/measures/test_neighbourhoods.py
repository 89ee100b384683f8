"""Batch metrics against brute force on small data, and on data whose answer is known."""

from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import average_precision_score

from nearid.measures import neighbourhoods as neighbours
from nearid.measures.neighbourhoods import mixing, replicates


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


def test_mixed_and_parted_batches(rng):
    x, batches = rng.normal(size=(600, 2)), np.arange(600) % 3
    assert mixing(x, np.zeros(600, int), batches).value == pytest.approx(1, abs=0.05)
    apart = mixing(x + 100 * batches[:, None], np.zeros(600, int), batches)
    assert apart.value == 0 and apart.lisi == 1
    assert np.isnan(mixing(x, np.arange(600), batches).value)


def test_replicates_are_what_brute_force_finds(rng, monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK", 5)
    x, labels, batches = rng.normal(size=(30, 4)), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    alike = 1 - cdist(x, x, "cosine")
    by_label = {1: [], 2: []}
    for i in np.flatnonzero(labels):
        other = batches != batches[i]
        by_label[labels[i]].append(average_precision_score(labels[other] == labels[i], alike[i][other]))
    found = replicates(x, labels, batches, control=0)
    assert found.per_label == pytest.approx({k: np.mean(v) for k, v in by_label.items()})
    assert found.value == pytest.approx(np.mean([np.mean(v) for v in by_label.values()]))


def test_chance_is_the_mean_over_all_orders():
    # One asking row, and five rows of another batch of which two are its replicates.
    labels, batches = np.array([1, 1, 1, 0, 0, 0]), np.array([0, 1, 1, 1, 1, 1])
    x = np.eye(6)[:, :2] + np.arange(6)[:, None]
    wanted = np.mean([average_precision_score(order, np.arange(5, 0, -1)) for order in permutations([1, 1, 0, 0, 0])])
    # Rows 1 and 2 ask for row 0 alone, and find it.
    found = replicates(x, labels, batches, control=0)
    assert found.chance == pytest.approx(np.mean([wanted, 1, 1]))


def test_ties_do_not_help():
    labels, batches = np.array([1, 1, 2, 2]), np.array([0, 1, 1, 0])
    found = replicates(np.ones((4, 2)), labels, batches)
    assert found.value == pytest.approx(0.5)
