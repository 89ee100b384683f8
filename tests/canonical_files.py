"""Small files in the layout of the canonical ones."""

import gzip
import io
import json
import pickle
import struct
import zipfile

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from nearid.lab.data.registry import dataset


def picture(pixels):
    """A PNG of an array."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def write_dsprites(folder, rng, n=30):
    sizes = np.array([1, 3, 6, 40, 32, 32])
    classes = rng.integers(0, sizes, (n, 6))
    imgs = rng.integers(0, 2, (n, 64, 64), dtype=np.uint8)
    # As in the canonical file: an object array, which only unpickling could load.
    metadata = np.array({"title": "dSprites", "trap": _Trap()}, dtype=object)
    np.savez_compressed(
        folder / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
        metadata=metadata,
        imgs=imgs,
        latents_classes=classes,
        latents_values=classes.astype(float),
    )
    return imgs, classes


class _Trap:
    """Unpickling this fails the test."""

    def __reduce__(self):
        return (pytest.fail, ("the metadata was unpickled",))


def write_shapes3d(folder, rng, n=40):
    factors = dataset("shapes3d").factors
    codes = np.column_stack([rng.integers(0, f.size, n) for f in factors])
    # Values as a file may have them, a little off in the last digits.
    labels = np.column_stack([np.array(f.levels)[codes[:, at]] for at, f in enumerate(factors)]) - 1e-9
    images = rng.integers(0, 256, (n, 64, 64, 3), dtype=np.uint8)
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file.create_dataset("images", data=images, chunks=(7, 16, 16, 3), compression="gzip")
        file.create_dataset("labels", data=labels)
    return images, codes


def write_cars3d(folder, rng, cars=5):
    home = folder / "data" / "cars"
    home.mkdir(parents=True)
    names = [f"car_{at:03}_mesh" for at in rng.permutation(cars)]
    (home / "list.txt").write_text("\n".join(names) + "\n")
    stored = rng.integers(0, 256, (cars, 6, 5, 3, 24, 4), dtype=np.uint8)
    for name, im in zip(names, stored, strict=True):
        savemat(home / f"{name}.mat", {"im": im, "mask": im[:, :, 0]}, do_compression=True)
    return stored


def write_norb(folder, rng, n=7):
    held = {}
    for split, stem in (
        ("train", "smallnorb-5x46789x9x18x6x2x96x96-training"),
        ("test", "smallnorb-5x01235x9x18x6x2x96x96-testing"),
    ):
        pairs = rng.integers(0, 256, (n, 2, 96, 96), dtype=np.uint8)
        category = rng.integers(0, 5, n).astype("<i4")
        info = np.column_stack(
            [rng.integers(0, 10, n), rng.integers(0, 9, n), 2 * rng.integers(0, 18, n), rng.integers(0, 6, n)]
        ).astype("<i4")
        for kind, magic, array in (
            ("dat", 0x1E3D4C55, pairs),
            ("cat", 0x1E3D4C54, category),
            ("info", 0x1E3D4C54, info),
        ):
            sizes = [*array.shape] + [1] * (3 - array.ndim)
            header = struct.pack(f"<ii{len(sizes)}i", magic, array.ndim, *sizes)
            with gzip.open(folder / f"{stem}-{kind}.mat.gz", "wb") as file:
                file.write(header + array.tobytes())
        held[split] = (pairs, category, info)
    return held


def write_kitti(folder, rng, lengths=(3, 5, 2), protocol=4):
    films = [rng.random((t, 64, 64)) < 0.1 for t in lengths]
    latents = [rng.random((t, 3)).astype(np.float32) for t in lengths]
    held = {"pedestrians": films, "pedestrians_latents": latents}
    (folder / "kitti_peds_v2.pickle").write_bytes(pickle.dumps(held, protocol=protocol))
    return films, latents


def write_ident3d(folder, rng, n=12, columns=10, drawn=None):
    """Pictures of noise, or what a function draws of the latents."""
    held = {}
    for split in ("train", "test"):
        home = folder / "3dident" / split
        (home / "images").mkdir(parents=True)
        raw = rng.uniform(-1, 1, (n, columns))
        np.save(home / "raw_latents.npy", raw)
        np.save(home / "latents.npy", raw[:, :10] * 3)
        # The canonical ones have an alpha channel.
        pictures = rng.integers(0, 256, (n, 8, 8, 4), dtype=np.uint8) if drawn is None else drawn(raw)
        for at, pixels in enumerate(pictures):
            (home / "images" / f"{at:0{len(str(n - 1))}}.png").write_bytes(picture(pixels))
        held[split] = (raw, pictures)
    return held


def write_idx(path, array):
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes())


def write_mnist(folder, rng, train=20, test=8):
    held = {}
    for split, stem, n in (("train", "train", train), ("test", "t10k", test)):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, n).astype(np.uint8)
        write_idx(folder / f"{stem}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{stem}-labels-idx1-ubyte.gz", labels)
        held[split] = (images, labels)
    return held


def write_cifar10(folder, rng, n=6):
    """Binary files; gives images and labels of each."""
    home = folder / "cifar-10-batches-bin"
    home.mkdir()
    held = {}
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        labels = rng.integers(0, 10, n)
        rows = [bytes([label, *image.transpose(2, 0, 1).ravel()]) for image, label in zip(images, labels, strict=True)]
        (home / f"{name}.bin").write_bytes(b"".join(rows))
        held[name] = (images, labels)
    return held


def write_cifar10_sheets(folder, rng, train=6, test=4):
    """Sheets of the first batch and of the test images; gives images and labels of each split."""
    held = {}
    for name, split, n, labelled in (("data_batch_1", "train", train, 3 * train), ("test_batch", "test", test, test)):
        images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        labels = rng.integers(0, 10, labelled).tolist()
        (folder / f"{name}.png").write_bytes(picture(images.reshape(n, 1024, 3)))
        (folder / f"{split}_lables.json").write_text(json.dumps(labels))
        held[split] = (images, labels[:n])
    return held


def compress(data, widest=16, clear_every=None):
    """What Unix compress makes of data: LZW, with the table cleared every so many codes if that is asked for."""
    out, group = bytearray(b"\x1f\x9d" + bytes([0x80 | widest])), []
    roots = {bytes([value]): value for value in range(256)}
    table, free, width = dict(roots), 257, 9

    def flush(whole):
        bits = sum(code << (width * at) for at, code in enumerate(group))
        out.extend(bits.to_bytes(width if whole else -(-len(group) * width // 8), "little"))
        group.clear()

    def emit(code):
        group.append(code)
        if len(group) == 8:
            flush(True)

    held = b""
    for count, at in enumerate(range(len(data)), start=1):
        symbol = data[at : at + 1]
        if held + symbol in table:
            held += symbol
            continue
        emit(table[held])
        if free < 1 << widest:
            table[held + symbol] = free
            free += 1
            # The reader is one entry behind.
            if free - 1 > (1 << width) - 1 and width < widest:
                if group:
                    flush(True)
                width += 1
        if clear_every and count % clear_every == 0:
            emit(256)
            if group:
                flush(True)
            table, free, width = dict(roots), 257, 9
        held = symbol
    if held:
        emit(table[held])
    if group:
        flush(False)
    return bytes(out)


def write_corpora(root, lines=400):
    """WikiText-2 and the treebank below a folder: each word makes one of two others likely after it."""
    words = [f"w{k}" for k in range(120)]
    rng = np.random.default_rng(0)

    def text(count):
        found = []
        for _ in range(count):
            at, line = int(rng.integers(120)), []
            for _ in range(int(rng.integers(5, 15))):
                line.append(words[at])
                at = int((3 * at + rng.choice([1, 2, 7, int(rng.integers(120))])) % 120)
            found.append(line)
        return found

    for name in ("wikitext2", "treebank"):
        (root / name).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / "wikitext2" / "wikitext-2-v1.zip", "w") as archive:
        for part in ("train", "valid", "test"):
            told = "".join(f" {' '.join(line)} \n" for line in text(lines))
            archive.writestr(f"wikitext-2/wiki.{part}.tokens", told)
    with zipfile.ZipFile(root / "treebank" / "treebank.zip", "w") as archive:
        for article in range(1, 200):
            trees = "".join(f"( (S {' '.join(f'(NN {word})' for word in line)} ))\n" for line in text(1))
            archive.writestr(f"treebank/combined/wsj_{article:04d}.mrg", trees)
