"""The table of the disentanglement experiment: settings, selection, claims that decide, figures."""

import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.nelson.disentanglement import DISENTANGLEMENT, by_seed, selected

E = DISENTANGLEMENT
# InfoM by model, without ICA and with it, in the first setting of each; the second is .1 worse.
LIKE_THE_PAPER = {
    "ae": (0.4, 0.65),
    "beta-vae": (0.59, 0.5),
    "beta-tcvae": (0.58, 0.5),
    "bioae": (0.54, 0.5),
    "vq-vae": (0.5, None),
    "qlae": (0.6, 0.5),
}


def result(models=LIKE_THE_PAPER, explained=lambda row, first: 0.95, rows=()):
    p, told, seen = parameters_for(E, "cpu"), [], set()
    for c in cells_of(E, p, range(3), rows):
        place = (c.row.changes["data"], c.row.changes["model"], c.seed)
        first = place not in seen
        seen.add(place)
        raw, ica = models[place[1]]
        shift = 0.001 * c.seed - (0.0 if first else 0.1)
        scores = {"infom": raw + shift, "explained": explained(c.row, first)}
        scores |= {} if ica is None else {"infom_ica": ica + shift}
        told.append(Finished(c, {"scores": scores}, 1.0, 1.0, {}))
    return ExperimentResult(E, "cpu", p, range(3), told, (), {}, rows)


def statuses(found):
    return [str(o.status) for _, o in found.outcomes]


def test_every_model_in_every_setting_on_every_image():
    p = parameters_for(E, "cpu")
    made = [changed(p, row.changes) for row in E.rows(p)]
    assert len(made) == 20 and {q.data for q in made} == {"sprites", "solids"}
    assert {q.model for q in made} == set(LIKE_THE_PAPER)
    by_key = {row.key: row for row in E.rows(p)}
    ae = by_key["solids-ae-decay-0.1"]
    assert (ae.published["infom"].value, ae.published["infom_ica"].value) == (0.39, 0.65)
    assert "orientation alone" in ae.published["infom"].note and not ae.published["infom"].verified


def test_the_published_protocol():
    p = parameters_for(E, "paper")
    by_key = {row.key: row for row in E.rows(p)}
    assert len(by_key) == 4 * 7 and (p.side, p.steps, p.batch, p.judged) == (64, 200_000, 128, 10_000)
    assert changed(p, by_key["falcor3d-beta-vae-beta-10"].changes).strength == 10
    assert by_key["mpi3d-complex-qlae-decay-0.001"].changes["decay"] == 0.001
    assert by_key["isaac3d-bioae-activity-0.1"].published["infom"].value == 0.63
    assert by_key["shapes3d-ae-decay-0.001"].published["infom_ica"].value == 0.79


def test_the_best_setting_is_selected_among_those_that_reconstruct():
    found = result()
    assert selected(found, "sprites", "ae").key == "sprites-ae-decay-0.1"
    # The better one does not reconstruct.
    blurred = result(explained=lambda row, first: 0.5 if first else 0.95)
    assert selected(blurred, "sprites", "ae").key == "sprites-ae-decay-1"
    # None does: the one that reconstructs best.
    worse = result(explained=lambda row, first: 0.5 if first else 0.4)
    assert selected(worse, "solids", "bioae").key == "solids-bioae-activity-0.01"
    assert selected(result(rows=("solids-ae-decay-0.1",)), "solids", "qlae") is None


def test_scores_are_averaged_over_images_by_seed():
    scores, chosen = by_seed(result(), "ae", "infom_ica")
    assert scores == pytest.approx({0: 0.65, 1: 0.651, 2: 0.652}) and "solids: AE" in chosen and "sprites: AE" in chosen
    # One source without a value: no mean.
    assert by_seed(result(rows=("solids-ae-decay-0.1",)), "ae") == ({}, "")


def test_claims_decide():
    assert statuses(result()) == ["reproduced"] * 2
    assert statuses(result({**LIKE_THE_PAPER, "ae": (0.4, 0.42)})) == ["not reproduced", "not reproduced"]
    assert statuses(result({**LIKE_THE_PAPER, "ae": (0.6, 0.61)})) == ["not reproduced", "reproduced"]
    assert statuses(result({**LIKE_THE_PAPER, "beta-vae": (0.99, 0.5)})) == ["reproduced", "not reproduced"]
    # Models with discrete latents are not among those compared with.
    assert statuses(result({**LIKE_THE_PAPER, "qlae": (0.99, 0.5)})) == ["reproduced", "reproduced"]
    assert statuses(result(rows=("solids-ae-decay-0.1",))) == ["not testable here"] * 2
    assert "Selected: sprites: AE, decay 0.1" in result().outcomes[0][1].sentence
