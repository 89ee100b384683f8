"""Fetching into the cache: whole or not at all."""

import dataclasses
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from canonical_files import write_cars3d, write_mnist
from nearid.base.errors import InputError
from nearid.base.files import alone_in
from nearid.lab.data.cars3d import CARS3D
from nearid.lab.data.coil20 import COIL20
from nearid.lab.data.download import BLOCK
from nearid.lab.data.fetch import fetch, left_behind
from nearid.lab.data.kitti_masks import KITTI_MASKS
from nearid.lab.data.load import load
from nearid.lab.data.mnist import MNIST
from nearid.lab.data.mpi3d import COMPLEX
from nearid.lab.data.places import cache_folder, find, missing
from nearid.lab.data.rooms3d import FALCOR3D


def served(server, dataset, bodies):
    """The data set as this server has it."""
    files = []
    for file, body in zip(dataset.files, bodies, strict=True):
        server.files[f"/{file.name}"] = body
        checksum = "sha256:" + hashlib.sha256(body).hexdigest()
        files.append(dataclasses.replace(file, url=f"{server.url}/{file.name}", size=len(body), checksum=checksum))
    return dataclasses.replace(dataset, files=tuple(files))


def packed_cars(folder, rng):
    """The archive of Cars3D with its cars and other things, and what the cars are."""
    stored = write_cars3d(folder, rng)
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.add(folder / "data", "data")
        other = tarfile.TarInfo("data/shapes48.mat")
        other.size = 200_000
        archive.addfile(other, io.BytesIO(rng.bytes(other.size)))
    return file.getvalue(), stored


def test_files_that_are_read_as_they_are(home, server, rng, tmp_path):
    (tmp_path / "source").mkdir()
    held = write_mnist(tmp_path / "source", rng)
    mine = served(server, MNIST, [(tmp_path / "source" / file.name).read_bytes() for file in MNIST.files])
    folder = fetch(mine)
    assert folder == cache_folder() / "mnist"
    np.testing.assert_array_equal(load("mnist", split="test").images.read()[..., 0], held["test"][0])
    server.seen.clear()
    said = []
    assert fetch(mine, say=said.append) == folder
    assert server.seen == [] and "is here already" in said[0]


def test_an_archive_is_unpacked_and_removed(home, server, rng, tmp_path):
    body, stored = packed_cars(tmp_path / "source", rng)
    folder = fetch(served(server, CARS3D, [body]))
    assert sorted(path.name for path in folder.iterdir()) == ["data"]
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["cars"]
    found = load("cars3d")
    elevation, azimuth, car = found.codes.T
    np.testing.assert_array_equal(found.images.read(), stored[car, :, :, :, azimuth, elevation])


def test_what_is_interrupted_is_not_there_and_goes_on(home, server, rng, tmp_path, monkeypatch):
    body, _ = packed_cars(tmp_path / "source", rng)
    mine = served(server, CARS3D, [body])
    server.cut = [BLOCK, 0, 0, 0]
    with pytest.raises(InputError, match="are kept"):
        fetch(mine)
    assert find(mine) is None and left_behind(mine) == "65.5 kB are kept; the same command goes on"
    # Interrupted again, this time between unpacking and the end.
    monkeypatch.setattr("nearid.lab.data.fetch.os.replace", _broken(2))
    with pytest.raises(KeyboardInterrupt):
        fetch(mine)
    assert find(mine) is None
    monkeypatch.undo()
    monkeypatch.setenv("NEARID_DATA", "")
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    assert fetch(mine) == tmp_path / "cache" / "nearid" / "data" / "cars3d" and find(mine)
    assert left_behind(mine) == "nothing was kept"


def _broken(call):
    import os

    calls, real = [], os.replace

    def replace(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        real(*arguments)

    return replace


def test_an_archive_that_escapes_leaves_nothing(home, server, tmp_path):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("data/cars/list.txt", "../../../evil"):
            archive.addfile(tarfile.TarInfo(name))
    mine = served(server, CARS3D, [file.getvalue()])
    with pytest.raises(InputError, match="outside of its folder"):
        fetch(mine)
    assert find(mine) is None and not [path for path in tmp_path.rglob("evil")]
    assert not [path for path in (cache_folder() / "cars3d").iterdir() if path.name.startswith(".unpacking")]


def test_files_given_by_hand(home, rng, tmp_path):
    with pytest.raises(InputError, match="--from FILE"):
        fetch(FALCOR3D)
    path = tmp_path / "downloaded (1).zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Falcor3D_down128/images/000000.png", "x")
        archive.writestr("Falcor3D_down128/train-rec.labels", "x")
        archive.writestr("__MACOSX/junk", "x")
    folder = fetch(FALCOR3D, given=(path,))
    assert (folder / "Falcor3D_down128" / "images" / "000000.png").is_file()
    assert path.exists() and not (folder / "__MACOSX").exists()


def test_a_given_file_is_checked(home, server, rng, tmp_path):
    (tmp_path / "source").mkdir()
    write_mnist(tmp_path / "source", rng)
    paths = [tmp_path / "source" / file.name for file in MNIST.files]
    mine = served(server, MNIST, [path.read_bytes() for path in paths])
    with pytest.raises(InputError, match=r"source/train-images-idx3-ubyte\.gz has \d+ bytes, but .* has 9912422"):
        fetch(MNIST, given=tuple(paths))
    # The file is blamed, not the address.
    first, *others = MNIST.files
    odd = dataclasses.replace(MNIST, files=(dataclasses.replace(first, size=None), *others))
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz has the sha256 .* was damaged") as refused:
        fetch(odd, given=tuple(paths))
    assert str(refused.value).startswith(str(paths[0])) and first.url not in str(refused.value)
    fetch(mine, given=tuple(paths))
    assert server.seen == [] and len(load("mnist")) == 28
    with pytest.raises(InputError, match="no file"):
        fetch(FALCOR3D, given=(tmp_path / "nothing",))


def test_a_given_file_of_another_name_is_refused(home, tmp_path):
    (tmp_path / "x.gz").write_bytes(b"x")
    with pytest.raises(InputError, match=r"x\.gz is not a file of MNIST, which has train-images"):
        fetch(MNIST, given=(tmp_path / "x.gz",))


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_given_file_replaces_what_is_here(home, tmp_path):
    one, two = (zipped(tmp_path / f"{name}.zip", {"a": name}) for name in ("one", "two"))
    folder = fetch(COIL20, given=(one,))
    fetch(COIL20, given=(two,))
    assert (folder / "coil-20-proc.zip").read_bytes() == two.read_bytes()
    with pytest.raises(InputError, match="There is no file"):
        fetch(COIL20, given=(tmp_path / "nothing",))
    assert [path.name for path in folder.iterdir()] == ["coil-20-proc.zip"]


@pytest.mark.parametrize(
    "dataset, junk, message",
    [
        (COIL20, b"<html>", r"junk\.bin is not a whole \.zip file"),
        (COMPLEX, b"PK\x03\x04 and no end", r"junk\.bin is not a whole \.npz file"),
        (KITTI_MASKS, b"<html>.", r"junk\.bin does not begin and end as a pickle does"),
        (KITTI_MASKS, b"\x80\x04K\x01", r"junk\.bin does not begin and end as a pickle does"),
        (KITTI_MASKS, b"", r"junk\.bin is not a whole \.pickle file"),
    ],
)
def test_a_file_that_plainly_is_another_is_not_taken(home, tmp_path, dataset, junk, message):
    (tmp_path / "junk.bin").write_bytes(junk)
    with pytest.raises(InputError, match=message):
        fetch(dataset, given=(tmp_path / "junk.bin",))
    assert find(dataset) is None


def test_a_page_instead_of_the_file_is_not_kept(home, server):
    mine = served(server, COIL20, [b"<html>please agree</html>"])
    mine = dataclasses.replace(mine, files=(dataclasses.replace(mine.files[0], checksum=None),))
    with pytest.raises(InputError, match=rf"{server.url}/coil-20-proc\.zip is not a whole \.zip file"):
        fetch(mine)
    assert find(mine) is None and left_behind(mine) == "nothing was kept"


def test_again_gets_it_anew_and_keeps_the_old_until_then(home, server, rng, tmp_path):
    body, _ = packed_cars(tmp_path / "source", rng)
    mine = served(server, CARS3D, [body])
    folder = fetch(mine)
    listing = folder / "data" / "cars" / "list.txt"
    good = listing.read_text()
    listing.write_text("damaged")
    (folder / "data" / "cars" / "more").touch()
    server.status = [404]
    with pytest.raises(InputError, match="404"):
        fetch(mine, again=True)
    assert listing.read_text() == "damaged"
    assert fetch(mine, again=True) == folder
    assert listing.read_text() == good and not (folder / "data" / "cars" / "more").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["data"]


def test_again_of_plain_files_and_of_sets_by_hand(home, server, rng, tmp_path):
    mine = served(server, COMPLEX, [b"good"])
    folder = fetch(mine)
    (folder / COMPLEX.files[0].name).write_bytes(b"damaged")
    fetch(mine, again=True)
    assert (folder / COMPLEX.files[0].name).read_bytes() == b"good"
    held = {"Falcor3D_down128/images/000000.png": "x", "Falcor3D_down128/train-rec.labels": "x"}
    fetch(FALCOR3D, given=(zipped(tmp_path / "a.zip", held),))
    with pytest.raises(InputError, match=r"anew, download .* with a browser.* --from FILE"):
        fetch(FALCOR3D, again=True)


def test_what_the_user_keeps_elsewhere_is_not_replaced(home, rng, tmp_path):
    folder = home("coil20")
    zipped(folder / "coil-20-proc.zip", {"a": "mine"})
    other = zipped(tmp_path / "other.zip", {"a": "other"})
    for options in ({"given": (other,)}, {"again": True}):
        with pytest.raises(InputError, match=r"is read from .*given/coil20, below the folder NEARID_DATA"):
            fetch(COIL20, **options)
    assert not (cache_folder() / "coil20").exists()


def test_a_given_archive_is_checked_though_another_was_left(home, server, rng, tmp_path):
    body, _ = packed_cars(tmp_path / "source", rng)
    mine = served(server, CARS3D, [body])
    folder = cache_folder() / "cars3d"
    folder.mkdir(parents=True)
    (folder / CARS3D.files[0].name).write_bytes(body)
    (tmp_path / "odd.tar.gz").write_bytes(body[::-1])
    with pytest.raises(InputError, match=r"odd\.tar\.gz has the sha256"):
        fetch(mine, given=(tmp_path / "odd.tar.gz",))


def test_a_kill_between_two_renames_is_got_over(home, tmp_path):
    held = {"Falcor3D_down128/images/000000.png": "x", "Falcor3D_down128/train-rec.labels": "x"}
    path = zipped(tmp_path / "a.zip", held)
    folder = cache_folder() / "falcor3d"
    # What such a kill leaves: one of two in place, and the folder of the unpacking.
    for left in ("Falcor3D_down128/images/000000.png", ".unpacking-killed/Falcor3D_down128/train-rec.labels"):
        (folder / left).parent.mkdir(parents=True)
        (folder / left).write_text("old")
    fetch(FALCOR3D, given=(path,))
    assert (folder / "Falcor3D_down128" / "images" / "000000.png").read_text() == "x"
    assert sorted(path.name for path in folder.iterdir()) == ["Falcor3D_down128"]


def test_two_at_once_are_refused(home, server):
    mine = served(server, CARS3D, [b"x"])
    folder = cache_folder() / "cars3d"
    folder.mkdir(parents=True)
    with alone_in(folder), pytest.raises(InputError, match="Another process is at work"):
        fetch(mine)


def test_an_address_in_doubt_is_told_once(home, server, rng, tmp_path):
    said = []
    fetch(served(server, COMPLEX, [b"x"]), say=said.append)
    assert any("This is a mirror" in text for text in said)
    (tmp_path / "source").mkdir()
    write_mnist(tmp_path / "source", rng)
    paths = [tmp_path / "source" / file.name for file in MNIST.files]
    mine = served(server, MNIST, [path.read_bytes() for path in paths])
    said.clear()
    fetch(mine, given=tuple(paths[:2]), say=said.append)
    assert [text for text in said if "mirror" in text] == [f"MNIST: {MNIST.files[0].note}"]


def test_without_a_network_the_way_round_is_told(home, server, rng, tmp_path):
    (tmp_path / "source").mkdir()
    write_mnist(tmp_path / "source", rng)
    paths = [tmp_path / "source" / file.name for file in MNIST.files]
    mine = served(server, MNIST, [path.read_bytes() for path in paths])
    server.close()
    with pytest.raises(InputError) as refused:
        fetch(mine, given=(paths[0],))
    said = str(refused.value)
    # What is here already need not be brought.
    assert "there is no connection to 127.0.0.1." in said and mine.files[0].url not in said
    assert all(file.url in said for file in mine.files[1:])
    command = said.partition("run: ")[2]
    assert command == "nearid data fetch mnist " + " ".join(f"--from {path.name}" for path in paths[1:])


def test_an_archive_of_something_else_is_blamed_by_its_name(home, tmp_path):
    path = tmp_path / "holiday.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Falcor3D_down128/images/000000.png", "x")
    with pytest.raises(InputError, match=r"holiday\.zip lacks Falcor3D_down128/train-rec\.labels"):
        fetch(FALCOR3D, given=(path,))


def test_nothing_to_fetch(home):
    from nearid.lab.data.digits import DIGITS

    with pytest.raises(InputError, match="nothing to fetch"):
        fetch(DIGITS)


def test_a_missing_set_says_the_command_and_the_address(home):
    text = str(missing(MNIST))
    assert "nearid data fetch mnist" in text
    assert all(file.url in text and file.name in text for file in MNIST.files)
    assert str(cache_folder() / "mnist") in text and "NEARID_DATA" in text
    with pytest.raises(InputError, match="nearid data fetch mnist"):
        load("mnist")


def test_given_data_come_before_the_cache(home, rng, tmp_path):
    cache = cache_folder() / "mnist"
    cache.mkdir(parents=True)
    write_mnist(cache, rng, train=3)
    assert len(load("mnist", split="train")) == 3
    write_mnist(home("mnist"), rng, train=5)
    assert find(MNIST) == Path(tmp_path / "given" / "mnist") and len(load("mnist", split="train")) == 5


def test_a_given_archive_in_the_cache_itself_is_kept(home, tmp_path):
    path = cache_folder() / FALCOR3D.name / FALCOR3D.files[0].name
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Falcor3D_down128/images/000000.png", "x")
        archive.writestr("Falcor3D_down128/train-rec.labels", "x")
    fetch(FALCOR3D, given=(path,))
    assert path.exists() and find(FALCOR3D) is not None
