"""Pairs of MNIST autoencoders: what a cell trains on, that it is deterministic, and isometric at leak 1."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.geometry.bounds import isometry_constant
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.nelson.mnist_autoencoders import (
    ALL,
    MNIST_AUTOENCODERS,
    MNIST_AUTOENCODERS as E,
    ONE,
    Parameters,
    cell,
    figures,
    filtered,
    images,
    of_group,
    rows,
    scaled,
    theorem_bound,
)

YES, NO = "reproduced", "not reproduced"

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")


SMOKE = parameters_for(MNIST_AUTOENCODERS, "smoke")


def test_images_of_all_digits_or_of_one(digits):
    np.testing.assert_array_equal(images("train", None), digits["train"].reshape(400, 784))
    np.testing.assert_array_equal(images("test", 7), digits["test"][7::10].reshape(60, 784))
    assert scaled(np.array([0, 255], np.uint8)).tolist() == [0, 1] and scaled(np.zeros(1, np.uint8)).dtype == np.float32


def test_scores_of_a_pair(digits, tmp_path_factory):
    p = changed(SMOKE, {"leak": 0.2, "steps": 10})
    first = cell(p, 0, tmp_path_factory.mktemp("work"))
    s = first["scores"]
    assert 1 < s["lipschitz"] < s["lipschitz_max"] <= 0.2**-2 and s["lipschitz"] < s["lipschitz_exact"]
    assert s["rigid"] < s["rigid_max"] and s.get("bound", 2.0) > 1
    assert s["linear"] <= s["rigid"] * 1.05 and s["rigid"] > 0 and s["reconstruction"] == max(first["views"]["errors"])


def test_linear_runs_find_the_same_subspace_up_to_a_rotation(digits, tmp_path):
    # Images of three dimensions: principal components are all there is to find, and the decoder is an isometry.
    p = changed(SMOKE, {"leak": 1.0, "steps": 150, "rate": 1e-2})
    s = cell(p, 0, tmp_path)["scores"]
    assert s["lipschitz_max"] == pytest.approx(1, abs=1e-5) and s["rigid"] < 0.02 < 0.2 < s["chance"]
    x = scaled(images("test", None))
    values = np.linalg.eigvalsh(x.T @ x / len(x))
    # Two components leave more.
    assert values[:-3].sum() < 784 * s["reconstruction"] < 0.5 * values[:-2].sum()


def test_rows_are_leaks_with_all_digits_and_with_one():
    made = rows(Parameters())
    assert [r.key for r in made[:2]] == ["leak-0", "leak-0.2"] and len(made) == 12
    assert [r.changes for r in made[5:7]] == [{"leak": 1.0, "one_digit": False}, {"leak": 0.0, "one_digit": True}]


@pytest.mark.parametrize("wrong", [{"reference": 0.3}, {"leaks": (1.0, 1.0)}])
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r"must be .*, not"):
        Parameters(**wrong)


def near_one(leak):
    return [1.0, 1.01, 1.05, 1.3]


def result(only=(), errors=lambda leak, seed: (0.03, 0.03), quantiles=near_one, **changes):
    """A result as the paper has it; `changes` gives scores as functions of leak and seed."""
    p = parameters_for(E, "cpu")
    finished = []
    for c in cells_of(E, p, range(5), only):
        leak = c.parameters.leak
        l = 1 + 0.3 * (1 - leak) + 0.001 * c.seed * (1 - leak)
        scores = {"leak": leak, "lipschitz": l, "lipschitz_max": 2 * l - 1, "rigid": 0.1 * np.sqrt(l**2 - 1) + 0.005}
        scores |= {"rigid_max": 3 * scores["rigid"], "bound": theorem_bound(l, 6)}
        scores |= {name: change(leak, c.seed) for name, change in changes.items()}
        pair = errors(leak, c.seed)
        data = {"scores": scores | {"reconstruction": max(pair)}}
        data["views"] = {"errors": list(pair), "quantiles": quantiles(leak)}
        finished.append(Finished(c, data, 1.0, 1.0, {}))
    return ExperimentResult(E, "cpu", p, range(5), finished, (), {}, only)


def statuses(found):
    return [str(outcome.status) for _, outcome in found.outcomes]


def test_claims_decide():
    assert statuses(result()) == [YES] * 11
    # A constant that does not reach 1, or does not fall.
    assert statuses(result(lipschitz=lambda a, s: 1.3 - 0.2 * a))[0] == NO
    assert statuses(result(lipschitz=lambda a, s: 1 + 0.3 * a))[0] == NO
    # An error that falls too little, or rises.
    assert statuses(result(rigid=lambda a, s: 0.1 - 0.02 * a + 0.001 * s))[1:6] == [NO, YES, YES, YES, YES]
    assert statuses(result(rigid=lambda a, s: 0.01 + a)) == [YES] + [NO] * 8 + [YES] * 2
    # A mean that does not order the errors, and a maximum that does.
    mean = statuses(result(lipschitz=lambda a, s: 1 + (7 * a + s) % 1.3))
    assert mean[2] != YES and mean[4] != YES and mean[3] == YES == mean[5]
    assert mean[6] != YES and mean[8] != YES and mean[7] == YES
    # Errors that have nothing to do with the leak.
    assert statuses(result(rigid=lambda a, s: (7 * a + s) % 1.3))[2] != YES
    # Errors that rise, but far from 0 at L = 1: a line has them, the curve through 0 has not.
    raised = statuses(result(rigid=lambda a, s: 0.5 - 0.1 * a + 0.001 * s))
    assert raised[2] == YES and raised[6] == raised[7] == raised[8] == NO
    # A largest error above the bound.
    assert statuses(result(rigid_max=lambda a, s: 1e4))[9] == NO
    assert statuses(result(bound=lambda a, s: None))[9] == "not testable here"
    # Constants that lie near one at small leaks alone, and constants that spread.
    assert statuses(result(quantiles=lambda a: [1.0, 1.0 + 0.2 * (a > 0.7), 1.25, 1.3]))[10] == NO
    assert statuses(result(quantiles=lambda a: [1.0, 1.05, 1.2 if a == 1 else 1.1, 1.3]))[10] == NO
    assert statuses(result(quantiles=lambda a: near_one(a) if a > 0.7 else [1.0, 2.0, 3.0, 4.0]))[10] == YES


def test_the_sentences_tell_the_curve_the_constant_and_what_was_dropped():
    outcomes = result().outcomes
    assert "0 of 30 cells were dropped (11 of 60 in the paper)" in outcomes[2][1].sentence
    assert "R2 of the curve" in outcomes[6][1].sentence and "The slope of the error" in outcomes[6][1].sentence
    assert "the constant c_d is 1.18e+03 for 6 latents" in outcomes[9][1].sentence


def test_the_bound_is_that_of_theorem_1():
    assert theorem_bound(1.0, 6) == 0 and theorem_bound(1.5, 6) is None and theorem_bound(np.inf, 6) is None
    assert theorem_bound(1.25, 2) == pytest.approx(0.75 * isometry_constant(2))


def test_the_filter_is_that_of_the_paper():
    # At the reference leak runs have errors from 0.030 to 0.039, of which the percentile is 0.03855.
    def errors(leak, seed):
        return (0.030 + 0.002 * seed, 0.031 + 0.002 * seed) if leak == 1 else (0.02, 0.05 if seed == 3 else 0.0385)

    found = result(errors=errors)
    others = (0.0, 0.2, 0.4, 0.6, 0.8)
    for group in (ALL, ONE):
        kept, dropped = filtered(found, group)
        assert {(f.cell.parameters.leak, f.cell.seed) for f in dropped} == {(leak, 3) for leak in others} | {(1.0, 4)}
        assert len(kept) + len(dropped) == 30 == len(of_group(found, group))
    assert "6 of 30 cells were dropped" in found.outcomes[2][1].sentence
    assert "5 of 180" in found.outcomes[4][1].sentence
    assert any("dropped" in slot.points for slot in figures(found))


def test_without_the_reference_all_are_kept():
    found = result(only=("leak-0", "leak-0.2", "leak-0.4"), errors=lambda a, s: (s, s))
    kept, dropped = filtered(found, ALL)
    assert len(kept) == 15 and not dropped
    assert statuses(found)[4] == "not testable here"


def test_figures_have_every_leak_and_the_curve():
    slots = figures(result())
    assert len(slots) == 8
    first = slots[0]
    assert list(first.points) == [f"leak {a:g}" for a in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    assert len(first.curves) == 1 and all(len(x) == 5 == len(y) for x, y in first.points.values())
    assert "Fig. 2" in first.caption and "Fig. A.6" in slots[4].caption
    assert slots[3].points["median"][1] == pytest.approx([1.01] * 30)
