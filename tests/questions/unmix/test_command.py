"""`nearid unmix` as a user types it: files, table, JSON, report; Ctrl-C and going on; a sentence for bad input."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nearid import ICA
from nearid.ica.estimators import IdentifiabilityWarning

WRITTEN = ["components.npy", "model.json", "model.safetensors"]


@pytest.fixture
def x(tmp_path):
    rng = np.random.default_rng(0)
    s = np.hstack([rng.laplace(size=(4000, 3)), rng.uniform(-1, 1, size=(4000, 2)), rng.normal(size=(4000, 2))])
    x = (s @ rng.normal(size=(7, 7))).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    return x


@pytest.mark.parametrize("width", [80, 140])
def test_a_table_and_the_files(nearid, x, tmp_path, width):
    done = nearid("unmix", "x.npy", "-o", "out", columns=width)
    assert done.returncode == 0 and done.stderr.strip() == "Components and model written to out"
    for word in (
        "7 components",
        "cannot be distinguished from Gaussian",
        "super-Gaussian",
        "sub-Gaussian",
        "rank: 7 of 7",
    ):
        assert word in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= width and "…" not in done.stdout
    assert sorted(os.listdir(tmp_path / "out")) == WRITTEN
    with pytest.warns(IdentifiabilityWarning, match="2 of 7 components"):
        fitted = ICA().fit(x)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "components.npy"), fitted.transform(x))


def test_json_alone_on_stdout_and_a_report(process, x, tmp_path):
    done = process("unmix", "x.npy", "-o", "out", "--json", "--report", "out.html")
    told = json.loads(done.stdout)
    assert told["diagnostics"]["converged"] and told["diagnostics"]["components"] == 7
    assert sum(told["diagnostics"]["gaussian"]) == 2 and [a["code"] for a in told["alerts"]] == ["gaussian"]
    assert told["provenance"]["inputs"][0]["shape"] == [4000, 7]
    assert "Report written to out.html" in done.stderr and "<svg" in (tmp_path / "out.html").read_text()


def test_a_report_may_go_into_the_new_folder(nearid, x, tmp_path):
    assert nearid("unmix", "x.npy", "-o", "out", "--report", "out/page.html", "--quiet").stderr == ""
    assert sorted(os.listdir(tmp_path / "out")) == [*WRITTEN, "page.html"]


def test_options_reach_the_fit(nearid, x, tmp_path):
    done = nearid(
        "unmix", "x.npy", "-o", "out", "--json", "--n-components", "3", "--no-whiten", "--contrast", "exp", "--tol",
        "1e-3", "--max-passes", "77", "--seed", "9", "--format", "zarr",
    )  # fmt: skip
    options = json.loads(done.stdout)["provenance"]["options"]
    expected = {"n_components": 3, "whiten": False, "contrast": "exp", "tol": 1e-3, "max_passes": 77, "random_state": 9}
    assert {k: options[k] for k in expected} == expected
    assert (tmp_path / "out" / "components.zarr").is_dir()


def test_a_fit_that_did_not_converge_says_so(process, x):
    done = process("unmix", "x.npy", "-o", "out", "--max-passes", "2")
    assert done.returncode == 0 and "The fit did not converge" in done.stdout and "Warning" not in done.stderr


def test_ids_are_kept_beside_the_components(nearid, x, tmp_path):
    import pandas as pd

    names = [f"c{k}" for k in range(len(x))]
    pd.DataFrame(x).add_prefix("f").assign(cell=names).to_parquet(tmp_path / "x.parquet")
    assert nearid("unmix", "x.parquet", "-o", "out", "--ids", "cell").returncode == 0
    assert np.load(tmp_path / "out" / "components.ids.npy", allow_pickle=False).tolist() == names


def test_a_finished_model_is_kept(nearid, refused, x, tmp_path):
    nearid("unmix", "x.npy", "-o", "out")
    before = (tmp_path / "out" / "model.json").read_bytes()
    assert "--overwrite" in refused("unmix", "x.npy", "-o", "out", "--seed", "3")
    assert (tmp_path / "out" / "model.json").read_bytes() == before
    assert nearid("unmix", "x.npy", "-o", "out", "--seed", "3", "--overwrite").returncode == 0
    assert (tmp_path / "out" / "model.json").read_bytes() != before


PROGRAM = "from nearid.cli.app import main; main()"
# A fit that waits once its first passes are written, so that no machine is too fast or too busy to interrupt it there.
WAITING = """
import pathlib, time
from nearid.questions.unmix.run import Keeper
flush, flushed = Keeper.flush, []
def wait(self):
    first = not flushed
    # Before the file is there: a signal may come while it is still being written, and the way out flushes again.
    flushed.append(self)
    flush(self)
    if first:
        pathlib.Path("waits").touch()
        time.sleep(300)
Keeper.flush = wait
"""
LONG_FIT = ("unmix", "x.npy", "-o", "out", "--tol", "1e-7")


@pytest.fixture
def many_rows(tmp_path):
    """Rows whose fit takes some seconds, in x.npy."""
    rng = np.random.default_rng(1)
    x = rng.laplace(size=(150_000, 24)) @ rng.normal(size=(24, 24))
    np.save(tmp_path / "x.npy", x)
    return x


def until(process, file):
    while process.poll() is None and not file.exists():
        time.sleep(0.005)


def interrupt(folder, *args, signals=(signal.SIGINT,), apart=0.05, program=WAITING + PROGRAM):
    """Run the command, send signals once a checkpoint is there, or once the fit waits; gives exit code and output."""
    command = [sys.executable, "-c", program, *args]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(process, folder / "waits" if program.startswith(WAITING) else folder / "out" / "checkpoint.safetensors")
    for number in signals:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(apart)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_keeps_the_passes_and_the_same_command_goes_on(nearid, refused, many_rows, tmp_path):
    code, out, err = interrupt(tmp_path, *LONG_FIT)
    assert code == 130 and out == "" and "Traceback" not in err
    assert "interrupted" in err and "run the same command again" in err
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    assert "contrast was 'logcosh', now 'exp'" in refused("unmix", "x.npy", "-o", "out", "--contrast", "exp")
    goes_on(nearid, tmp_path)
    undisturbed = ICA(tol=1e-7).fit(many_rows).transform(many_rows)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "components.npy"), undisturbed, atol=1e-4)


def goes_on(nearid, folder):
    """The same command takes up what an interrupted one has left."""
    done = nearid(*LONG_FIT)
    assert done.returncode == 0 and "Continuing after" in done.stderr
    assert sorted(os.listdir(folder / "out")) == WRITTEN


def test_ctrl_c_twice_leaves_a_fit_that_goes_on(nearid, many_rows, tmp_path):
    code, out, err = interrupt(tmp_path, *LONG_FIT, signals=(signal.SIGINT, signal.SIGINT))
    assert code == 130 and out == "" and "Traceback" not in err
    # Where the second one comes after more than a second, on a busy machine, the sentence is another.
    assert err.startswith("nearid: interrupted") and len(err.splitlines()) == 1
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    goes_on(nearid, tmp_path)


# A disk so slow that the second Ctrl-C comes while the last passes are being written.
SLOW_DISK = """
import pathlib, time
from nearid.questions.unmix.run import Keeper
flush, flushed = Keeper.flush, []
def slowly(self):
    if flushed:
        time.sleep(300)
    # Before the file is there: the first signal may come while it is still being written.
    flushed.append(self)
    flush(self)
Keeper.flush = slowly
"""


def test_a_second_ctrl_c_ends_at_once_and_leaves_a_fit_that_goes_on(nearid, many_rows, tmp_path):
    # On a busy machine the first may be noticed late, and the second one taken for the same.
    signals = [signal.SIGINT] * 20
    code, out, err = interrupt(tmp_path, *LONG_FIT, signals=signals, apart=1.5, program=SLOW_DISK + PROGRAM)
    assert code == 130 and out == "" and "Traceback" not in err and "interrupted again, and stopped at once" in err
    assert (tmp_path / "out" / "checkpoint.safetensors").is_file()
    goes_on(nearid, tmp_path)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals here")
def test_a_terminal_that_is_closed_leaves_a_fit_that_goes_on(nearid, many_rows, tmp_path):
    import fcntl
    import termios

    ours, theirs = os.openpty()

    def own_terminal():
        # Whoever runs the tests may have asked to go on without a terminal (nohup), which children inherit.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    # The terminal shows the bar, and errors are kept: what is written to a closed one is lost.
    with open(tmp_path / "said.txt", "w") as said:
        command = [sys.executable, "-X", "faulthandler", "-c", WAITING + PROGRAM, *LONG_FIT]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=said, preexec_fn=own_terminal
        )
    os.close(theirs)
    until(process, tmp_path / "waits")
    os.close(ours)
    assert process.wait(timeout=60) == 129
    assert "Traceback" not in (tmp_path / "said.txt").read_text()
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    goes_on(nearid, tmp_path)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["y.npy", "-o", "out"], "There is no file named 'y.npy'"),
        (["x.npy"], "Missing option"),
        (["x.npy", "-o", "no/such/out"], "There is no folder"),
        (["x.npy", "-o", "x.npy"], "would damage the input"),
        (["x.npy", "-o", "note.txt"], "is a file, but a model is a folder"),
        (["x.npy", "-o", "out", "--n-components", "0"], "n_components is 0, but a whole number of at least 1"),
        (["x.npy", "-o", "out", "--tol", "0"], "tol is 0.0, but a number above 0 is expected"),
        (["x.npy", "-o", "out", "--max-passes", "0"], "max_passes is 0, but a whole number of at least 1"),
        (["x.npy", "-o", "out", "--seed", "-1"], "random_state (--seed) is -1"),
        (["x.npy", "-o", "out", "--contrast", "tanh"], "tanh"),
        (["x.npy", "-o", "out", "--format", "csv"], "csv"),
        (["x.npy", "-o", "out", "--report", "out.pdf"], "name it something.html"),
        (["x.npy", "-o", "out", "--report", "link.html"], "name it something.html, not x.npy"),
        (["x.npy", "-o", "out.html", "--report", "./out.html"], "give the report another name"),
        (["x.npy", "-o", "out", "--key", "a"], "without named parts"),
        (["nan.npy", "-o", "out"], "nan at row 17, column 3"),
        (["constant.npy", "-o", "out"], "nothing to unmix"),
    ],
)
def test_bad_input_gets_a_sentence(refused, x, tmp_path, args, words):
    (tmp_path / "note.txt").write_text("mine")
    (tmp_path / "link.html").symlink_to("x.npy")
    np.save(tmp_path / "constant.npy", np.ones((50, 3)))
    x[17, 3] = np.nan
    np.save(tmp_path / "nan.npy", x)
    assert words in refused("unmix", *args)
    assert not (tmp_path / "out").exists()


def test_bad_input_has_exit_code_2(process, x):
    done = process("unmix", "x.npy", "-o", "out", "--tol", "0")
    assert done.returncode == 2 and done.stderr.startswith("nearid: tol is 0.0") and done.stdout == ""


def test_nonfinite_rows_are_left_out_on_request(nearid, x, tmp_path):
    x[17, 3] = np.nan
    np.save(tmp_path / "x.npy", x)
    assert (
        json.loads(nearid("unmix", "x.npy", "-o", "out", "--drop-nonfinite", "--json").stdout)["diagnostics"]["rows"]
        == 3999
    )
    assert np.isnan(np.load(tmp_path / "out" / "components.npy")).any(axis=1).nonzero()[0].tolist() == [17]
