"""Going on from a part: only with the data, ids, weights and functions that it was made with."""

import errno
import json

import numpy as np
import pytest
import torch
from torch import nn

from nearid import InputError, extract
from nearid.questions.extract import store
from nearid.questions.extract.store import file_stems


def test_files_are_plain_distinct_and_leave_reserved_names():
    stems = file_stems(["a/b", "a b", "A_b", "ids", "../../etc", "relu#2", "x" * 300])
    assert len({s.lower() for s in stems.values()}) == 7
    assert stems["relu#2"] == "relu#2" and stems["ids"] == "ids_2"
    assert not any("/" in s or s.startswith(".") for s in stems.values())
    assert max(map(len, stems.values())) <= 124


X = np.arange(160, dtype=np.float32).reshape(40, 4)


class Stopping(nn.Linear):
    """Is interrupted when it has seen some batches."""

    left, factor = 3, 1.0

    def forward(self, input):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return self.factor * super().forward(input)


def stopped(out, data, **options):
    """A model whose extraction was stopped after two batches."""
    model = Stopping(4, 3)
    with pytest.raises(KeyboardInterrupt):
        extract(model, data, out=out, batch_size=10, **options)
    model.left = 100
    return model


@pytest.mark.parametrize("form", ["npy", "zarr", "safetensors", "parquet"])
def test_a_part_that_lacks_its_end_alone_is_of_its_own_data(tmp_path, monkeypatch, form):
    model, options = nn.Linear(4, 3), {"out": tmp_path / "out", "format": form}
    ready = store.Part.finish

    def full(self, rows, about):
        if self.final.stem == "ids":
            raise OSError(errno.ENOSPC, "No space left on device")
        ready(self, rows, about)

    monkeypatch.setattr(store.Part, "finish", full)
    with pytest.raises(InputError, match="The rows of 40 inputs are kept"):
        extract(model, X, **options)
    monkeypatch.setattr(store.Part, "finish", ready)
    other = X.copy()
    other[39] += 1
    with pytest.raises(InputError, match="the first 40 inputs, or their ids, have changed"):
        extract(model, other, **options)
    found = extract(model, X, **options)
    with torch.no_grad():
        np.testing.assert_allclose(found["output"].read(0, 40), model(torch.tensor(X)), rtol=1e-5)
    assert found.provenance["data"]["sha256"] == extract(model, X).provenance["data"]["sha256"]


def test_a_whole_part_is_not_taken_for_longer_data(tmp_path, monkeypatch):
    model = nn.Linear(4, 3)
    monkeypatch.setattr(store.Part, "finish", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(InputError, match="kept"):
        extract(model, iter(X.reshape(4, 10, 4)), out=tmp_path / "out")
    monkeypatch.undo()
    with pytest.raises(InputError, match="there are more inputs than before"):
        extract(model, iter(np.concatenate([X, X]).reshape(8, 10, 4)), out=tmp_path / "out")


def test_ids_that_come_with_batches_are_those_of_before(tmp_path):
    def batches(shift):
        return [{"input": x, "ids": np.arange(10) + 10 * at + shift} for at, x in enumerate(X.reshape(4, 10, 4))]

    model = stopped(tmp_path / "out", batches(0))
    with pytest.raises(InputError, match="or their ids, have changed"):
        extract(model, batches(1000), out=tmp_path / "out", batch_size=10)
    found = extract(model, batches(0), out=tmp_path / "out", batch_size=10)
    assert found["output"].ids.tolist() == list(range(40))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_functions_and_numbers_beside_the_weights_are_those_of_before(tmp_path, dtype):
    options = {"batch_size": 10, "dtype": dtype, "out": tmp_path / "out"}
    model = stopped(tmp_path / "out", X, pool=lambda x, mask: x, dtype=dtype)
    with pytest.raises(InputError, match="inputs, the model or the pool function have changed"):
        extract(model, X, pool=lambda x, mask: -x, **options)
    model.factor = 2.0
    with pytest.raises(InputError, match="inputs, the model or the pool function have changed"):
        extract(model, X, pool=lambda x, mask: x, **options)
    model.factor = 1.0
    rows = extract(model, X, pool=lambda x, mask: x, **options)["output"].read(0, 40)
    np.testing.assert_array_equal(rows, extract(model, X, batch_size=10, dtype=dtype)["output"].read(0, 40))


def test_a_folder_with_files_of_others_is_not_replaced(tmp_path):
    model, out = nn.Linear(4, 3), tmp_path / "out"
    extract(model, X, out=out)
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match=r"also contains thesis\.txt, which extract did not write"):
        extract(model, X, out=out, overwrite=True)
    assert (out / "thesis.txt").exists()
    (out / "extraction.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="not a folder of extracted layers"):
        extract(model, X, out=out, overwrite=True)
    assert (out / "thesis.txt").exists()


@pytest.mark.parametrize("note", [None, "not JSON", "[" * 100_000, '{"identity": {}}'])
@pytest.mark.parametrize("strange", ["thesis.txt", ".hidden", "notes", "ids.npy"])
def test_a_part_with_files_of_others_is_not_removed(tmp_path, note, strange):
    model, part = stopped(tmp_path / "out", X), tmp_path / "out.partial"
    if note is not None:
        (part / "progress.json").write_text(note)
    if strange == "ids.npy":
        (part / strange).unlink()
    if strange in ("notes", "ids.npy"):
        (part / strange).mkdir()
        (part / strange / "mine").write_text("mine")
    else:
        (part / strange).write_text("mine")
    before = sorted(part.rglob("*"))
    with pytest.raises(InputError, match=f"exists and holds {strange}, which this extraction did not write"):
        extract(model, X, out=tmp_path / "out", batch_size=10, restart=True)
    assert sorted(part.rglob("*")) == before


def test_a_part_of_other_layers_and_what_a_killed_run_left_can_be_begun_anew(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), Stopping(3, 2))
    with pytest.raises(KeyboardInterrupt):
        extract(model, X, out=tmp_path / "out", batch_size=10, layers=["0", "1"], format="zarr")
    (tmp_path / "out.partial" / ".progress.json.ab12_c.nearid-part").write_text("")
    model[1].left = 100
    extract(model, X, out=tmp_path / "out", batch_size=10, layers=["1"], restart=True)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["1.npy", "extraction.json", "ids.npy"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_others_put_beside_a_failing_part_stays(tmp_path):
    class Failing(nn.Linear):
        def forward(self, input):
            if (tmp_path / "out.partial").exists():
                (tmp_path / "out.partial" / "mine.txt").write_text("mine")
                raise KeyboardInterrupt
            return super().forward(input)

    with pytest.raises(KeyboardInterrupt):
        extract(Failing(4, 3), X, out=tmp_path / "out", batch_size=10)
    assert [p.name for p in (tmp_path / "out.partial").iterdir()] == ["mine.txt"]


def test_folders_of_others_beside_the_one_that_is_replaced_stay(tmp_path):
    model, out, own = nn.Linear(4, 3), tmp_path / "out", tmp_path / ".out.old"
    extract(model, X, out=out)
    own.mkdir()
    (own / "thesis.txt").write_text("mine")
    assert extract(model, X[:20], out=out, overwrite=True)["output"].shape == (20, 3)
    assert (own / "thesis.txt").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == [".out.old", "out"]


class Tokens(Stopping):
    """A network of (n, 5, 4) tokens that is interrupted after some batches."""


MASK = np.tril(np.ones((5, 5), int))[np.arange(8) % 5]
TOKENS = np.random.default_rng(0).normal(size=(8, 5, 4)).astype(np.float32)


def tokens(model, out=None, **options):
    given = {"mask": MASK, "pool": "tokens", "batch_size": 2, "out": out, **options}
    return extract(model, TOKENS, **given)


@pytest.mark.parametrize("form", ["npy", "zarr", "safetensors", "parquet"])
@pytest.mark.parametrize("ids", [None, [f"text {at}" for at in range(8)]], ids=["numbers", "text"])
def test_the_input_of_every_token_is_written_and_kept_when_a_run_goes_on(tmp_path, contents, form, ids):
    torch.manual_seed(3)
    model = Tokens(4, 3)
    with pytest.raises(KeyboardInterrupt):
        tokens(model, tmp_path / "out", ids=ids, format=form)
    assert (tmp_path / "out.partial" / "blocks.npy").exists()
    model.left = 100
    found = tokens(model, tmp_path / "out", ids=ids, format=form)
    assert [alert.code for alert in found.alerts] == ["resumed"]
    expected = np.repeat(np.arange(8) if ids is None else ids, MASK.sum(axis=1)).tolist()
    assert found["output"].blocks.tolist() == expected
    assert tokens(model, ids=ids)["output"].blocks.tolist() == expected
    whole = tokens(model, tmp_path / "whole", ids=ids, format=form)
    assert whole["output"].blocks.tolist() == expected
    assert contents(tmp_path / "out")["blocks.npy"] == contents(tmp_path / "whole")["blocks.npy"]
    # The folder may be replaced like any other.
    tokens(model, tmp_path / "out", ids=ids, format=form, overwrite=True)


def test_rows_of_one_input_each_have_no_blocks(tmp_path):
    found = extract(nn.Linear(4, 3), X, out=tmp_path / "out")
    assert found["output"].blocks is None and not (tmp_path / "out" / "blocks.npy").exists()


def test_a_part_from_before_there_were_blocks_is_not_taken_up(tmp_path):
    model, out = Tokens(4, 3), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        tokens(model, out)
    model.left, part = 100, tmp_path / "out.partial"
    (part / "blocks.npy").unlink()
    note = json.loads((part / "progress.json").read_text())
    del note["identity"]["blocks"]
    (part / "progress.json").write_text(json.dumps(note))
    with pytest.raises(InputError, match="restart=True"):
        tokens(model, out)
    assert tokens(model, out, restart=True)["output"].blocks is not None


def test_a_layer_named_blocks_has_a_file_of_its_own(tmp_path):
    model = nn.Sequential()
    model.add_module("blocks", nn.Linear(4, 3))
    found = tokens(model, tmp_path / "out", layers="blocks")
    assert found.provenance["layers"]["blocks"]["file"] == "blocks_2.npy"
    n = int(MASK.sum())
    np.testing.assert_array_equal(found["blocks"].read(0, n), tokens(model, layers="blocks")["blocks"].read(0, n))
