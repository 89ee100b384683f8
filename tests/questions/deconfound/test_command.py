"""`nearid deconfound` on files."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nearid.base.errors import InputError
from nearid.cli.commands import app

QUICK = ["--classifiers", "logistic", "--folds", "2", "--conditions", "base,ica", "--control", "DMSO", "--top", "1"]


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    labels, batches = rng.choice(["DMSO", "drug"], 160), rng.integers(0, 4, 160)
    x = rng.laplace(size=(160, 4)) + np.outer(labels == "drug", [3, 0, 0, 0])
    np.save(tmp_path / "x.npy", x)
    pd.DataFrame({"what": labels, "plate": batches}).to_parquet(tmp_path / "meta.parquet")
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, ["deconfound", *map(str, args)])


def test_json_and_report(files):
    meta = ["--meta", files / "meta.parquet", "--labels", "what", "--batches", "plate"]
    done = run(files / "x.npy", *meta, *QUICK, "--json", "--report", files / "out.html")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert set(told["conditions"]) == {"base", "ica"} and told["perturbations"]["drug"]["positives"] > 50
    assert (files / "out.html").is_file()
    table = run(files / "x.npy", *meta, *QUICK, "--directions", "most")
    assert table.exit_code == 0 and "AUROC within batches" in table.stdout and ": --all." in table.stdout
    assert len(table.stdout.splitlines()) <= 40 and "AUROC (logistic regression" not in table.stdout
    every = run(files / "x.npy", *meta, *QUICK, "--directions", "most", "--all")
    assert every.exit_code == 0 and "AUROC (logistic regression" in every.stdout and ": --all." not in every.stdout


def test_blocks_are_a_column_of_the_same_table(files):
    meta = pd.read_parquet(files / "meta.parquet")
    meta.assign(well=np.arange(160) // 2 % 3).to_parquet(files / "wells.parquet")
    named = ["--meta", files / "wells.parquet", "--labels", "what", "--batches", "plate"]
    done = run(files / "x.npy", *named, *QUICK, "--blocks", "well", "--directions", "most", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    # Three names on each of four plates.
    assert told["provenance"]["blocks"] == 12 and told["provenance"]["fitted_rows"] == 12
    assert next(a["message"] for a in told["alerts"] if a["code"] == "few_blocks").startswith("There are 12 blocks")


def test_unknown_columns_are_told(files):
    done = run(files / "x.npy", "--meta", files / "meta.parquet", "--labels", "waht", "--batches", "plate", *QUICK)
    assert isinstance(done.exception, InputError) and "Did you mean 'what'" in str(done.exception)


@pytest.mark.parametrize("none", ["0", ""])
def test_options_with_a_form_of_their_own(files, none):
    meta = ["--meta", files / "meta.parquet", "--labels", "what", "--batches", "plate", "--directions", "most"]
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    quick = ["--conditions", "base", "--classifiers", "boost", "--folds", "2", "--perturbations", "1", "--top", none]
    boosting = ["--boosting", "trees=3", "--boosting", "learning_rate=0.1", "--boosting", "is_unbalance=False"]
    done = run(files / "x.npy", *meta, *quick, *boosting, "--seed", "3", "--json")
    options = json.loads(done.stdout)["provenance"]["options"]
    assert (options["top"], options["perturbations"], options["random_state"]) == ([], 1, 3)
    assert {name: options["boosting"][name] for name in ("trees", "learning_rate", "is_unbalance")} == {
        "trees": 3,
        "learning_rate": 0.1,
        "is_unbalance": False,
    }
    for option, message in ((["--top", "five"], "numbers separated by commas"), (["--boosting", "x"], "NAME=VALUE")):
        done = run(files / "x.npy", *meta, *option)
        assert isinstance(done.exception, InputError) and message in str(done.exception)
