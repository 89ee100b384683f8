"""Corrections by controls: against scikit-learn and pycytominer's formula, and without help from what is judged."""

import numpy as np
import pytest
from sklearn.covariance import OAS

import nearid
from nearid import InputError
from nearid.measures.auroc import auroc
from nearid.questions.deconfound.corrections import FOLDS, fit_correction, fit_corrections, fit_sphering, read_controls
from nearid.questions.deconfound.design import open_design


def plates(rng, n=600, d=6, batches=6, offset=3.0, effect=0.0):
    """Rows with a shift and a size of their own on each plate; every third is a control."""
    labels, plate = np.array(["DMSO", "a", "b"])[np.arange(n) % 3], rng.integers(0, batches, n)
    sizes = rng.uniform(0.5, 2, size=batches)
    x = rng.normal(size=(n, d)) * sizes[plate, None] + offset * rng.normal(size=(batches, d))[plate]
    return x + effect * np.outer(labels == "a", np.eye(d)[0]), labels, plate


def opened(x, labels, plate, **options):
    return open_design(x, labels, plate, control="DMSO", **options)


@pytest.mark.parametrize("shape", [(40, 6), (5, 12), (300, 8)])
def test_sphering_is_the_inverse_root_of_the_shrunk_covariance(rng, shape):
    z = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    z -= z.mean(axis=0)
    oas = OAS(assume_centered=True).fit(z)
    made = fit_sphering(z, shape[0])
    values, vectors = np.linalg.eigh(oas.covariance_)
    wanted = (vectors / np.sqrt(values)) @ vectors.T
    assert made.shrunk == pytest.approx(oas.shrinkage_)
    assert made(np.eye(shape[1])) == pytest.approx(wanted, rel=1e-3, abs=1e-3 * np.abs(wanted).max())


def test_many_controls_are_sphered_as_by_pycytominer(rng):
    # ZCA of pycytominer: V diag(1 / (s / sqrt(n - 1) + eps)) V' of the centred controls.
    x, labels, plate = plates(rng, n=60_000, d=4, offset=0.5)
    design = opened(x, labels, plate)
    fit = fit_correction("sphere", read_controls(design, 60_000, 0))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    controls = z[labels == "DMSO"]
    s, v = np.linalg.svd(controls - controls.mean(axis=0), full_matrices=False)[1:]
    wanted = (z - controls.mean(axis=0)) @ (v.T / (s / np.sqrt(len(controls) - 1))) @ v
    assert fit.map(x[:500], np.arange(500)) == pytest.approx(wanted[:500], abs=0.08)


def test_every_batch_is_centred_by_its_controls(rng):
    x, labels, plate = plates(rng)
    design = opened(x, labels, plate)
    controls = read_controls(design, 10_000, 0)
    z = fit_correction("centre", controls).map(x, np.arange(600)) * x.std(axis=0)
    for row in (0, 1, 5, 77):
        others = (labels == "DMSO") & (plate == plate[row]) & (controls.fold != controls.fold[row])
        assert z[row] == pytest.approx(x[row] - x[others].mean(axis=0), abs=1e-4)
    assert not np.any(controls.fold >= FOLDS)


def test_without_a_control_batches_are_centred_by_all_rows(rng):
    x, labels, plate = plates(rng)
    made, alerts = fit_corrections(["centre"], open_design(x, labels, plate), 10_000, 0)
    z = made["centre"].take(np.arange(600))
    assert all(np.abs(z[plate == b].mean(axis=0)).max() < 1e-5 for b in range(6))
    assert [alert.code for alert in alerts] == ["centred_by_all_rows"]
    with pytest.raises(InputError, match="'tvn' is fitted on controls"):
        fit_corrections(["tvn"], open_design(x, labels, plate), 10_000, 0)


def test_tvn_gives_controls_of_every_batch_the_same_mean_and_covariance(rng):
    x, labels, plate = plates(rng, n=9000)
    made, _ = fit_corrections(["tvn"], opened(x, labels, plate), 10_000, 0)
    z = made["tvn"].take(np.arange(9000))
    for b in range(6):
        mine = z[(labels == "DMSO") & (plate == b)]
        assert np.abs(mine.mean(axis=0)).max() < 0.15
        assert np.cov(mine.T) == pytest.approx(np.eye(6), abs=0.2)


@pytest.mark.parametrize("name", ["centre", "sphere", "tvn"])
def test_other_rows_and_batches_that_are_judged_do_not_change_the_fit(rng, name):
    x, labels, plate = plates(rng)
    train = np.flatnonzero(plate < 4)

    def mapped(values):
        controls = read_controls(opened(values, labels, plate), 10_000, 0)
        return fit_correction(name, controls, train).map(values, np.arange(600))

    # Rows of a held-out plate that are no controls: nothing else may notice them.
    judged = (plate == 5) & (labels != "DMSO")
    changed = x.copy()
    changed[judged] += 50 * rng.normal(size=(judged.sum(), 6))
    assert mapped(changed)[~judged] == pytest.approx(mapped(x)[~judged], abs=1e-5)
    # Controls of a held-out plate matter for this plate alone.
    changed = x.copy()
    changed[(plate == 5) & (labels == "DMSO")] += 50
    assert mapped(changed)[plate != 5] == pytest.approx(mapped(x)[plate != 5], abs=1e-5)


@pytest.mark.parametrize("name", ["centre", "sphere", "tvn"])
def test_controls_are_not_told_by_having_made_the_correction(name):
    # Six controls a plate, 40 columns, no effect of any label. Corrected by themselves, controls would be shorter.
    rng = np.random.default_rng(0)
    n, d = 480, 40
    plate, labels = np.arange(n) // 12, np.where(np.arange(n) % 2, "DMSO", "a")
    x = rng.normal(size=(n, d)) + 2 * rng.normal(size=(40, d))[plate]
    made, _ = fit_corrections([name], opened(x, labels, plate), 10_000, 0)
    lengths = np.linalg.norm(made[name].take(np.arange(n)), axis=1)
    assert auroc(labels == "a", lengths) == pytest.approx(0.5, abs=0.1)
    centres = np.array([x[(plate == b) & (labels == "DMSO")].mean(axis=0) for b in range(40)])
    naive = np.linalg.norm(x - centres[plate], axis=1)
    assert auroc(labels == "a", naive) > 0.75


def test_blocks_stay_in_one_fold(rng):
    x, labels, plate = plates(rng)
    blocks = np.arange(600) // 6 * 3 + np.arange(600) % 3
    controls = read_controls(opened(x, labels, plate, blocks=blocks), 10_000, 0)
    for block in np.unique(controls.design.blocks):
        assert len(set(controls.fold[controls.design.blocks == block])) == 1


def test_some_controls_and_few_controls_are_told(rng):
    x, labels, plate = plates(rng, n=300, d=90)
    labels = np.where((plate == 2) & (labels == "DMSO"), "b", labels)
    made, alerts = fit_corrections(["centre", "tvn"], opened(x, labels, plate), 50, 0)
    told = {alert.code: alert.message for alert in alerts}
    assert "1 of 6 batches have fewer than 2 control rows ('2')" in told["few_controls"]
    assert "50 control rows" in told["drawn_controls"] and "for 90 columns" in told["shrunk_tvn"]
    # As many of each batch as possible.
    sizes = np.bincount(made["tvn"].controls.batches, minlength=6)
    assert sizes[2] == 0 and set(sizes) == {0, 10}
    assert np.isfinite(made["tvn"].take(np.arange(300))).all()


def test_corrections_help_where_plates_differ(rng):
    x, labels, plate = plates(rng, n=900, batches=10, offset=6, effect=1.5)
    options = {"control": "DMSO", "folds": 3, "classifiers": "logistic", "top": (), "directions": "most"}
    made = nearid.deconfound(x, labels, plate, conditions="base,centre,sphere,tvn", **options)
    assert list(made.conditions) == ["base", "centre", "sphere", "tvn"]
    for name in ("centre", "tvn"):
        assert made.mean(name, perturbation="a").mean > made.mean("base", perturbation="a").mean + 0.05
        assert made.mean(name, perturbation="b").mean == pytest.approx(0.5, abs=0.12)
        assert made.conditions[name].mixing.value > made.conditions["base"].mixing.value + 0.3
    assert {"corrected_by_controls"} <= {a.code for a in made.alerts}
    with pytest.raises(InputError, match="TVN is no map of single rows"):
        made.transform(x, "tvn")


def test_many_rows_are_classified_alike(rng, monkeypatch):
    x, labels, plate = plates(rng, n=400, effect=1.5)
    options = {"control": "DMSO", "folds": 2, "classifiers": "logistic", "top": (), "directions": "most"}
    small = nearid.deconfound(x, labels, plate, conditions="centre", **options)
    monkeypatch.setattr("nearid.questions.deconfound.classifiers.HELD_BYTES", 0)
    large = nearid.deconfound(x, labels, plate, conditions="centre", **options)
    assert large.mean("centre").mean == pytest.approx(small.mean("centre").mean, abs=2e-3)


def test_every_fold_of_every_batch_is_centred_where_controls_are_drawn(rng):
    """Also those from which no control was drawn: their rows would stay as they were."""
    plate = np.repeat([f"p{k}" for k in range(30)], 24)
    labels = np.tile(["DMSO", "drug"], 360)
    controls = read_controls(opened(rng.normal(size=(720, 2)), labels, plate), 50, 0)
    assert len(controls.places) == FOLDS * 30
    fitted = fit_correction("centre", controls)
    assert set(fitted.own) == {(batch, fold) for batch in range(30) for fold in range(FOLDS)}
