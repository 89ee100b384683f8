import hashlib

import numpy as np
import pytest

from canonical_files import picture, write_cifar10, write_cifar10_sheets
from nearid.base.errors import InputError
from nearid.lab.data.cifar10 import CIFAR10, CLASSES
from nearid.lab.data.load import load


def test_images_and_classes_of_the_binary_files(home, rng):
    held = write_cifar10(home("cifar10"), rng)
    test = load("cifar10", split="test")
    np.testing.assert_array_equal(test.images.read(), held["test_batch"][0])
    np.testing.assert_array_equal(test.codes[:, 0], held["test_batch"][1])
    train = load("cifar10", split="train")
    np.testing.assert_array_equal(train.images.read(6, 12), held["data_batch_2"][0])
    np.testing.assert_array_equal(train.codes[24:, 0], held["data_batch_5"][1])
    assert len(train) == 30 and len(load("cifar10")) == 36


def test_a_file_of_another_size_is_told(home, rng):
    folder = home("cifar10")
    write_cifar10(folder, rng)
    path = folder / "cifar-10-batches-bin" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    assert len(load("cifar10", split="test")) == 6
    with pytest.raises(InputError, match=r"data_batch_3\.bin has 18437 bytes, but a multiple of 3073 is expected"):
        load("cifar10", split="train")


def test_sheets_are_read_as_far_as_they_go(home, rng):
    held = write_cifar10_sheets(home("cifar10"), rng)
    for split in ("train", "test"):
        found = load("cifar10", split=split)
        np.testing.assert_array_equal(found.images.read(), held[split][0])
        np.testing.assert_array_equal(found.codes[:, 0], held[split][1])
    # That they are not all is told wherever the images are named.
    assert load("cifar10", split="train").images.name == "cifar10 (6 of the 50000 training images)"
    assert load("cifar10", split="test").images.name == "cifar10"


def test_more_sheets_give_more_images(home, rng):
    folder = home("cifar10")
    write_cifar10_sheets(folder, rng)
    more = rng.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    (folder / "data_batch_2.png").write_bytes(picture(more.reshape(5, 1024, 3)))
    (folder / "data_batch_4.png").write_bytes(b"not reached")
    np.testing.assert_array_equal(load("cifar10", split="train").images.read(6), more)


@pytest.mark.parametrize(
    "name, data, message",
    [
        ("test_batch.png", picture(np.zeros((4, 1000, 3), np.uint8)), r"\(4, 1000\) pixels, but \(4, 1024\)"),
        ("test_batch.png", b"x", "not a whole picture"),
        ("test_lables.json", b"[1, 2, 3]", "3 labels, but there are 4 pictures"),
        ("test_lables.json", b"[1, 2, 3, 4, 5]", "5 labels, but there are 4 pictures"),
        ("test_lables.json", b"[1, 2, 3, 10]", "'class' of cifar10 has levels 1 to 10"),
        ("test_lables.json", b'["a"]', "whole numbers"),
        ("test_lables.json", b"[1, 2", "not a whole JSON file"),
    ],
)
def test_odd_sheets_are_refused(home, rng, name, data, message):
    folder = home("cifar10")
    write_cifar10_sheets(folder, rng)
    (folder / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        load("cifar10", split="test")


def test_the_real_ones(real_data):
    if CIFAR10.held(real_data / "cifar10") is None:
        pytest.skip(f"CIFAR-10 is not in {real_data}")
    test = load("cifar10", split="test")
    assert test.images.shape == (10_000, 32, 32, 3)
    # A thousand of each class, the first a cat.
    np.testing.assert_array_equal(np.bincount(test.codes[:, 0]), np.full(10, 1000))
    assert CLASSES[test.codes[0, 0]] == "cat"
    # Checksums of the canonical binary files, as others publish them, over what was read of whatever layout: a class
    # and the planes of each image.
    train = load("cifar10", split="train")
    for found, checksum in ((test, "8e2eb146ae340b09e24670f29cabc632"), (train, "cee916563c9f80d84e3cc88e17fdc094")):
        planes = found.images.read(0, 10_000).transpose(0, 3, 1, 2).reshape(10_000, -1)
        rows = np.column_stack([found.codes[:10_000].astype(np.uint8), planes])
        assert hashlib.sha256(rows.tobytes()).hexdigest().startswith(checksum)
