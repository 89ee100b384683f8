"""Inputs that mean harm or bring trouble: code in files, values that are not finite, disks without room, kills."""

import errno
import io
import itertools
import json
import os
import resource
import signal
import time
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from nearid import Extraction, InputError, extract
from nearid.arrays import open_rows
from nearid.base import resume
from nearid.base.files import alone_in
from nearid.questions.extract import store


@pytest.mark.parametrize("as_data", [False, True])
@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_checkpoint_is_never_run(tmp_path, monkeypatch, payload, zipped, as_data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_nets.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(2, 3)\n")
    marker = tmp_path / "ran"
    torch.save({"weight": torch.ones(3, 2), "x": payload(marker)}, "evil.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(InputError, match="never unpickles"):
        if as_data:
            extract(nn.Linear(2, 3), "evil.pt", out="out")
        else:
            extract("evil.pt", np.zeros((4, 2)), factory="evil_nets:make", out="out")
    assert not marker.exists() and not (tmp_path / "out").exists() and not (tmp_path / "out.partial").exists()


def test_objects_in_arrays_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="holds Python objects"):
        extract(nn.Linear(2, 3), tmp_path / "x.npy")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named_and_leave_nothing(tmp_path, rng, value):
    x = rng.normal(size=(40, 4)).astype(np.float32)
    x[33, 1] = value
    model = nn.Sequential(nn.Identity(), nn.Linear(4, 3))
    with pytest.raises(InputError, match=r"The layer 0 gave (nan|inf) for input 33 \(id 'r33'\), column 1"):
        extract(model, x, ids=[f"r{i}" for i in range(40)], out=tmp_path / "out", batch_size=8)
    assert list(tmp_path.iterdir()) == []
    kept = extract(model, x, out=tmp_path / "out", keep_nonfinite=True)
    assert np.isfinite(kept["0"].read(0, 40)).sum() == 159
    with pytest.raises(InputError, match="larger numbers than float16 holds"):
        extract(model, np.full((4, 4), 1e6), dtype="float16")


@pytest.fixture
def small_files():
    """Files of this process cannot grow beyond so many bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("form", ["npy", "safetensors", "zarr", "parquet"])
def test_a_full_disk_leaves_nothing(tmp_path, rng, small_files, form):
    x = rng.normal(size=(4000, 4)).astype(np.float32)
    small_files(20_000)
    with pytest.raises(InputError, match=r"Could not write .*out: File too large .*Nothing was left behind"):
        extract(nn.Linear(4, 8), x, out=tmp_path / "out", format=form)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_what_is_safe_and_the_same_call_goes_on(tmp_path, rng, small_files, monkeypatch, contents):
    x = rng.normal(size=(4000, 4)).astype(np.float32)
    model = nn.Linear(4, 8)
    extract(model, x, out=tmp_path / "whole")
    monkeypatch.setattr(store, "SECONDS", 0.0)
    small_files(20_000)
    with pytest.raises(InputError, match=r"The rows of 512 inputs are kept in .*out\.partial"):
        extract(model, x, out=tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.partial", "whole"]
    # What is there is no file that anything opens.
    with pytest.raises(InputError):
        open_rows(tmp_path / "out.partial" / "output.npy")
    small_files(resource.RLIM_INFINITY)
    extract(model, x, out=tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole") and not (tmp_path / "out.partial").exists()


def test_nothing_is_written_after_a_batch_that_could_not_be(tmp_path, rng, monkeypatch, contents):
    """Batches that wait for the disk when one before them fails must not be taken for what comes next."""
    x = rng.normal(size=(80, 4)).astype(np.float32)
    model = nn.Linear(4, 3)
    extract(model, x, out=tmp_path / "whole", batch_size=8)
    monkeypatch.setattr(store, "SECONDS", 0.0)
    ready = store.Store.put

    def failing(self, *batch):
        if self.inputs == 40 and not failed:
            failed.append(True)
            time.sleep(0.1)  # meanwhile the next batches come
            raise OSError(errno.ENOSPC, "No space left on device")
        ready(self, *batch)

    failed = []
    monkeypatch.setattr(store.Store, "put", failing)
    with pytest.raises(OSError, match="No space"):
        extract(model, x, out=tmp_path / "out", batch_size=8)
    extract(model, x, out=tmp_path / "out", batch_size=8)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_disk_that_fills_up_while_progress_is_noted_is_told_too(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(store, "SECONDS", 0.0)
    ready = resume.write_text

    def full(path, text):
        if next(count) > 2:
            raise InputError(f"Could not write {path}") from OSError(errno.ENOSPC, "No space left on device")
        ready(path, text)

    count = itertools.count()
    monkeypatch.setattr(resume, "write_text", full)
    with pytest.raises(InputError, match=r"out: No space left .* The rows of 16 inputs are kept in .*out\.partial"):
        extract(nn.Linear(4, 3), rng.normal(size=(80, 4)), out=tmp_path / "out", batch_size=8)


def test_sizes_that_a_file_only_claims_are_told(tmp_path):
    """An archive of some bytes that promises terabytes, and an array that is shorter than its header says."""
    header = io.BytesIO()
    told = {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)}
    np.lib.format.write_array_header_1_0(header, told)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    (tmp_path / "x.npy").write_bytes(header.getvalue() + bytes(100))
    # numpy goes by what a file begins with, not by its name.
    (tmp_path / "z.npy").write_bytes((tmp_path / "x.npz").read_bytes())
    with pytest.raises(InputError, match=r"x declares the shape \(1000000, 1000000\) \(4 TB\) but holds 0 bytes"):
        extract(nn.Linear(2, 3), tmp_path / "x.npz")
    for name, words in (("x", r"x\.npy declares the shape .* but holds 100 bytes"), ("z", r"z\.npy is not a whole")):
        with pytest.raises(InputError, match=words):
            extract(nn.Linear(2, 3), tmp_path / f"{name}.npy")


def test_no_room_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(store.shutil, "disk_usage", lambda _: os.terminal_size((0, 0)) and type("U", (), {"free": 100}))
    with pytest.raises(InputError, match=r"needs 4.8 kB of disk space, but 100 bytes are free"):
        extract(nn.Linear(2, 10), np.zeros((100, 2)), out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


class Slow(nn.Sequential):
    """Takes its time, for a while."""

    wait = 0.0

    def forward(self, x):
        time.sleep(self.wait)
        return super().forward(x)


def test_killed_and_resumed_equals_undisturbed(tmp_path, rng, contents, monkeypatch):
    monkeypatch.setattr(store, "SECONDS", 0.0)
    model, x = Slow(nn.Linear(4, 8), nn.Tanh()), rng.normal(size=(600, 4)).astype(np.float32)

    def run(out):
        extract(model, x, out=tmp_path / out, batch_size=20)

    child = os.fork()
    if child == 0:
        try:
            model.wait = 0.2
            run("out")
        finally:
            os._exit(1)
    progress, deadline = tmp_path / "out.partial" / "progress.json", time.monotonic() + 200
    while time.monotonic() < deadline:
        if progress.exists() and json.loads(progress.read_text())["state"]["inputs"] >= 60:
            break
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert 60 <= json.loads(progress.read_text())["state"]["inputs"] < 600
    run("out")
    run("whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole") and not (tmp_path / "out.partial").exists()


class Stopping(nn.Linear):
    """Is interrupted when it has seen some batches."""

    left = 0

    def forward(self, x):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return super().forward(x)


@pytest.fixture
def interrupted(tmp_path):
    """A part of 3 batches of 10, and the model and data it is of."""
    model, x = Stopping(4, 3), np.arange(400, dtype=np.float32).reshape(100, 4)
    model.left = 4  # the first is the probe
    with pytest.raises(KeyboardInterrupt):
        extract(model, x, out=tmp_path / "out", batch_size=10)
    assert json.loads((tmp_path / "out.partial" / "progress.json").read_text())["state"]["inputs"] == 30
    model.left = 100
    return model, x


def test_rows_that_become_zarr_are_taken_up_too(tmp_path, contents):
    model, x = Stopping(4, 3), np.arange(400, dtype=np.float32).reshape(100, 4)
    for left in (4, 3, 100):
        model.left = left
        try:
            extract(model, x, out=tmp_path / "out", batch_size=10, format="zarr")
        except KeyboardInterrupt:
            continue
    extract(model, x, out=tmp_path / "whole", batch_size=10, format="zarr")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_an_interruption_is_taken_up(tmp_path, interrupted):
    model, x = interrupted
    found = extract(model, x, out=tmp_path / "out", batch_size=10)
    assert [a.message for a in found.alerts] == [
        "This run continued an earlier one, which had written the rows of the first 30 inputs."
    ]
    # The probe and the seven batches that were left.
    assert model.left == 92 and found["output"].shape == (100, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 20}, "batch_size was 10, now 20"),
        ({"pool": "flatten"}, "pool was 'mean', now 'flatten'"),
        ({"weights": True}, "model was "),
        ({"data": True}, "the first 30 inputs, or their ids, have changed"),
        ({"ids": range(1, 101)}, "the first 30 inputs, or their ids, have changed"),
        ({"damage": "{"}, "cannot be read as the note of a part of an extraction"),
        ({"damage": '{"identity": 5, "state": {}}'}, "it does not say of what"),
        ({"damage": "[" * 100_000}, "cannot be read as the note of a part of an extraction"),
        ({"state": {"inputs": "30"}}, "progress.json is damaged"),
        ({"state": {"inputs": -30}}, "progress.json is damaged"),
        ({"state": {"rows": -1}}, "progress.json is damaged"),
    ],
)
def test_a_part_of_something_else_is_not_taken_up(tmp_path, interrupted, change, message):
    model, x = interrupted
    options = {"batch_size": 10} | change
    if options.pop("weights", False):
        nn.init.zeros_(model.bias)
    if options.pop("data", False):
        x = x.copy()
        x[7, 2] += 1
    note, damage, state = (
        tmp_path / "out.partial" / "progress.json",
        options.pop("damage", None),
        options.pop("state", {}),
    )
    if state:
        held = json.loads(note.read_text())
        damage = json.dumps({**held, "state": {**held["state"], **state}})
    if damage is not None:
        note.write_text(damage)
    with pytest.raises(InputError, match=message):
        extract(model, x, out=tmp_path / "out", **options)
    assert (tmp_path / "out.partial").exists()
    found = extract(model, x, out=tmp_path / "out", restart=True, **options)
    assert found["output"].shape == (100, 3) and sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_two_processes_do_not_write_one_folder(tmp_path, interrupted):
    model, x = interrupted
    with alone_in(tmp_path / "out.partial"), pytest.raises(InputError, match="Another process is at work"):
        extract(model, x, out=tmp_path / "out", batch_size=10)
    assert (tmp_path / "out.partial" / "output.npy").exists()


def test_batches_that_are_gone_through_again(tmp_path):
    model, x = Stopping(4, 3), np.arange(160, dtype=np.float32).reshape(4, 10, 4)
    model.left = 3
    with pytest.raises(KeyboardInterrupt):
        extract(model, iter(x), out=tmp_path / "out")
    model.left = 100
    for other in (x[:1], x[::-1]):
        with pytest.raises(InputError, match=r"have changed\. Start again"):
            extract(model, iter(other), out=tmp_path / "out")
    found = extract(model, iter(x), out=tmp_path / "out")["output"]
    direct = extract(model, x.reshape(40, 4), batch_size=10)["output"]
    np.testing.assert_array_equal(found.read(0, 40), direct.read(0, 40))


def test_trouble_with_the_data_is_not_taken_for_trouble_with_the_disk(tmp_path):
    def batches():
        yield np.zeros((4, 2), np.float32)
        raise FileNotFoundError("page 7 is missing")

    with pytest.raises(FileNotFoundError, match="page 7"):
        extract(nn.Linear(2, 3), batches(), out=tmp_path / "out")


def test_nothing_is_written_over_unasked(tmp_path, rng):
    model, x = nn.Linear(4, 3), rng.normal(size=(20, 4))
    out = tmp_path / "out"
    extract(model, x, out=out)
    with pytest.raises(InputError, match="--overwrite"):
        extract(model, x, out=out)
    bad = x.copy()
    bad[3] = np.nan
    with pytest.raises(InputError, match="nan for input 3"):
        extract(model, bad, out=out, overwrite=True)
    assert Extraction.open(out)["output"].shape == (20, 3)
    assert extract(model, x[:10], out=out, overwrite=True)["output"].shape == (10, 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("")
    (tmp_path / "new.partial").mkdir()
    (tmp_path / "new.partial" / "mine.txt").write_text("")
    for name, message in (
        ("other", "not a folder of extracted layers"),
        ("new", "new.partial exists and holds mine.txt"),
        ("x.npy", "written to a folder"),
        ("no/where", "There is no folder"),
    ):
        with pytest.raises(InputError, match=message):
            extract(model, x, out=tmp_path / name, overwrite=True)
    assert (other / "mine.txt").exists() and (tmp_path / "new.partial" / "mine.txt").exists()
    # Neither is a folder with a note of somebody's own that has the name of ours.
    (tmp_path / "new.partial" / "progress.json").write_text('{"epoch": 3}')
    with pytest.raises(InputError, match=r"new\.partial exists and holds"):
        extract(model, x, out=tmp_path / "new", restart=True)
    assert (tmp_path / "new.partial" / "mine.txt").exists()


def test_data_that_are_refused_late_leave_safe_rows_and_say_so(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(store, "SECONDS", 0.0)
    model, x = nn.Linear(4, 3), rng.normal(size=(80, 4)).astype(np.float32)
    bad = x.copy()
    bad[70] = np.nan
    with pytest.raises(InputError, match=r"nan for input 70 .* The rows of 64 inputs are kept in .*out\.partial"):
        extract(model, bad, out=tmp_path / "out", batch_size=8)
    # With the input mended the same call goes on; so it does with batches of another shape.
    found = extract(model, x, out=tmp_path / "out", batch_size=8)
    np.testing.assert_array_equal(found["output"].read(0, 80), extract(model, x, batch_size=8)["output"].read(0, 80))
    ragged = [x[:40].reshape(2, 5, 16), x[:20].reshape(1, 5, 16), rng.normal(size=(2, 7, 16))]
    with pytest.raises(InputError, match=r"it stopped at .* The rows of [0-9]+ inputs are kept in .*new\.partial"):
        extract(nn.Sequential(nn.Flatten(), nn.Linear(80, 3)), ragged, out=tmp_path / "new")


def test_inputs_out_of_reach_are_refused_in_a_sentence(tmp_path):
    os.symlink("x.npy", tmp_path / "x.npy")
    for data, told in (("~nobody_x/x.npy", "there is no home folder of that name"), (tmp_path / "x.npy", "x.npy")):
        with pytest.raises(InputError, match=told):
            extract(nn.Linear(4, 4), data, out=tmp_path / "out")


def test_a_folder_that_holds_the_inputs_is_not_replaced(tmp_path, rng):
    model, x = nn.Linear(4, 4), rng.normal(size=(20, 4)).astype(np.float32)
    extract(model, x, out=tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for options in ({"data": tmp_path / "out" / "output.npy"}, {"data": x, "ids": tmp_path / "out" / "ids.npy"}):
        with pytest.raises(InputError, match=r"would be replaced, but it contains the input .*npy"):
            extract(model, **options, out=tmp_path / "out", overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_mask_to_be_added_is_refused():
    """It would pool the padding."""

    class Tokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(10, 4)

        def forward(self, input_ids, attention_mask=None):
            return self.embed(input_ids)

    ids, kept = np.arange(10).reshape(2, 5), np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    for mask in (np.where(kept, 0.0, -1e9), np.where(kept, 1, -1), np.where(kept, 1.0, np.nan)):
        with pytest.raises(InputError, match="values other than 1"):
            extract(Tokens(), {"input_ids": ids, "attention_mask": mask}, pool="mean")
