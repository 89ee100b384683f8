"""Inputs in every form give the same batches and the same hash; what is no input is told."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from nearid.base.errors import InputError
from nearid.questions.extract.batches import DataHash, open_source, peeked


def taken(source, size=4):
    digest = DataHash()
    found, ids = [], []
    for batch in source.batches(size):
        digest.update(batch)
        found.append(next(iter(batch.arrays.values())).numpy())
        ids.append(batch.ids)
    return np.concatenate(found), np.concatenate(ids), digest.hexdigest()


def test_every_form_gives_the_same(tmp_path, rng):
    x = rng.normal(size=(11, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, other=x[:, :1])
    save_file({"x": x}, tmp_path / "x.safetensors")
    torch.save(torch.tensor(x), tmp_path / "x.pt")
    forms = [
        (x, {}),
        (torch.tensor(x), {}),
        (x.tolist(), {}),
        (tmp_path / "x.npy", {}),
        (tmp_path / "x.npz", {"key": "x"}),
        (tmp_path / "x.safetensors", {"key": "x"}),
        (tmp_path / "x.pt", {}),
        ([x[:5], x[5:]], {}),
        (((part, None) for part in (x[:2], x[2:])), {}),
        (TensorDataset(torch.tensor(x), torch.zeros(11)), {"size": 3}),
        (DataLoader(TensorDataset(torch.tensor(x)), batch_size=6), {}),
    ]
    hashes = set()
    for data, options in forms:
        found, ids, digest = taken(open_source(data, **options))
        np.testing.assert_allclose(found, x, rtol=1e-6)
        np.testing.assert_array_equal(ids, np.arange(11))
        if found.dtype == np.float32:
            hashes.add(digest)
    assert len(hashes) == 1
    assert taken(open_source(x[::-1]))[2] not in hashes


def test_masks_and_ids(tmp_path):
    tokens, mask = np.arange(12).reshape(4, 3), np.ones((4, 3), int)
    names = np.array(["a", "b", "c", "d"])
    np.savez(tmp_path / "t.npz", input_ids=tokens, attention_mask=mask, names=names)
    source = open_source(tmp_path / "t.npz", ids="names")
    batch = next(source.batches(3))
    assert sorted(batch.arrays) == ["attention_mask", "input_ids"] and batch.ids.tolist() == ["a", "b", "c"]
    np.save(tmp_path / "mask.npy", mask)
    alone = next(open_source(tokens, mask=tmp_path / "mask.npy", ids=[5, 6, 7, 8]).batches(4))
    assert sorted(alone.arrays) == ["", "attention_mask"] and alone.ids.tolist() == [5, 6, 7, 8]
    given = next(open_source([{"input_ids": torch.tensor(tokens), "ids": [4, 3, 2, 1]}]).batches(1))
    assert given.ids.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (3, {}, "The data is an int"),
        ("nowhere.npy", {}, "There is no file named .nowhere.npy"),
        (np.zeros((1, 2)), {}, "at least 2"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, {}, "differ in length"),
        ({"a": np.zeros(3), "b": np.float32(4)}, {}, "dict:b is a single number"),
        ([[1, 2], [3]], {}, "Pad them"),
        (np.zeros((3, 2)), {"ids": [1, 2]}, "ids"),
        (np.zeros((3, 2)), {"ids": [1, 2, 1]}, "occur more than once"),
        ({"a": np.zeros((3, 2))}, {"key": "b"}, "no entry 'b'"),
        ({"attention_mask": np.zeros((3, 2))}, {}, "only masks and ids, but no inputs"),
        (
            DataLoader(TensorDataset(torch.zeros(4))),
            {"ids": [1, 2, 3, 4]},
            "For batches, give masks and ids in the batches",
        ),
    ],
)
def test_what_is_no_input_is_told(data, options, message):
    with pytest.raises(InputError, match=message):
        open_source(data, **options)


def test_loaders_that_shuffle_must_bring_ids():
    data = TensorDataset(torch.arange(20.0)[:, None])
    for loader in (
        DataLoader(data, shuffle=True),
        DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 5, False)),
        DataLoader(data, batch_size=5, sampler=SubsetRandomSampler(range(20))),
        DataLoader(data, batch_size=5, sampler=WeightedRandomSampler(torch.ones(20), 20)),
    ):
        with pytest.raises(InputError, match="shuffles or samples"):
            taken(open_source(loader))
    named = [{"x": torch.tensor([float(i)]), "ids": i} for i in range(20)]
    found, ids, _ = taken(open_source(DataLoader(named, batch_size=5, shuffle=True)))
    np.testing.assert_array_equal(found[:, 0], ids)
    for loader in (
        DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 5, False)),
        DataLoader(data, batch_size=None),
        DataLoader(Stream(), batch_size=5),
    ):
        np.testing.assert_array_equal(taken(open_source(loader))[0].ravel(), np.arange(20))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(20.0)[:, None])


def test_no_batches():
    with pytest.raises(InputError, match="the data is empty"):
        peeked(open_source([]).batches(2))


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npy_file_is_read_piece_by_piece_and_may_not_become_shorter(tmp_path, rng, order):
    x = np.asarray(rng.normal(size=(50, 3, 2)), order=order)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "ids.npy", np.arange(50) + 7)
    source = open_source(tmp_path / "x.npy", ids=tmp_path / "ids.npy")
    found, ids, _ = taken(source)
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(ids, np.arange(50) + 7)
    batches = source.batches(10)
    next(batches)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:700])
    # A map of the file would end the process here.
    with pytest.raises(InputError, match=r"x\.npy became shorter"):
        next(batches)


def test_the_index_of_a_frame_names_the_inputs(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.normal(size=(6, 2)))
    assert taken(open_source(frame))[1].tolist() == list(range(6))
    values, ids, _ = taken(open_source(frame.iloc[::-1]))
    assert ids.tolist() == [5, 4, 3, 2, 1, 0] and np.array_equal(values, frame.to_numpy()[::-1])
    assert taken(open_source(frame.set_axis(list("uvwxyz"))))[1].tolist() == list("uvwxyz")
    assert taken(open_source(frame, ids=list("uvwxyz")))[1].tolist() == list("uvwxyz")
