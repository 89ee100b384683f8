"""Layers of small language models: cells repeat themselves, and pretrained models take the same way."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.roeder.gpt2_svcca import GPT2_SVCCA, Parameters, cell, layer_scores, rows

E = GPT2_SVCCA

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

SMALL = {"vocabulary": 100, "steps": 3}


def test_every_layer_is_kept_and_maps_need_one_width(corpora, tmp_path_factory):
    p = parameters_for(E, "smoke", SMALL)
    first = cell(p, 0, tmp_path_factory.mktemp("work"))
    assert "r2" not in first["scores"]
    table = first["views"]["layers"]
    assert len(table) == 2 and len(table[0]) == 13 and table[1][4] == pytest.approx(first["scores"]["back4"], abs=1e-4)


def test_two_runs_of_one_width_have_maps_and_learn(corpora, tmp_path_factory):
    p = parameters_for(E, "smoke", SMALL | {"steps": 60, "batch": 16, "rate": 6e-3, "looks": 2})
    same = next(r for r in rows(p) if r.key == "same")
    trained = cell(changed(p, same.changes), 0, tmp_path_factory.mktemp("a"))
    untrained = cell(changed(p, same.changes | {"trained": False}), 0, tmp_path_factory.mktemp("b"))
    assert trained["scores"]["loss"] < untrained["scores"]["loss"] - 0.3
    assert trained["scores"]["r2"] > 0 and "r2_heads" in trained["scores"]
    assert trained["scores"]["shuffled"] < min(trained["scores"]["back0"], untrained["scores"]["back0"])
    assert [*trained["curves"]["held_out"]["x"]] == [30, 60] and not untrained["curves"]


def test_the_row_of_pretrained_models(corpora, tmp_path, monkeypatch, rng):
    p = changed(parameters_for(E, "smoke"), {"pretrained": True})
    assert cell(p, 0, tmp_path) == {"scores": {}}
    with pytest.raises(InputError, match="names one"):
        cell(changed(p, {"models": "gpt2"}), 0, tmp_path)
    asked = []

    def states(names, sentences, before_last, folder):
        asked.append((names, sentences))
        return [[rng.normal(size=(300, 16)), rng.normal(size=(300, 70))] for _ in before_last]

    monkeypatch.setattr("nearid.lab.papers.roeder.gpt2_svcca.pretrained_states", states)
    found = cell(changed(p, {"models": "gpt2, gpt2-medium"}), 0, tmp_path)
    cell(changed(p, {"models": "gpt2, gpt2-medium"}), 1, tmp_path)
    assert found["views"]["components"] == [16] and set(found["scores"]) >= {"back0", "back12", "leads"}
    assert asked[0][0] == ["gpt2", "gpt2-medium"] and len(asked[0][1]) == len(asked[1][1]) == 40
    assert asked[0][1] != asked[1][1]
    monkeypatch.setattr(
        "nearid.lab.papers.roeder.gpt2_svcca.pretrained_states",
        lambda *_: [[rng.normal(size=(300, width)) for width in (16, 12)]],
    )
    with pytest.raises(InputError, match=r"^b has 12 coordinates, but the 16 leading"):
        cell(changed(p, {"models": "a,b"}), 0, tmp_path)


def test_only_the_papers_models_have_its_values():
    assert (
        rows(Parameters())[-1].published
        and rows(Parameters(models="gpt2,gpt2-medium,gpt2-large,gpt2-xl"))[-1].published
    )
    assert rows(Parameters(models="gpt2, gpt2-medium, gpt2-large, gpt2-xl,"))[-1].published
    other = rows(Parameters(models="a, b,"))[-1]
    assert not other.published and other.title == "a, b"


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"widths": (32,)}, "At least 2 widths"),
        ({"widths": (32, 40)}, "multiples of 16"),
        ({"components": (4, 8)}, "16 among them"),
        ({"components": (4, 16, 72)}, "below the least width 64"),
        ({"components": (4, 16, 64)}, "below the least width 64"),
        ({"models": "a,a"}, "The model a is named twice"),
        ({"models": "m,./m"}, "The model m is named twice"),
        ({"models": "a,"}, "names one"),
        ({"models": ","}, "names none"),
    ],
)
def test_impossible_parameters_get_a_sentence(wrong, told):
    with pytest.raises(InputError, match=told):
        Parameters(**wrong)


def test_layers_are_counted_back_from_the_last():
    table = np.array([np.linspace(0.9, 0.3, 13), np.linspace(0.8, 0.2, 13), np.linspace(0.1, 0.7, 13)])
    found = layer_scores(table, [4, 16, 31])
    expected = {"back0": 0.8, "back4": 0.6, "back8": 0.4, "back12": 0.2, "most0": 0.1, "most4": 0.3, "leads": 16.0}
    assert {k: round(v, 12) for k, v in found.items()} == expected
    # Only the layers of the paper, as pretrained models have them.
    assert layer_scores(table[:, [0, 4, 8, 12]], [4, 16, 31]) == found
    assert layer_scores(table[2:], [16])["leads"] == 0


def statuses(models="", late=False, **changes):
    p = parameters_for(E, "cpu", {"models": models} if models else None)
    usual = {"back0": 0.8, "back4": 0.7, "back8": 0.6, "back12": 0.5, "r2": 0.9}
    flat = dict.fromkeys(("back0", "back4", "back8", "back12"), 0.5)
    like = {"widths-untrained": flat, "same-untrained": flat}
    like["pretrained"] = {} if models else dict.fromkeys(usual)
    told = [
        Finished(c, {"scores": usual | like.get(c.row.key, {}) | changes.get(c.row.key, {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    outcomes = ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes
    # Of the late claims those that the paper states.
    return [str(o.status) for claim, o in outcomes if (claim.late and not claim.added) == late]


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


def test_late_claims_decide():
    yes, no = "reproduced", "not reproduced"
    best = {"back0": 0.95, "most0": 0.6, "most4": 0.7}
    assert statuses(late=True, widths=best) == [yes, yes]
    assert statuses(late=True, widths=best | {"back0": 0.8}) == [no, yes]
    assert statuses(late=True, widths=best | {"most4": 0.5}) == [yes, no]


def test_the_missing_models_are_named():
    p = parameters_for(E, "cpu")
    [*_, (_, outcome)] = ExperimentResult(E, "cpu", p, (0, 1), (), (), {}).outcomes
    assert "--set models=gpt2,gpt2-medium" in outcome.sentence
