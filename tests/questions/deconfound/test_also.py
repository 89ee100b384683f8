"""Corrected embeddings of other packages: paired, judged on the same splits, and refused where they do not fit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import nearid
from nearid import InputError
from nearid.cli.commands import app
from nearid.questions.deconfound.standing import standings
from nearid.show.terminal import text

# A drawn screen (nearid.lab.processes.microscopy: seed 0, 12 columns, 8 plates), and its 12 principal components after
# harmonypy 2.1.0 (run_harmony by plate, 10 iterations, random_state 0), which is no dependency of nearid.
HARMONY = Path(__file__).with_name("harmony.csv")
QUICK = {
    "control": "DMSO",
    "folds": 3,
    "classifiers": "logistic",
    "top": (),
    "directions": "most",
    "conditions": "base",
}


@pytest.fixture(scope="module")
def screen():
    data = np.loadtxt(HARMONY, delimiter=",", skiprows=1)
    labels, plates = data[:, :2].astype(int).T
    return data[:, 2:14], np.array(["DMSO", "a", "b"])[labels], plates, data[:, 14:]


@pytest.fixture(scope="module")
def judged(screen):
    x, labels, plates, harmony = screen
    # What is left of the rows is a tenth, beside noise.
    noise = np.random.default_rng(0).normal(size=harmony.shape)
    return nearid.deconfound(x, labels, plates, **QUICK, also={"harmony": harmony, "destroyed": 0.1 * harmony + noise})


def test_harmony_is_judged_beside_base(judged):
    assert list(judged.conditions) == ["base", "harmony", "destroyed"]
    base, harmony = judged.conditions["base"], judged.conditions["harmony"]
    assert harmony.mixing.value > base.mixing.value + 0.05 and harmony.width == 12
    assert judged.mean("harmony").mean > 0.85 and judged.test("base", "harmony").difference.n == 2
    told = {alert.code: alert.message for alert in judged.alerts}
    assert told["transductive"].startswith("harmony, destroyed: a correction that was computed from all rows has seen")
    assert judged.provenance["options"]["also"] == ["harmony", "destroyed"]
    assert len(judged.provenance["inputs"]) == 3
    with pytest.raises(InputError, match="harmony is no map of single rows"):
        judged.transform(np.zeros((3, 12)), "harmony")


def test_a_destructive_correction_loses(judged):
    assert judged.mean("destroyed").mean < 0.7
    told = [a.message for a in judged.alerts if a.code == "loses_biology" and a.message.startswith("destroyed")]
    assert len(told) == 1
    assert "mixes batches better" in told[0] and "but it loses biology compared with Base: AUROC" in told[0]
    verdicts = {s.condition: s.verdict for s in standings(judged)}
    assert verdicts["destroyed"] == "mixes batches better, but loses biology"
    assert "loses biology" in " ".join(str(judged).split())
    assert "Gain and loss against Base" in text(judged.view, everything=True)


def test_the_same_rows_give_the_same_figures(screen):
    # One number divides all columns, so columns of unit variance are those of "base".
    x, labels, plates, _ = screen
    made = nearid.deconfound(x, labels, plates, **QUICK, also={"scaled": 3 + 7 * (x - x.mean(0)) / x.std(0)})
    base, scaled = (made.conditions[name] for name in ("base", "scaled"))
    assert made.mean("scaled").mean == pytest.approx(made.mean("base").mean, abs=1e-4)
    assert scaled.mixing.value == pytest.approx(base.mixing.value, abs=1e-3)
    assert scaled.replicates.value == pytest.approx(base.replicates.value, abs=1e-3)
    assert made.neighbours[0].difference.value == pytest.approx(0, abs=1e-3)
    assert not [a for a in made.alerts if a.code == "loses_biology"]


def test_an_unchanged_embedding_ties_with_base_exactly(screen):
    """Columns of very different sizes: what is compared must be scaled alike."""
    x, labels, plates, _ = screen
    x = x * np.logspace(-1, 2, x.shape[1])
    made = nearid.deconfound(x, labels, plates, **QUICK, also={"same": x.copy(), "turned": x[:, ::-1].copy()})
    test = made.test("base", "same")
    assert test.difference.value == 0 and made.mean("same").values == made.mean("base").values
    base, same, turned = (made.conditions[name] for name in ("base", "same", "turned"))
    assert same.mixing.value == base.mixing.value and same.replicates.value == base.replicates.value
    # In other columns the distances stay as they were given.
    assert np.ptp(turned.condition.scales) == 0


def test_rows_are_paired_by_id_and_rows_without_a_label_are_left_out(screen):
    x, labels, plates, harmony = screen
    ids = [f"w{i}" for i in range(len(x))]
    table = pd.DataFrame(x, index=ids).assign(drug=labels, plate=plates)
    table.loc["w3", "drug"] = None
    turned = pd.DataFrame(harmony, index=ids).iloc[::-1]
    made = nearid.deconfound(table, "drug", "plate", **QUICK, also={"turned": turned, "array": harmony})
    assert made.n == len(x) - 1
    assert made.mean("turned").mean == pytest.approx(made.mean("array").mean, abs=1e-6)
    with pytest.raises(InputError, match=r"also 'part' lacks 299 of the 799 rows"):
        nearid.deconfound(table, "drug", "plate", **QUICK, also={"part": turned.iloc[:500]})
    with pytest.raises(InputError, match="as many as are used"):
        nearid.deconfound(
            table.reset_index(drop=True).to_numpy()[:, :12].astype(float),
            table.drug.to_numpy(),
            plates,
            **QUICK,
            also={"part": harmony[1:]},
        )


def test_metadata_of_a_table_are_no_features(screen, tmp_path):
    x, labels, plates, harmony = screen
    table = pd.DataFrame(harmony, columns=[f"h{k}" for k in range(12)]).assign(plate=plates, Metadata_site=plates % 2)
    table.to_csv(tmp_path / "h.csv", index=False)
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(12)]).assign(drug=labels, plate=plates)
    made = nearid.deconfound(frame, "drug", "plate", **QUICK, also={"h": tmp_path / "h.csv"})
    assert made.conditions["h"].width == 12


def test_entries_of_anndata(screen, tmp_path):
    anndata = pytest.importorskip("anndata")
    x, labels, plates, harmony = screen
    obs = pd.DataFrame({"drug": labels, "plate": plates.astype(str)}, index=[f"c{i}" for i in range(len(x))])
    cells = anndata.AnnData(obs=obs, obsm={"X_emb": x, "X_harmony": harmony})
    made = nearid.deconfound(cells, "drug", "plate", **QUICK, key="X_emb", also={"harmony": "X_harmony"})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = nearid.deconfound(
        tmp_path / "cells.h5ad", "drug", "plate", **QUICK, key="X_emb", also={"harmony": "X_harmony"}
    )
    assert again.mean("harmony").mean == made.mean("harmony").mean and made.conditions["harmony"].width == 12
    with pytest.raises(InputError, match="X_scvi"):
        nearid.deconfound(cells, "drug", "plate", **QUICK, key="X_emb", also={"scvi": "X_scvi"})


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("pca", lambda z: z, "gives the name 'pca', which nearid uses itself"),
        ("tvn", lambda z: z, "such as 'my_tvn'"),
        ("", lambda z: z, "takes a name for each"),
        ("z", lambda z: z[:-1], "800 rows and z has 799"),
        ("z", lambda z: np.where(np.arange(800)[:, None] == 5, np.nan, z), "NaN or an infinity in 1 of 800 rows"),
        ("z", lambda z: np.ones_like(z), "also 'z' is constant"),
        ("z", lambda z: "nowhere.npy", "names 'nowhere.npy', but there is no such file"),
    ],
)
def test_what_does_not_fit_is_refused(screen, name, change, told):
    x, labels, plates, harmony = screen
    with pytest.raises(InputError, match=told):
        nearid.deconfound(x, labels, plates, **QUICK, also={name: change(harmony)})


def test_on_the_command_line(screen, tmp_path):
    x, labels, plates, harmony = screen
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "z.npy", harmony)
    pd.DataFrame({"drug": labels, "plate": plates}).to_csv(tmp_path / "meta.csv", index=False)
    given = ["--meta", tmp_path / "meta.csv", "--labels", "drug", "--batches", "plate", "--control", "DMSO"]
    quick = ["--classifiers", "logistic", "--folds", "2", "--directions", "most", "--conditions", "base,centre"]
    also = ["--also", f"harmony={tmp_path / 'z.npy'}", "--also", f"twice={tmp_path / 'z.npy'}"]
    done = CliRunner().invoke(app, ["deconfound", *map(str, [tmp_path / "x.npy", *given, *quick, *also, "--json"])])
    assert done.exit_code == 0, done.output
    assert all(f'"{name}"' in done.stdout for name in ("base", "centre", "harmony", "twice"))
