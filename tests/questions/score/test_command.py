"""`nearid score` as a user types it: table, JSON, report; a sentence for bad input."""

import json

import numpy as np
import pytest

from nearid import score


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    u = {"pan": rng.uniform(0, 360, n), "size": rng.laplace(size=n), "shape": rng.integers(0, 3, n)}
    angle = np.radians(u["pan"])
    z = np.column_stack([np.cos(angle), np.sin(angle), u["size"], u["shape"]]) @ rng.normal(size=(4, 4))
    np.save(tmp_path / "z.npy", z)
    lines = [f"{float(p)!r},{float(s)!r},{k}" for p, s, k in zip(*u.values(), strict=True)]
    (tmp_path / "u.csv").write_text("\n".join([",".join(u), *lines]))
    np.savez(tmp_path / "u.npz", **u)
    np.save(tmp_path / "u.npy", np.column_stack(list(u.values())))
    return z, u


@pytest.mark.parametrize("width", [80, 140])
def test_a_table(nearid, files, width):
    done = nearid("score", "z.npy", "u.npz", "--measures", "mcc,r2", "--periods", "pan=360", columns=width)
    assert done.returncode == 0 and done.stderr == ""
    for word in ("The true factors are recovered", "MCC", "R2, linear", "circular", "integer, 3 levels (inferred)"):
        assert word in " ".join(done.stdout.split()), word
    assert max(map(len, done.stdout.splitlines())) <= width and "…" not in done.stdout


def test_json_alone_on_stdout_and_a_report(nearid, files, tmp_path):
    z, u = files
    done = nearid(
        "score", "z.npy", "u.npz", "--measures", "mcc,r2,mig", "--periods", "pan=360", "--kinds", "shape=categorical",
        "--resolve", "ica", "--json", "--report", "out.html", "--seed", "4",
    )  # fmt: skip
    told = json.loads(done.stdout)
    direct = score(
        z, u, measures="mcc,r2,mig", periods={"pan": 360}, kinds={"shape": "categorical"}, resolve="ica", random_state=4
    )
    expected = direct.to_dict()
    assert told["measures"] == expected["measures"] and told["resolved"]["measures"] == expected["resolved"]["measures"]
    assert told["factors"]["shape"]["kind"] == "categorical" and not told["factors"]["shape"]["inferred"]
    assert "Report written to out.html" in done.stderr and "<svg" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_tables_and_arrays_agree(nearid, files):
    values = []
    for name in ("u.csv", "u.npz", "u.npy"):
        done = nearid("score", "z.npy", name, "--measures", "r2", "--json")
        assert done.returncode == 0, done.stderr
        values.append(json.loads(done.stdout)["measures"]["r2"]["value"])
    assert values[0] == pytest.approx(values[1], abs=1e-12) and values[1] == values[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("z.npy", "u.npz", "--measures", "mcc,fid"), "fid"),
        (("z.npy", "u.npz", "--periods", "pan"), "NAME=VALUE"),
        (("z.npy", "u.npz", "--periods", "pan=x"), "positive number such as 360"),
        (("z.npy", "u.npz", "--kinds", "colour=categorical"), "colour"),
        (("z.npy", "u.npz", "--kinds", "pan=categorical", "--kinds", "pan=integer"), "Leave out one"),
        (("z.npy", "u.npz", "--kinds", "pan=classes"), "not 'classes'"),
        (("z.npy", "nowhere.csv"), "nowhere.csv"),
        (("z.npy", "u.npz", "--report", "out.npy"), "something.html"),
        (("z.npy", "u.npz", "--resolve", "pca"), "ica"),
        (("z.npy", "u.npz", "--kinds", "pan=integer"), "Give it as continuous"),
        (("z.npy", "u.csv", "--ids", "cell"), "cell"),
    ],
)
def test_bad_arguments_get_a_sentence(refused, files, arguments, message):
    assert message in refused("score", *arguments)


def test_bad_files_get_a_sentence(refused, files, tmp_path):
    np.save(tmp_path / "short.npy", np.arange(14.0).reshape(7, 2))
    assert "300 rows" in refused("score", "z.npy", "short.npy")
    (tmp_path / "gap.csv").write_text("a,b\n" + "\n".join(f"{i},{i % 3}" if i != 5 else ",1" for i in range(300)))
    assert "row 5" in refused("score", "z.npy", "gap.csv")
    (tmp_path / "semi.csv").write_text("a;b\n" + "\n".join(f"{i}.5;{i % 3}" for i in range(300)))
    assert "Check that the cells are separated by" in refused("score", "z.npy", "semi.csv")
    (tmp_path / "slip.csv").write_text("a\n" + "\n".join("n/a?" if i == 7 else f"{i}.5" for i in range(300)))
    assert "'n/a?' at row 7" in refused("score", "z.npy", "slip.csv")
    (tmp_path / "empty.csv").write_text("a,b\n" + "\n".join(f"{'' if i == 9 else 'x'},{i}" for i in range(300)))
    assert "row 9" in refused("score", "z.npy", "empty.csv")
    (tmp_path / "latin.csv").write_bytes(b"gr\xf6\xdfe\n" + b"\n".join(b"%d.5" % i for i in range(300)))
    assert "not UTF-8" in refused("score", "z.npy", "latin.csv")
    np.save(tmp_path / "same.npy", np.ones((300, 2)))
    assert "constant" in refused("score", "z.npy", "same.npy")


def test_blocks_by_the_name_of_a_column(nearid, files, tmp_path):
    lines = (tmp_path / "u.csv").read_text().splitlines()
    rows = [f"{line},w{k % 30}" for k, line in enumerate(lines[1:])]
    (tmp_path / "wells.csv").write_text("\n".join([f"{lines[0]},well", *rows]))
    done = nearid("score", "z.npy", "wells.csv", "--measures", "r2", "--blocks", "well", "--ridge", "0", "--json")
    told = json.loads(done.stdout)
    assert set(told["factors"]) == {"pan", "size", "shape"} and told["provenance"]["options"]["blocks"] == "well"
    assert "new blocks of rows" in told["measures"]["r2"]["of"] and told["provenance"]["options"]["ridge"] == 0
