"""Scores in a terminal."""

import re

import numpy as np
import pytest

from nearid import score
from nearid.groups.ladder import GROUPS
from nearid.questions.score.table import as_text, columns, headline, kind_of, lines


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    u = rng.laplace(size=(600, 2))
    return score(u @ [[1, 0.9], [0, 1]], {"[bold]x": u[:, 0], "y": u[:, 1]}, measures="mcc,r2,infomec", resolve="ica")


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_and_say_it_all(found, width):
    text = as_text(found, width)
    assert max(map(len, text.splitlines())) <= width and "…" not in text
    for word in ("MCC", "R2, linear", "InfoMEC (InfoM) *", "InfoE", "after ICA", "[bold]x", "chance", "not held out"):
        assert word in text, word
    assert text == str(found) if width == 120 else True
    assert f"{found.measures['mcc'].value:.3f}" in text
    assert f"{found.resolved.measures['mcc'].value:.3f}" in text


def test_headlines_follow_the_verdict(found):
    assert headline(found) == "The true factors are recovered nearly exactly, up to a linear map"
    assert headline(found.resolved).endswith("up to a signed permutation")
    noise = score(np.random.default_rng(1).normal(size=(60, 2)), np.arange(60.0), measures="mcc")
    assert headline(noise) == "The true factors are not recovered up to any group of the ladder"


def test_the_headline_counts_the_factors_that_are_judged():
    """It was "4 of 5 true factors are recovered closely" where the fifth was categorical and recovered best."""
    rng = np.random.default_rng(0)
    u = {name: rng.laplace(size=300) for name in "abcd"}
    shape = rng.choice(["disc", "square"], 300)
    z = np.column_stack([*u.values(), shape == "disc"]) + 0.2 * rng.normal(size=(300, 5)) * [1, 1, 1, 1, 0.01]
    found = score(z, {**u, "shape": shape}, measures="mcc,r2", permutations=1)
    r2 = found.measures["r2"].factors["shape"].value
    assert headline(found) == (
        f"All 4 continuous factors are recovered closely, up to a {GROUPS[found.verdict.group].title}. "
        f"The categorical factor is scored separately: R2 {r2:.3f}"
    )
    mixed = {**u, "shape": shape, "size": rng.integers(0, 9, 300), "line": rng.choice(["x", "y"], 300)}
    noise = score(rng.normal(size=(300, 2)), mixed, measures="mcc,mig", permutations=1)
    assert headline(noise).startswith("The 5 numeric factors are not recovered up to any group of the ladder. ")
    assert re.search(r"The 2 categorical factors are scored separately: MCC -?0\.\d+ to -?0\.\d+$", headline(noise))
    classes = score(z, {"shape": shape}, measures="modularity", permutations=1)
    assert headline(classes) == (
        "There is no verdict on a group, because all factors are categorical. "
        "The categorical factor is scored separately, by the measures below"
    )


def test_parts_after_ica_are_those_of_their_own_measure():
    rng = np.random.default_rng(0)
    u = rng.laplace(size=(200, 2))
    found = score(u @ [[1, 0.9], [0, 1]], u, measures="dci,dci_l1", resolve="ica", permutations=1)
    parts = [line for line in lines(found) if line.title == "completeness"]
    for line, name in zip(parts, ("dci", "dci_l1"), strict=True):
        assert line.after == found.resolved.measures[name].parts["completeness"]
    assert parts[0].after != parts[1].after
    assert [title for _, title in columns(found)] == ["informativeness, boosting", "informativeness, L1"]


def test_factors_and_their_measures_are_named(found):
    assert [title for _, title in columns(found)] == ["MCC", "R2, linear", "InfoE *"]
    assert kind_of(found.factors[0]) == "continuous (inferred)"
