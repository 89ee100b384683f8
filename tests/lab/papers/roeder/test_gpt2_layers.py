"""Scores from agreement layer by layer, and what claims make of them."""

import numpy as np

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.settings import settle
from nearid.lab.papers.roeder.gpt2_layers import scores
from nearid.lab.papers.roeder.gpt2_svcca import GPT2_SVCCA

E = GPT2_SVCCA


def test_layers_are_counted_back_from_the_last():
    table = np.array([np.linspace(0.9, 0.3, 13), np.linspace(0.8, 0.2, 13), np.linspace(0.1, 0.7, 13)])
    found = scores(table, [4, 16, 31])
    expected = {"back0": 0.8, "back4": 0.6, "back8": 0.4, "back12": 0.2, "most0": 0.1, "most4": 0.3, "leads": 16.0}
    assert {k: round(v, 12) for k, v in found.items()} == expected
    # Only the layers of the paper, as pretrained models have them.
    assert scores(table[:, [0, 4, 8, 12]], [4, 16, 31]) == found
    assert scores(table[2:], [16])["leads"] == 0


def statuses(models="", **changes):
    p = settle(E, "cpu", {"models": models} if models else None)
    usual = {"back0": 0.8, "back4": 0.7, "back8": 0.6, "back12": 0.5, "r2": 0.9}
    flat = dict.fromkeys(("back0", "back4", "back8", "back12"), 0.5)
    like = {"widths-untrained": flat, "same-untrained": flat}
    like["pretrained"] = {} if models else dict.fromkeys(usual)
    told = [
        Finished(c, {"scores": usual | like.get(c.row.key, {}) | changes.get(c.row.key, {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return [str(o.status) for _, o in Result(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    yes, no, left = "reproduced", "not reproduced", "not testable here"
    assert statuses() == [yes] * 7 + [left]
    assert statuses(widths={"back4": 0.81}) == [no, yes, yes, yes, no, yes, yes, left]
    # The later half is .75: one earlier layer below it does not make up for another above it.
    assert statuses(widths={"back8": 0.76, "back12": 0.3}) == [yes, yes, no, yes, yes, yes, yes, left]
    assert statuses(same={"back12": 0.95, "r2": 0.7}) == [yes, no, yes, no, no, yes, no, left]
    # Untrained models that agree as much leave nothing to training.
    assert statuses(**{"same-untrained": {"back0": 0.75}}) == [yes, yes, yes, yes, no, no, yes, left]
    assert statuses("a,b") == [yes] * 8
    assert statuses("a,b", pretrained={"back8": 0.85})[-1] == no


def test_the_missing_models_are_named():
    p = settle(E, "cpu")
    [*_, (_, outcome)] = Result(E, "cpu", p, (0, 1), (), (), {}).outcomes
    assert "--set models=gpt2,gpt2-medium" in outcome.sentence
