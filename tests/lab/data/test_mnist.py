import gzip
import hashlib

import numpy as np
import pytest

from canonical_files import write_idx, write_mnist
from nearid.base.errors import InputError
from nearid.lab.data.load import load
from nearid.lab.data.mnist import read_idx


def test_images_and_labels(home, rng):
    held = write_mnist(home("mnist"), rng)
    for split in ("train", "test"):
        found = load("mnist", split=split)
        np.testing.assert_array_equal(found.images.read()[..., 0], held[split][0])
        np.testing.assert_array_equal(found.codes[:, 0], held[split][1])
    assert len(load("mnist")) == 28


@pytest.mark.parametrize(
    "data, message",
    [
        (b"\0\0\x08\x03" + (10).to_bytes(4, "big") * 3 + b"x" * 5, "declares 1000 bytes, but holds 5"),
        (b"\0\0\x08\x03" + (1).to_bytes(4, "big") * 3 + b"x" * 5, "holds more"),
        (b"\0\0\x08\x03" + (2**31).to_bytes(4, "big") * 3, "memory"),
        (b"\0\0\x0d\x03" + (1).to_bytes(4, "big") * 3, "does not begin"),
        (b"\0", "not a whole idx"),
    ],
)
def test_damage_is_told(tmp_path, data, message):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(data))
    with pytest.raises(InputError, match=message):
        read_idx(path, 3)


def test_a_broken_gzip_is_told(tmp_path, rng):
    write_idx(tmp_path / "x.gz", rng.integers(0, 256, (5, 9, 9), dtype=np.uint8))
    data = bytearray((tmp_path / "x.gz").read_bytes())
    data[-6] ^= 1
    (tmp_path / "x.gz").write_bytes(data)
    with pytest.raises(InputError, match="CRC"):
        read_idx(tmp_path / "x.gz", 3)


def test_the_real_one(real_data):
    if not (real_data / "mnist").is_dir():
        pytest.skip(f"MNIST is not in {real_data}")
    train, test = (load("mnist", split=split) for split in ("train", "test"))
    assert train.images.shape == (60_000, 28, 28, 1) and len(test) == 10_000
    # The labels' published content: 5923 zeros, 6742 ones, ... and the first of them 5.
    np.testing.assert_array_equal(
        np.bincount(train.codes[:, 0]), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    )
    # The raw files' checksum over what was read: header and numbers.
    header = bytes.fromhex("00000803") + b"".join(size.to_bytes(4, "big") for size in (60_000, 28, 28))
    assert hashlib.sha256(header + train.images.read().tobytes()).hexdigest().startswith("ba891046")
