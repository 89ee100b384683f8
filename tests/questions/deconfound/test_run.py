"""The whole: a screen whose biology and technology are known, reproducible, honest about what it cannot say."""

import json

import numpy as np
import pandas as pd
import pytest

import nearid
from nearid import InputError
from nearid.lab.processes.microscopy import draw_microscopy

NAMES = np.array(["DMSO", "a", "b"])
QUICK = {"control": "DMSO", "folds": 3, "classifiers": "logistic", "top": (2,)}


@pytest.fixture(scope="module")
def screen():
    rng = np.random.default_rng(0)
    process = draw_microscopy(
        12, rng, biological=4, technical=4, perturbations=2, batches=12, presence=0.9, targets=2, bend=0.1
    )
    drawn = process.sample(3000, rng, np.float64)
    return process, drawn, process.observe(drawn.factors)


@pytest.fixture(scope="module")
def found(screen):
    _, drawn, x = screen
    return nearid.deconfound(x, NAMES[drawn.labels], drawn.batches, **QUICK, drop=0.05)


def test_components_are_what_they_are(screen, found):
    process, drawn, x = screen
    # Each factor's own component, by correlation.
    rho = np.abs(np.corrcoef(found.transform(x).T, drawn.factors.T)[:12, 12:])
    truth = process.kinds[rho.argmax(axis=1)]
    kinds = np.array(found.conditions["ica"].components.kinds)
    assert set(kinds[truth == "technical"]) == {"technical"}
    assert "technical" not in kinds[truth != "technical"]
    # Perturbations move some of the biological factors: of these one may be missed, and one of the others be named.
    moved = np.flatnonzero(process.kinds == "biological")[np.abs(process.shifts).sum(axis=0) > 0]
    named = set(rho.argmax(axis=1)[kinds == "biological"])
    assert len(set(moved) - named) <= 1 and len(named - set(moved)) <= 1


def test_conditions_keep_the_order_of_the_paper(found):
    sparsity = {name: found.mean(name, "sparsity").mean for name in found.conditions}
    assert sparsity["ica"] > max(sparsity["base"], sparsity["pca"], sparsity["random"])
    focus = {name: found.mean(name, "concentration@2").mean for name in found.conditions}
    assert focus["ica"] > max(focus["base"], focus["random"])
    assert all(found.mean(name).mean > 0.8 for name in found.conditions)
    # Linear classifiers do not mind a rotation.
    assert found.mean("ica").mean == pytest.approx(found.mean("random").mean, abs=1e-3)
    # Technical components tell nothing that is missed.
    assert found.mean("kept_base").mean == pytest.approx(found.mean("base").mean, abs=0.02)


def test_components_of_other_rows(screen, found):
    x = screen[2]
    kinds = np.array(found.conditions["ica"].components.kinds)
    whole, part = found.transform(x[:50]), found.transform(x[:50], drop_technical=True)
    assert whole.shape == (50, 12) and np.array_equal(part, whole[:, kinds != "technical"])
    with pytest.raises(InputError, match="no condition named 'icaa'"):
        found.transform(x, "icaa")
    with pytest.raises(InputError, match="12 columns were evaluated"):
        found.transform(x[:, :3])


def test_components_of_a_table_and_of_anndata(screen):
    _, drawn, x = screen
    labels, rows = NAMES[drawn.labels[:300]], slice(0, 300)
    options = {**QUICK, "top": (), "conditions": "base", "directions": "most"}
    table = pd.DataFrame(x[rows, :3], columns=list("xyz")).assign(plate=drawn.batches[rows], drug=labels)
    made = nearid.deconfound(table, "drug", "plate", **options)
    whole = made.transform(x[rows, :3], "base")
    assert np.array_equal(made.transform(table[["plate", "z", "y", "x"]], "base"), whole)
    with pytest.raises(InputError, match="lacks 1 of the 3 columns that were evaluated: 'y'"):
        made.transform(table[["x", "z"]], "base")
    anndata = pytest.importorskip("anndata")
    obs = table[["drug", "plate"]].set_axis([f"c{i}" for i in range(300)])
    cells = anndata.AnnData(np.zeros((300, 2), np.float32), obs=obs, obsm={"emb": x[rows, :3], "other": x[rows]})
    made = nearid.deconfound(cells, "drug", "plate", key="emb", **options)
    assert np.array_equal(made.transform(cells, "base", key="emb"), whole)


def test_what_is_left_without_technical_components(screen, found):
    kept, base = found.conditions["kept_base"], found.conditions["base"]
    # Four of the twelve directions are gone; the columns are as many as before.
    assert np.linalg.matrix_rank(kept.condition.matrix) == base.width - 4 and kept.batch_r2 < 0.02 < base.batch_r2
    assert kept.mixing.value > base.mixing.value + 0.1 and kept.replicates.value > base.replicates.value
    assert found.to_dict()["conditions"]["kept_base"]["width"] == kept.width
    assert found.transform(screen[2][:9], "kept_base").shape == (9, base.width)


def test_directions_that_are_not_kept_are_told():
    rng = np.random.default_rng(0)
    labels, batches, x = np.tile(["a", "b"], 60), np.repeat(np.arange(4), 30), rng.normal(size=(120, 20))
    quick = {"classifiers": "logistic", "directions": "most", "folds": 2, "conditions": "pca", "top": ()}
    alerts = {n: nearid.deconfound(x, labels, batches, n_components=n, **quick).alerts for n in (None, 15)}
    (told,) = [alert.message for alert in alerts[None] if alert.code == "components"]
    assert "keep the 12 leading of 20 principal directions" in told and "fitted on 120 rows" in told
    assert not any(alert.code == "components" for alert in alerts[15])


def test_batch_metrics(found):
    pca, ica = found.conditions["pca"], found.conditions["ica"]
    # Distances and angles do not change with a rotation.
    assert ica.mixing.value == pytest.approx(pca.mixing.value, abs=1e-3)
    assert ica.replicates.value == pytest.approx(pca.replicates.value, abs=1e-3)
    assert pca.replicates.value > pca.replicates.chance and 0 < pca.mixing.value < 1
    assert 0.05 < ica.batch_r2 < 0.4


def test_options_that_decide_figures_are_recorded(rng):
    import pandas as pd

    x = pd.DataFrame(rng.laplace(size=(60, 3)), columns=["e0", "e1", "other"])
    given = {"control": "a", "features": "e*", "exclude": ["other"]}
    labels, batches = np.array(["a", "b"])[np.arange(60) % 2], np.arange(60) // 10
    less = {"conditions": "base", "classifiers": "logistic", "directions": "most", "folds": 2}
    options = nearid.deconfound(x, labels, batches, **less, **given).provenance["options"]
    assert {name: options[name] for name in given} == given


def test_the_result_tells_what_made_it_and_is_plain_data(found):
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["provenance"]["options"]["boosting"]["num_leaves"] == 31
    assert plain["conditions"]["ica"]["components"]["kinds"] == found.conditions["ica"].components.kinds
    assert len(found.to_frame()) == len(found.scores) == len(plain["scores"])
    assert found.test("base", "ica").difference.n == 2 and "recognised in new batches" in repr(found)
    assert {"moments", "whitening", "ICA", "components", "neighbours"} <= set(plain["provenance"]["seconds"])
    with pytest.raises(InputError, match="no score"):
        found.mean("base", "f1")
    with pytest.raises(InputError, match="no test"):
        found.test("ica", "base")


def test_the_same_seed_gives_the_same_figures(screen):
    _, drawn, x = screen
    options = {**QUICK, "conditions": "base", "directions": "one", "perturbations": 1}
    once, again = (nearid.deconfound(x[:600], NAMES[drawn.labels[:600]], drawn.batches[:600], **options) for _ in "ab")
    assert once.to_frame().equals(again.to_frame()) and len(once.perturbations) == 1


def test_without_lightgbm(screen, monkeypatch):
    _, drawn, x = screen
    monkeypatch.setattr("nearid.questions.deconfound.run.find_spec", lambda name: None)
    args = x[:300], NAMES[drawn.labels[:300]], drawn.batches[:300]
    options = {**QUICK, "conditions": "base", "directions": "most", "top": ()}
    made = nearid.deconfound(*args, **{**options, "classifiers": None})
    assert made.families == [("most", "logistic")] and "no_lightgbm" in {a.code for a in made.alerts}
    with pytest.raises(InputError, match=r"nearid\[boost\]"):
        nearid.deconfound(*args, **{**options, "classifiers": "boost"})


def test_boosting_and_what_it_cannot_split(screen):
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    _, drawn, x = screen
    rows = slice(0, 400)
    options = {
        **QUICK,
        "classifiers": "boost",
        "conditions": "base,ica",
        "perturbations": "a",
        "boosting": {"trees": 5},
    }
    made = nearid.deconfound(x[rows].astype(np.float32), NAMES[drawn.labels[rows]], drawn.batches[rows], **options)
    assert "no_splits" in {a.code for a in made.alerts}
    assert made.mean("base", direction="most").mean > 0.5
    # No split is no score: it was 0.5, as if all conditions were alike.
    assert np.isnan(made.mean("base", direction="one").mean)
    both = nearid.deconfound(
        x[:60], NAMES[drawn.labels[:60]], drawn.batches[:60], **{**options, "classifiers": None, "directions": "most"}
    )
    # What trees cannot say is not what comes first.
    assert both.families == [("most", "logistic"), ("most", "boost")]


def test_batches_are_not_taken_for_biology():
    # The drug does nothing, but is on plates of the second week alone; controls are on all.
    rng = np.random.default_rng(0)
    batches = rng.integers(0, 12, 1200)
    labels = np.where((batches > 5) & (rng.random(1200) < 0.5), "drug", "DMSO")
    x = rng.laplace(size=(1200, 3)) + np.outer(batches > 5, [2, 0, 0])
    made = nearid.deconfound(x, labels, batches, **{**QUICK, "top": ()}, conditions="base", directions="most")
    assert made.mean("base").mean > 0.65 and made.mean("base", "auroc_within").mean == pytest.approx(0.5, abs=0.05)
    assert "unlike_batches" in {a.code for a in made.alerts} and "AUROC within batches" in str(made)


def test_one_component_is_used(screen):
    _, drawn, x = screen
    options = {**QUICK, "top": (), "conditions": "base", "directions": "most"}
    made = nearid.deconfound(x[:300, :1], NAMES[drawn.labels[:300]], drawn.batches[:300], **options)
    assert "no_splits" not in {a.code for a in made.alerts} and np.isnan(made.mean("base", "sparsity").mean)


def test_bad_rows(screen):
    _, drawn, x = screen
    spoilt = x[:300].copy()
    spoilt[7, 2] = np.nan
    args = spoilt, NAMES[drawn.labels[:300]], drawn.batches[:300]
    options = {**QUICK, "conditions": "base", "directions": "most"}
    with pytest.raises(InputError, match=r"1 of \d+ columns \('2' \(1 value\)\) and 1 of 300 rows"):
        nearid.deconfound(*args, **options, nonfinite="refuse")
    made = nearid.deconfound(*args, **options)
    spoilt[drawn.labels[:300] == 0] = np.nan
    with pytest.raises(InputError, match="Every row of the control 'DMSO'"):
        nearid.deconfound(*args, **options, nonfinite="rows")
    assert made.n == 299 and "nonfinite" in {a.code for a in made.alerts}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"folds": 1}, "folds is 1, but a whole number of at least 2"),
        ({"directions": "both"}, "no direction named 'both'"),
        ({"drop": 1.5, "conditions": "ica"}, "takes 'auto', a number of components"),
        ({"drop": "x"}, "takes 'auto', a number of components .* not 'x'"),
        ({"n_components": 0}, "n_components is 0, but a whole number of at least 1"),
        ({"perturbations": 0}, "from 1 on"),
        ({"perturbations": -1}, "from 1 on"),
        ({"perturbations": []}, "takes names of labels"),
        ({"perturbations": 1.5}, "perturbations is 1.5, but a list"),
        ({"perturbations": "DMSO"}, "'DMSO' is the control"),
        ({"top": 5}, "top is 5, but a list"),
        ({"top": (1.5,)}, "each item a whole number"),
        ({"top": (9,)}, "half of the 12"),
        ({"top": (-1,)}, "half of the 12"),
        ({"min_rows": 9999}, "No label has 9999 rows: the most frequent one, .*Lower min_rows"),
    ],
)
def test_bad_options_are_told(screen, changes, told):
    _, drawn, x = screen
    options = {**QUICK, "conditions": "base", **changes}
    with pytest.raises(InputError, match=told):
        nearid.deconfound(x[:300], NAMES[drawn.labels[:300]], drawn.batches[:300], **options)


def test_numbers_may_be_labels(screen):
    _, drawn, x = screen
    options = {**QUICK, "top": (), "conditions": "base", "directions": "most"}
    for wanted in (np.int64(1), [2], "2"):
        options["control"], options["perturbations"] = 0, wanted
        made = nearid.deconfound(x[:300], drawn.labels[:300], drawn.batches[:300], **options)
        assert made.control == "0" and len(made.perturbations) == 1
