"""--features and --exclude, in every command that reads tables."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nearid.cli.commands import app

torch = pytest.importorskip("torch")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(160, 3))
    labels, plates = rng.choice(["DMSO", "drug"], 160), rng.integers(0, 4, 160)
    x[:, 0] += 3 * (labels == "drug")
    frame = pd.DataFrame(x, columns=["f1", "f2", "f3"]).assign(cell_id=range(160), site=np.arange(160) % 4)
    frame.to_csv("x.csv", index=False)
    frame.assign(drug=labels, week=plates).to_parquet("all.parquet")
    np.save("u.npy", x)
    np.save("head.npy", rng.normal(size=(9, 3)))
    torch.manual_seed(0)
    torch.save(torch.nn.Linear(3, 4).state_dict(), "decoder.pt")
    (tmp_path / "my_column_decoders.py").write_text(
        "from torch import nn\ndef decoder():\n    return nn.Linear(3, 4)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return lambda *args: CliRunner().invoke(app, list(args))


QUICK = ("--classifiers", "logistic", "--folds", "2", "--conditions", "base", "--top", "0", "--directions", "most")
COMMANDS = {
    "compare": ("compare", "x.csv", "u.npy", "--json"),
    "score": ("score", "x.csv", "u.npy", "--measures", "r2", "--permutations", "1", "--json"),
    "deconfound": ("deconfound", "all.parquet", "--labels", "drug", "--batches", "week", *QUICK, "--json"),
    "heads": ("heads", "head.npy", "head.npy", "x.csv", "x.csv", "--json"),
    "lipschitz": (
        "lipschitz",
        "decoder.pt",
        "x.csv",
        "--factory",
        "my_column_decoders:decoder",
        "--points",
        "20",
        "--json",
    ),
}
# Heads and decoders take so many features, and no more.
FIXED = ("heads", "lipschitz")


@pytest.mark.parametrize("command", COMMANDS)
def test_metadata_are_told_and_left_out(run, command):
    args = COMMANDS[command]
    if command not in FIXED:
        found = json.loads(run(*args).stdout)
        (told,) = [a["message"] for a in found["alerts"] if a["code"] == "metadata_columns"]
        left_out = command in ("deconfound", "unmix")
        assert ("left out: 'cell_id'" if left_out else "--exclude cell_id,site)") in told
    for chosen in (("--exclude", "cell_id,site"), ("--features", "f?")):
        done = run(*args, *chosen)
        assert done.exit_code == 0, done.output
        assert "metadata_columns" not in done.stdout
    done = run(*args, "--exclude", "cell_di")
    assert done.exit_code != 0 and "Did you mean 'cell_id'" in str(done.exception or done.output)


def test_unmix_and_apply(run):
    done = run("unmix", "x.csv", "-o", "measured", "--json")
    (alert,) = [a for a in json.loads(done.stdout)["alerts"] if a["code"] == "metadata_columns"]
    assert done.exit_code == 0 and "left out: 'cell_id'" in alert["message"] and "'site'" in alert["message"]
    assert run("unmix", "x.csv", "-o", "all", "--features", "*").exit_code == 0
    done = run("unmix", "x.csv", "-o", "model", "--exclude", "cell_id,site", "--json")
    assert done.exit_code == 0 and "metadata_columns" not in done.stdout
    done = run("apply", "model", "x.csv", "-o", "s.npy", "--features", "f*")
    assert done.exit_code == 0
    np.testing.assert_array_equal(np.load("s.npy"), np.load("model/components.npy"))
    np.testing.assert_array_equal(np.load("s.npy"), np.load("measured/components.npy"))
    assert np.load("all/components.npy").shape[1] == np.load("s.npy").shape[1] + 2
    # The columns of the fit are chosen by name from a table that has more.
    assert run("apply", "model", "x.csv", "-o", "t.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("t.npy"), np.load("s.npy"))
    done = run("apply", "all", "x.csv", "-o", "v.npy", "--exclude", "site")
    assert done.exit_code != 0 and "columns, but the fit used" in str(done.exception)
