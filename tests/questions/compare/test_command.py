"""`nearid compare` as a user types it: tables, JSON, reports, and a helpful sentence with exit code 2 for bad input."""

import json
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest
import zarr
from safetensors.numpy import save_file


@pytest.fixture
def runs(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(300, 4))
    y = (x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 0.01 * rng.normal(size=(300, 4))).astype(np.float32)
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "b.npy", y)
    return x, y


def test_a_table_with_the_verdict_on_stdout(process, runs):
    done = process("compare", "a.npy", "b.npy")
    assert done.returncode == 0 and done.stderr == ""
    for word in ("up to a rigid motion", "permutation", "rigid", "linear", "chance", "R2", "CCA", "a.npy -> b.npy"):
        assert word in done.stdout


def test_json_alone_on_stdout(process, runs, tmp_path):
    done = process("compare", "a.npy", "b.npy", "--json", "--in-sample", "--symmetric", "--report", "out.html")
    plain = json.loads(done.stdout)
    assert plain["verdict"]["group"] == "rigid" and plain["n"] == 300 and plain["dims"] == [4, 4]
    assert plain["in_sample"]["rigid"]["epsilon"]["value"] < plain["groups"]["rigid"]["epsilon"]["chance"]
    assert plain["reverse"]["verdict"]["group"] == "rigid"
    assert "Report written to out.html" in done.stderr and "<svg" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_options_reach_the_comparison(nearid, runs):
    done = nearid(
        "compare", "a.npy", "b.npy", "--json", "--groups", "rigid,linear", "--folds", "3", "--no-translation",
        "--no-scale", "--ridge", "0.5", "--svcca-k", "2", "--seed", "9",
    )  # fmt: skip
    options = json.loads(done.stdout)["provenance"]["options"]
    expected = {"groups": ["rigid", "linear"], "folds": 3, "translation": False, "scale": False, "ridge": 0.5}
    assert {k: options[k] for k in expected} == expected
    assert options["svcca_k"] == 2 and options["random_state"] == 9


def test_three_runs_are_a_table_of_pairs(nearid, runs, tmp_path):
    np.save(tmp_path / "c.npy", np.random.default_rng(1).normal(size=(300, 4)))
    done = nearid("compare", "a.npy", "b.npy", "c.npy")
    assert done.returncode == 0 and done.stdout.count("none (not at all)") == 2
    assert "3 pairs of runs: 1 agrees up to a rigid motion, 2 agree up to no group" in done.stdout
    assert len(json.loads(nearid("compare", "a.npy", "b.npy", "c.npy", "--json").stdout)["pairs"]) == 3


def test_every_format_gives_the_same_answer(nearid, runs, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    _, y = runs
    np.savez(tmp_path / "y.npz", emb=y, other=np.arange(3))
    save_file({"emb": y}, tmp_path / "y.safetensors")
    torch = pytest.importorskip("torch")
    torch.save({"emb": torch.from_numpy(y)}, tmp_path / "y.pt")
    with h5py.File(tmp_path / "y.h5", "w") as f:
        f["emb"] = y
    zarr.save_array(str(tmp_path / "y.zarr"), y)
    pq.write_table(pa.table({f"f{k}": y[:, k] for k in range(4)}), tmp_path / "y.parquet")
    np.savetxt(tmp_path / "y.csv", y, delimiter=",", header="f0,f1,f2,f3", comments="", fmt="%.9g")
    base = json.loads(nearid("compare", "a.npy", "b.npy", "--json").stdout)["groups"]["linear"]["epsilon"]["value"]
    for name in ("y.npz", "y.safetensors", "y.pt", "y.h5", "y.zarr", "y.parquet", "y.csv"):
        done = nearid("compare", "a.npy", name, "--json")
        assert done.returncode == 0, (name, done.stderr)
        assert json.loads(done.stdout)["groups"]["linear"]["epsilon"]["value"] == pytest.approx(base, rel=1e-6), name


def test_rows_are_paired_by_an_id_column(nearid, runs, tmp_path):
    import pandas as pd

    x, y = runs
    order = np.random.default_rng(2).permutation(300)
    pd.DataFrame(x).add_prefix("f").assign(cell=[f"c{k}" for k in range(300)]).to_csv(tmp_path / "x.csv", index=False)
    shuffled = pd.DataFrame(y[order]).add_prefix("f").assign(cell=[f"c{k}" for k in order])
    shuffled.iloc[:250].to_parquet(tmp_path / "y.parquet")
    done = nearid("compare", "x.csv", "y.parquet", "--ids", "cell", "--json")
    plain = json.loads(done.stdout)
    assert plain["n"] == 250 and plain["verdict"]["group"] == "rigid"
    assert any("50 of the 300 rows" in a["message"] for a in plain["alerts"])


def bad(tmp_path, kind):
    """Make a bad second input; gives its name and what the message must say."""
    x = np.random.default_rng(0).normal(size=(300, 4))
    path = tmp_path / "bad.npy"
    if kind == "missing":
        return "b.npz", "b.npy"
    if kind == "pickle":
        (tmp_path / "bad.pkl").write_bytes(pickle.dumps(x))
        return "bad.pkl", "pickle"
    if kind == "object array":
        np.save(path, np.array([{}] * 3, dtype=object), allow_pickle=True)
        return "bad.npy", "object"
    if kind == "truncated":
        path.write_bytes((tmp_path / "a.npy").read_bytes()[:5000])
        return "bad.npy", "truncated"
    if kind == "lying header":
        with open(path, "wb") as f:
            np.lib.format.write_array_header_1_0(f, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 4)})
        return "bad.npy", "declares the shape"
    if kind == "1-D":
        np.save(path, x[:, 0])
        return "bad.npy", "reshape(-1, 1)"
    if kind == "3-D":
        np.save(path, x.reshape(300, 2, 2))
        return "bad.npy", "reshape(len(x), -1)"
    if kind == "rows":
        np.save(path, x[:299])
        return "bad.npy", "300 rows"
    if kind == "nan":
        x[17, 3] = np.nan
        np.save(path, x)
        return "bad.npy", "nan at row 17, column 3"
    if kind == "empty":
        np.save(path, x[:0])
        return "bad.npy", "at least 2 rows"
    if kind == "single":
        np.save(path, x[:1])
        return "bad.npy", "at least 2 rows"
    if kind == "constant":
        np.save(path, np.ones((300, 4)))
        return "bad.npy", "Every column of bad.npy is constant"
    if kind == "strings":
        np.save(path, np.full((300, 4), "a"))
        return "bad.npy", "str"
    if kind == "suffix":
        (tmp_path / "bad.doc").write_text("x")
        return "bad.doc", ".parquet"
    raise AssertionError(kind)


KINDS = "missing,pickle,object array,truncated,lying header,1-D,3-D,rows,nan,empty,single,constant,strings,suffix"


@pytest.mark.parametrize("kind", KINDS.split(","))
def test_bad_inputs_get_a_sentence_and_exit_code_2(nearid, runs, tmp_path, kind):
    name, words = bad(tmp_path, kind)
    done = nearid("compare", "a.npy", name, "--json", "--report", "out.html")
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and done.stderr.startswith("nearid: ") and words in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "out.html").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["a.npy"], "Two runs or more"),
        (["a.npy", "b.npy", "--groups", "affine"], "permutation, rigid, linear"),
        (["a.npy", "b.npy", "--folds", "1"], "between 2 and 255"),
        (["a.npy", "b.npy", "--folds", "151"], "too few for 151 folds"),
        (["a.npy", "b.npy", "--report", "no/such/out.html"], "There is no folder"),
        (["a.npy", "b.npy", "--ids", "cell"], "cell"),
        (["a.npy", "b.npy", "--report", "a.npy"], "name it something.html"),
        (["a.npy", "b.npy", "--report", "/dev/null"], "name it something.html"),
        (["a.npy", "b.npy", "--seed", "-1"], "--seed"),
        (["a.npy", "b.npy", "--groups", "ica"], "not part of the ladder"),
        (["a.npy", "b.npy", "--fold", "3"], "No such option"),
    ],
)
def test_bad_options_get_a_sentence_and_exit_code_2(nearid, runs, args, words):
    done = nearid("compare", *args)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_nonfinite_rows_are_dropped_on_request(nearid, runs, tmp_path):
    name, _ = bad(tmp_path, "nan")
    plain = json.loads(nearid("compare", "a.npy", name, "--drop-nonfinite", "--json").stdout)
    assert plain["n"] == 299 and any("1 of 300 pairs of rows" in a["message"] for a in plain["alerts"])


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize(("many", "groups"), [(False, "permutation,rigid,linear"), (True, "all"), (False, "all")])
def test_tables_are_never_cut(nearid, runs, tmp_path, width, many, groups):
    names = ["a.npy", "b.npy"]
    if many:
        np.save(tmp_path / "a_rather_long_name_of_a_third_run.npy", runs[0] + 1)
        names.append("a_rather_long_name_of_a_third_run.npy")
    done = nearid("compare", *names, "--in-sample", "--symmetric", "--groups", groups, columns=width)
    assert done.returncode == 0 and "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width
    for word in ("permutation", "rigid", "linear", "nearly", *(["ICA", "100%"] if groups == "all" else [])):
        assert word in done.stdout


def test_a_key_is_for_the_files_that_have_entries(nearid, runs, tmp_path):
    np.savez(tmp_path / "b.npz", one=runs[1], two=runs[1] * 2)
    assert "--key one" in nearid("compare", "a.npy", "b.npz").stderr
    assert nearid("compare", "a.npy", "b.npz", "--key", "two").returncode == 0


def test_a_full_disk_and_a_closed_pipe(process, runs):
    with open("/dev/full", "w") as full:
        done = process("compare", "a.npy", "b.npy", stdout=full)
    assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr


def test_an_interrupt_is_told(runs, tmp_path):
    code = "import nearid.cli.app as a, signal as s; a._run = lambda: s.raise_signal(s.SIGINT); a.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 130 and "interrupted; nothing was written" in done.stderr
