"""Small runs of benchmarks/validity_deconfound.py: levels that the tests of before missed by far, and power."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

PATH = Path(__file__).parents[3] / "benchmarks" / "validity_deconfound.py"


@pytest.fixture(scope="module")
def validity():
    spec = importlib.util.spec_from_file_location("validity_deconfound", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["equal cells", "many controls", "missing cells"])
def test_wells_are_not_taken_for_labels(validity, kind):
    rng = np.random.default_rng(0)
    found = [validity.attributed(kind, 6, 8, 0.2, 0.0, rng, 8).biological.any() for _ in range(40)]
    # At the level of 5%, 10 of 40 have a chance below 1e-4; rows as units give nearly all.
    assert sum(found) < 10


def test_labels_are_found(validity):
    rng = np.random.default_rng(1)
    found = [validity.attributed("equal cells", 6, 4, 0.05, 0.2, rng, 8).biological[0] for _ in range(40)]
    assert np.mean(found) > 0.8


def test_trainings_on_one_batch_keep_their_level(validity):
    rng = np.random.default_rng(2)
    p = np.array([validity.crossed(rng, 6, 0.3, 1.0, 0.0) for _ in range(300)])
    # 0.12 is five Monte-Carlo errors above the level; a t test over trainings misses it by far.
    shared, plain = np.mean(p < 0.05, axis=0)
    assert shared < 0.12 < 0.18 < plain and not np.isnan(p).any()


def test_conditions_that_are_alike_are_seldom_told_apart(validity):
    rng = np.random.default_rng(3)
    tests = [t for _ in range(12) for t in validity.equal_conditions(rng) if t.direction == "one"]
    assert np.mean([t.p < 0.05 for t in tests]) < 0.2
    assert all(-1 <= t.difference.low <= t.difference.value <= t.difference.high <= 1 for t in tests)


def test_the_error_is_that_of_a_share(validity):
    line = validity.Line("x", "", 0.2, 400)
    assert f"±{stats.binom(400, 0.2).std() / 400:.3f}" in str(line)
