"""Pictures through a model: the bytes of the same pixels as an array; labels, damage, and interruptions."""

import os

import numpy as np
import pytest

import nearid
from killed_runs import kill_extraction
from nearid import InputError, extract
from nearid.questions.extract import store

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path, pixels):
    for at, picture in enumerate(pixels):
        place = tmp_path / "set" / f"class{at // 20}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place / f"{at}.png")
    return tmp_path / "set"


def names(found):
    return {path.name: path.read_bytes() for path in found.folder.iterdir() if path.suffix == ".npy"}


def test_the_same_bytes_as_from_the_array(net, pixels, folder, tmp_path):
    options = {"mean": (0.5, 0.4, 0.3), "std": 0.2, "batch_size": 8}
    ids = [f"class{at // 20}/{at}.png" for at in range(37)]
    array = extract(net, pixels, out=tmp_path / "array", ids=ids, **options)
    files = extract(net, folder, out=tmp_path / "files", **options)
    assert names(array) == names(files) and files.alerts == ()
    memory = extract(net, folder, labels=True, **options)
    np.testing.assert_array_equal(memory["head"].read(0, 37), files["head"].read(0, 37))
    assert memory.labels.tolist() == [f"class{at // 20}" for at in range(37)] and files.labels is None
    # Brought to another size, they are the same pictures.
    other = extract(net, folder, resize=6)
    assert other["head"].inputs_sha256 == files["head"].inputs_sha256 != array["head"].inputs_sha256


def test_labels_are_written_and_can_be_blocks(net, folder, tmp_path):
    for name in ("a", "b"):
        extract(net, folder, layers="head,conv", out=tmp_path / name, labels=True)
    assert nearid.Extraction.open(tmp_path / "a").labels.tolist() == np.load(tmp_path / "a" / "labels.npy").tolist()
    layers = nearid.compare_layers(tmp_path / "a", tmp_path / "b", blocks="labels", permutations=0, folds=2)
    assert layers.provenance["blocks"] == 2
    found = nearid.compare(f"{tmp_path / 'a'}:head", f"{tmp_path / 'b'}:conv", blocks="labels", permutations=1, folds=2)
    assert found.provenance["blocks"]
    # Also in a folder to be replaced.
    extract(net, folder, layers="head", out=tmp_path / "a", overwrite=True)
    assert nearid.Extraction.open(tmp_path / "a").labels is None and not (tmp_path / "a" / "labels.npy").exists()


def test_a_damaged_picture_is_refused_or_left_out(net, folder, tmp_path):
    damaged = folder / "class0" / "7.png"
    damaged.write_bytes(damaged.read_bytes()[:-90])
    with pytest.raises(InputError, match=r"1 picture of set cannot be read: class0/7.png"):
        extract(net, folder, out=tmp_path / "out", batch_size=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set"]
    found = extract(net, folder, out=tmp_path / "out", batch_size=5, drop_unreadable=True, labels=True)
    assert found["head"].shape == (36, 7) and "class0/7.png" not in found["head"].ids
    assert len(found.labels) == 36 and [alert.code for alert in found.alerts] == ["unreadable_pictures"]


def test_batches_that_do_not_fit_are_refused_before_reading(net, folder, monkeypatch):
    from nearid.base import limits

    one = 8 * 8 * 3
    monkeypatch.setattr(limits, "available_memory", lambda: 20 * one)
    with pytest.raises(InputError, match=r"A batch of 16 pictures of set.* needs .* of memory.*--batch-size"):
        extract(net, folder, batch_size=16)
    # Four batches at a time, of a third as many bytes where they are grey.
    assert next(iter(pictures(folder).batches(5))).n == 5
    with pytest.raises(InputError, match="of memory"):
        next(iter(pictures(folder).batches(6)))
    assert next(iter(pictures(folder, grey=True).batches(15))).n == 15


def test_the_search_for_a_batch_size_ends_where_pictures_do_not_fit(net, folder, monkeypatch):
    from nearid.questions.extract import pixels, tuning

    asked = []

    def check(name, size, advice):
        asked.append(size)
        if size > 40 * 8 * 8 * 3:
            raise InputError(name)

    monkeypatch.setattr(pixels, "check_memory", check)
    monkeypatch.setattr(tuning, "SHARE", 1)
    monkeypatch.setattr(tuning, "WORTH", 0.0)
    assert extract(net, folder, batch_size="auto")["head"].shape == (37, 7)
    assert max(asked) > 40 * 8 * 8 * 3


def pictures(folder, **options):
    from nearid.questions.extract.pictures import Shaping, open_pictures
    from nearid.questions.extract.pixels import PictureSource

    return PictureSource(open_pictures(folder, Shaping(**options)))


def test_grey_pictures_have_one_channel(folder, rng):
    from torch import nn

    model = nn.Sequential(nn.Conv2d(1, 3, 3))
    assert extract(model, folder, grey=True)["0"].shape == (37, 3)


@pytest.mark.parametrize("form", ["npy", "zarr"])
def test_an_interruption_is_taken_up_to_the_same_bytes(net, folder, tmp_path, monkeypatch, contents, form):
    options = {"batch_size": 4, "labels": True, "format": form}
    extract(net, folder, out=tmp_path / "whole", **options)
    monkeypatch.setattr(store, "SECONDS", 0.0)

    def stopping(stage, steps):
        done = []

        def tick(note=""):
            done.append(1)
            if len(done) == 5:
                raise KeyboardInterrupt

        return tick

    with pytest.raises(KeyboardInterrupt):
        extract(net, folder, out=tmp_path / "out", progress=stopping, **options)
    first = folder / "class0" / "0.png"
    before = first.read_bytes()
    Image.fromarray(255 - np.asarray(Image.open(first))).save(first)
    with pytest.raises(InputError, match=r"belongs to other data|differ from those of the first inputs"):
        extract(net, folder, out=tmp_path / "out", **options)
    first.write_bytes(before)
    found = extract(net, folder, out=tmp_path / "out", **options)
    assert [alert.code for alert in found.alerts] == ["resumed"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


KILLED = """
import sys, time, torch
from nearid import extract
from nearid.questions.extract import store
from test_pixels import small

store.SECONDS = 0.0
torch.set_num_threads(1)
model = small()
model.register_forward_hook(lambda *_: time.sleep(0.1))
extract(model, sys.argv[1], out=sys.argv[2], batch_size=2)
"""


def small():
    from torch import manual_seed, nn

    manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())


# The process that is killed draws the same weights.
@pytest.mark.own_seeds
def test_killed_in_the_middle_of_pictures(folder, tmp_path, contents):
    extract(small(), folder, out=tmp_path / "whole", batch_size=2)
    kill_extraction(KILLED, folder, out=tmp_path / "out", path=[os.path.dirname(__file__)])
    found = extract(small(), folder, out=tmp_path / "out", batch_size=2)
    assert [alert.code for alert in found.alerts] == ["resumed"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_real_pictures_through_a_real_network(real_data, tmp_path):
    from nearid.lab.data.cifar10_resnets import weights_file
    from nearid.lab.data.load import load
    from nearid.lab.models.cifar_resnet import MEAN, STD, load_cifar_resnet

    pixels = np.asarray(load("cifar10", split="test").images.read(0, 40))
    (tmp_path / "set").mkdir()
    for at, picture in enumerate(pixels):
        Image.fromarray(picture).save(tmp_path / "set" / f"{at}.png")
    model = load_cifar_resnet(weights_file("akamaster-20"))
    options = {"mean": MEAN, "std": STD, "batch_size": 16}
    array = extract(model, pixels, out=tmp_path / "array", ids=[f"{at}.png" for at in range(40)], **options)
    assert names(array) == names(extract(model, tmp_path / "set", out=tmp_path / "files", **options))
