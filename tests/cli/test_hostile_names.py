"""Names from files of others, in every command: none of them moves, colours or clears the terminal."""

import os
import pty
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

# It moves the cursor, sets the title, rings, colours in two ways, turns the letters, and begins a line of its own. It
# is also markup and the code of a picture.
EVIL = "\x1b[66;6H\x1b]0;t\x07\x9b35m\u202e[red]:smile:\x08\r\n! owned"
# As a file may be called.
FILE = EVIL.replace("/", "") + ".npy"


def harmful(output):
    """What of `EVIL` a terminal would obey."""
    marks = ["\x1b[66", "\x1b]", "\x07", "\x9b", "\u202e", "\x08", "\N{SMILING FACE WITH OPEN MOUTH AND SMILING EYES}"]
    found = [mark for mark in marks if mark in output]
    lines = output.splitlines()
    # A sentence may be broken between "!" and "owned", as a name has a space there.
    pairs = zip(["", *lines], lines, strict=False)
    own = [line for before, line in pairs if line.startswith("owned") and not before.rstrip().endswith("!")]
    return found + own + [line for line in lines if line.startswith("! owned")]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files with evil names in them, and with such names."""
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(120, 3))
    labels = np.array(["DMSO", EVIL])[np.arange(120) % 2]
    columns = [f"{EVIL}{k}" for k in range(3)]
    frame = pd.DataFrame(x, columns=columns).assign(**{f"{EVIL} id": np.arange(120)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    frame.assign(drug=labels, plate=[f"{EVIL}{k}" for k in np.arange(120) // 20]).to_parquet(
        tmp_path / "plates.parquet"
    )
    frame.assign(kind=labels).to_parquet(tmp_path / "factors.parquet")
    np.save(tmp_path / FILE, x)
    np.save(tmp_path / "u.npy", x)
    np.save(tmp_path / "head.npy", rng.normal(size=(9, 3)))
    np.savez(tmp_path / "two.npz", **{EVIL: x, f"{EVIL}2": x})
    np.savez(tmp_path / "one.npz", **{EVIL: x})
    (tmp_path / "my_evil_nets.py").write_text(
        "from torch import nn\n"
        "def net():\n"
        "    made = nn.Sequential()\n"
        f"    made.add_module({EVIL.replace('.', '')!r}, nn.Linear(3, 4))\n"
        "    return made\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    torch.manual_seed(0)
    weights = torch.nn.Linear(3, 4).state_dict()
    torch.save({f"{EVIL}.{name}": tensor for name, tensor in weights.items()}, tmp_path / "net.pt")
    return tmp_path


NET = ("--factory", "my_evil_nets:net")
QUICK = ("--classifiers", "logistic", "--folds", "2", "--conditions", "base,ica", "--top", "0", "--directions", "most")
# Arguments of every command, and its exit code.
CALLS = [
    (("compare", FILE, "x.csv"), 0),
    (("compare", "x.csv", "x.parquet", "--json"), 0),
    (("compare", "two.npz", "u.npy"), 2),
    (("compare", f"two.npz:{EVIL}", "u.npy"), 0),
    (("compare", "two.npz:other", "u.npy"), 2),
    (("compare", "x.csv", "u.npy", "--exclude", "other"), 2),
    (("compare", "x.csv", "u.npy", "--ids", EVIL), 2),
    (("compare", "x.csv", "u.npy", f"--{EVIL}"), 2),
    (("compare", f"no {EVIL}", "u.npy"), 2),
    (("compare", "u.npy", "u.npy", "--report", f"{EVIL}.html"), 0),
    (("layers", f"no {EVIL}"), 2),
    (("layers", "two.npz"), 2),
    (("layers", "net.pt", "net.pt", "--data", FILE, "--no-cache", "--permutations", "1", *NET), 0),
    (("layers", "net.pt", "net.pt", "--data", FILE, "--layers", "other", *NET), 2),
    (("extract", "net.pt", "u.npy", "-o", f"out {EVIL}", *NET), 0),
    (("extract", "net.pt", "two.npz", "-o", "out", *NET), 2),
    (("extract", "net.pt", "u.npy", "-o", "out", "--layers", "other", *NET), 2),
    (("heads", "head.npy", "head.npy", FILE, "u.npy"), 0),
    (("heads", "two.npz", "head.npy", "x.csv", "x.csv"), 2),
    (("score", FILE, "factors.parquet", "--measures", "mcc,r2", "--permutations", "1"), 0),
    (("score", "u.npy", "factors.parquet", "--kinds", "other=none"), 2),
    (("unmix", "x.csv", "-o", f"ica {EVIL}"), 0),
    (("unmix", "two.npz", "-o", "ica"), 2),
    (("apply", f"no {EVIL}", "u.npy", "-o", "s.npy"), 2),
    (("lipschitz", "net.pt", FILE, *NET, "--points", "20"), 0),
    (("lipschitz", "net.pt", "two.npz", *NET), 2),
    (("deconfound", "plates.parquet", "--labels", "drug", "--batches", "plate", *QUICK), 0),
    (("deconfound", "plates.parquet", "--labels", "drug", "--batches", "other"), 2),
    (("deconfound", "plates.parquet", "--labels", "drug", "--batches", "plate", "--control", "other"), 2),
    (("reproduce", EVIL), 2),
    (("reproduce", "contrastive-box", "--preset", "smoke", "--show", "--set", f"{EVIL}=1"), 2),
    (("demo", "--out", f"no {EVIL}/page.html"), 2),
    (("data", "list"), 0),
    (("data", "path", EVIL), 2),
    (("data", "fetch", "mnist", "--from", EVIL), 2),
    ((EVIL,), 2),
]


@pytest.mark.parametrize(("call", "code"), CALLS, ids=[f"{n} {call[0]!a:.12}" for n, (call, _) in enumerate(CALLS)])
def test_no_command_sends_what_a_name_holds(files, nearid, monkeypatch, call, code):
    if call == ("data", "list"):
        (files / EVIL.replace("/", "") / "mnist").mkdir(parents=True)
        monkeypatch.setenv("NEARID_DATA", str(files / EVIL))
    done = nearid(*call, columns=80)
    assert done.returncode == code, done.stderr
    assert harmful(done.stdout + done.stderr) == []


def test_apply_with_evil_names(files, nearid):
    assert nearid("unmix", "x.csv", "-o", "ica", "--exclude", f"{EVIL} id").returncode == 0
    for call in (("x.csv", "-o", "s.npy"), ("u.npy", "-o", f"s {EVIL}.npy"), ("two.npz", "-o", "t.npy")):
        done = nearid("apply", "ica", *call)
        assert harmful(done.stdout + done.stderr) == []
        assert done.returncode == (0 if call[0] != "two.npz" else 2), done.stderr


def test_a_name_is_shown_all_the_same(files, nearid):
    assert "[red]:smile:" in nearid("compare", FILE, "u.npy").stdout
    assert "[red]:smile:" in nearid("compare", "two.npz", "u.npy").stderr


@pytest.mark.parametrize("call", [("compare", FILE, "x.csv"), ("compare", "two.npz", "u.npy"), ("--x\x1b[66;6H",)])
def test_in_a_real_terminal(files, call):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from nearid.cli.app import main; main()", *call]
    running = subprocess.Popen(command, cwd=files, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        # The other end is closed when the process ends.
        pass
    running.wait(timeout=120)
    os.close(ours)
    assert shown and harmful(shown.decode()) == []
