"""Downloads from a server that fails in every way, and fetching into the cache: whole or not at all."""

import dataclasses
import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import requests

from canonical_files import write_cars3d, write_mnist
from nearid.base.errors import InputError
from nearid.base.files import alone_in
from nearid.lab.data.base import RemoteFile
from nearid.lab.data.cars3d import CARS3D
from nearid.lab.data.coil20 import COIL20
from nearid.lab.data.fetch import ATTEMPTS, BLOCK, Unreachable, download, fetch, left_behind, part_of
from nearid.lab.data.kitti_masks import KITTI_MASKS
from nearid.lab.data.load import load
from nearid.lab.data.mnist import MNIST
from nearid.lab.data.mpi3d import COMPLEX
from nearid.lab.data.registry import DOUBTFUL, cache_folder, find, missing
from nearid.lab.data.rooms3d import FALCOR3D


@pytest.fixture
def body(server, rng):
    server.files["/x.bin"] = rng.integers(0, 256, 300_000, dtype=np.uint8).tobytes()
    return server.files["/x.bin"]


def described(server, body=None, **changes):
    checksum = None if body is None else "sha256:" + hashlib.sha256(body).hexdigest()
    options = {"checksum": checksum, "checked_by": "the test", **changes}
    return RemoteFile("x.bin", f"{server.url}/x.bin", **options)


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_download(server, body, tmp_path):
    download(described(server, body, size=len(body)), tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == body
    assert leftovers(tmp_path) == ["x.bin"]


def test_a_broken_connection_is_taken_up_where_it_broke(server, body, tmp_path):
    server.cut = [2 * BLOCK, BLOCK]
    said = []
    download(described(server, body), tmp_path / "x.bin", say=said.append)
    assert (tmp_path / "x.bin").read_bytes() == body
    assert [asked for _, asked in server.seen] == [None, "bytes=131072-", "bytes=196608-"]
    assert any("trying again" in text for text in said)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_packed_file_that_is_called_an_encoding_comes_as_it_is(server, rng, tmp_path, encoding):
    packed = server.files["/x.bin"] = gzip.compress(rng.bytes(300_000))
    server.encoding, server.cut = encoding, [2 * BLOCK]
    download(described(server, packed, size=len(packed)), tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == packed
    # What arrived before the cut was kept as it was.
    assert [asked for _, asked in server.seen] == [None, "bytes=131072-"]


def test_a_body_in_chunks_that_breaks_off_is_asked_for_again(server, body, tmp_path):
    server.chunked, server.cut = True, [BLOCK]
    said = []
    download(described(server, body), tmp_path / "x.bin", say=said.append)
    assert (tmp_path / "x.bin").read_bytes() == body
    assert said[0] == "x.bin: the connection was lost; trying again"


def test_a_server_that_falls_silent_is_asked_again(server, body, tmp_path, monkeypatch):
    from urllib3.exceptions import ReadTimeoutError
    from urllib3.response import HTTPResponse

    real, calls = HTTPResponse.stream, []

    def stream(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise ReadTimeoutError(None, None, "Read timed out.")
        return real(self, *arguments, **options)

    monkeypatch.setattr(HTTPResponse, "stream", stream)
    said = []
    download(described(server, body), tmp_path / "x.bin", say=said.append)
    assert (tmp_path / "x.bin").read_bytes() == body
    assert said[0] == "x.bin: the connection was lost; trying again"


def test_the_next_call_goes_on(server, body, tmp_path):
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError, match="131 kB are kept; run the same command again"):
        download(described(server, body), tmp_path / "x.bin")
    assert not (tmp_path / "x.bin").exists() and part_of(tmp_path / "x.bin").stat().st_size == 2 * BLOCK
    server.seen.clear()
    said = []
    download(described(server, body), tmp_path / "x.bin", say=said.append)
    assert (tmp_path / "x.bin").read_bytes() == body
    assert server.seen == [("/x.bin", "bytes=131072-")] and "continuing after 131 kB" in said[0]
    assert leftovers(tmp_path) == ["x.bin"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_that_changed_in_between_is_begun_anew(server, body, tmp_path, ranges):
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError):
        download(described(server), tmp_path / "x.bin")
    new = server.files["/x.bin"] = body[::-1]
    server.tag, server.ranges = '"two"', ranges
    download(described(server, new), tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == new


def test_a_file_that_changed_and_was_not_tagged_fails_its_checksum_and_is_begun_anew(server, body, tmp_path):
    server.tag = ""
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError):
        download(described(server, body), tmp_path / "x.bin")
    new = server.files["/x.bin"] = body[::-1]
    said = []
    download(described(server, new), tmp_path / "x.bin", say=said.append)
    assert (tmp_path / "x.bin").read_bytes() == new and any("download starts again" in text for text in said)


def test_a_file_that_became_shorter_is_begun_anew(server, body, tmp_path):
    server.tag = ""
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError):
        download(described(server), tmp_path / "x.bin")
    server.files["/x.bin"] = body[:50]
    download(described(server, body[:50]), tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == body[:50]


def test_a_part_that_nothing_vouches_for_is_begun_anew(server, body, tmp_path):
    # Neither a tag of the server nor a checksum: the rest may be of another file.
    server.tag, server.cut = "", [2 * BLOCK]
    download(described(server), tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == body
    assert [asked for _, asked in server.seen] == [None, None]


def test_a_part_of_another_address_is_not_used(server, body, tmp_path):
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError):
        download(described(server), tmp_path / "x.bin")
    server.seen.clear()
    server.files["/y.bin"] = body
    download(RemoteFile("x.bin", f"{server.url}/y.bin"), tmp_path / "x.bin")
    assert server.seen == [("/y.bin", None)]


def test_a_wrong_checksum_is_refused_and_nothing_is_left(server, body, tmp_path):
    with pytest.raises(
        InputError, match=r"x\.bin has the sha256 [0-9a-f]{64}, but [0-9a-f]{64} is published for x\.bin \(the test\)"
    ):
        download(described(server, b"another"), tmp_path / "x.bin")
    assert leftovers(tmp_path) == []


def test_not_found_is_told_and_keeps_what_was_there(server, body, tmp_path):
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError):
        download(described(server), tmp_path / "x.bin")
    held = server.files.pop("/x.bin")
    with pytest.raises(InputError, match=r"answered 404 Not Found\. Is the address still right\?"):
        download(described(server), tmp_path / "x.bin")
    server.files["/x.bin"] = held
    server.seen.clear()
    download(described(server), tmp_path / "x.bin")
    assert server.seen == [("/x.bin", "bytes=131072-")]


def test_a_busy_server_is_asked_again(server, body, tmp_path):
    server.status = [503, 429]
    download(described(server, body), tmp_path / "x.bin")
    server.status = [503] * ATTEMPTS
    with pytest.raises(InputError, match="503"):
        download(described(server, body), tmp_path / "y.bin")


def test_another_size_than_the_known_one_is_refused_at_once(server, body, tmp_path):
    with pytest.raises(InputError, match=r"offers 300000 bytes, but x\.bin has 7\. It is a different file"):
        download(described(server, size=7), tmp_path / "x.bin")
    assert leftovers(tmp_path) == []


def test_a_declared_size_that_no_disk_holds_is_refused_before_anything_is_written(server, body, tmp_path):
    server.lie = 10**18
    with pytest.raises(InputError, match=r"The rest of x.bin needs 1e\+06 TB, but .* are free"):
        download(described(server), tmp_path / "x.bin")
    assert not part_of(tmp_path / "x.bin").exists()


def test_a_declared_size_that_is_too_large_is_not_believed(server, body, tmp_path):
    server.lie = len(body) + 10
    with pytest.raises(InputError, match=r"the connection was lost\. .* are kept"):
        download(described(server, body), tmp_path / "x.bin")
    assert not (tmp_path / "x.bin").exists()


def test_a_declared_size_that_is_too_small_gives_no_file(server, body, tmp_path):
    server.lie = 1000
    with pytest.raises(InputError, match="sha256"):
        download(described(server, body), tmp_path / "x.bin")
    assert leftovers(tmp_path) == []


def test_nobody_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("nearid.lab.data.fetch.PAUSE", 0.0)
    said = []
    with pytest.raises(Unreachable) as refused:
        download(RemoteFile("x", "http://127.0.0.1:9/x"), tmp_path / "x", say=said.append)
    assert str(refused.value) == (
        "x could not be downloaded from http://127.0.0.1:9/x: there is no connection to 127.0.0.1."
    )
    assert said == ["x: there is no connection to 127.0.0.1; trying again"] * (ATTEMPTS - 1)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (requests.exceptions.ProxyError, "the proxy refuses a connection to example.org"),
        (requests.exceptions.SSLError, "its certificate is not accepted"),
        (requests.exceptions.ConnectTimeout, "example.org does not answer"),
        (requests.exceptions.ReadTimeout, "example.org does not answer"),
        (requests.exceptions.ConnectionError, "there is no connection to example.org"),
    ],
)
def test_silence_is_told_in_words(tmp_path, monkeypatch, error, words):
    def get(*_, **__):
        raise error("HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded")

    monkeypatch.setattr("nearid.lab.data.fetch.PAUSE", 0.0)
    monkeypatch.setattr("requests.get", get)
    said = []
    with pytest.raises(Unreachable, match=words) as refused:
        download(RemoteFile("x", "https://example.org/x"), tmp_path / "x", say=said.append)
    assert len(said) == ATTEMPTS - 1 and not any("Pool" in text for text in [*said, str(refused.value)])


def test_what_was_kept_is_told_when_the_server_is_gone(server, body, tmp_path):
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    said = []
    with pytest.raises(InputError, match="131 kB are kept"):
        download(described(server, body), tmp_path / "x.bin", say=said.append)
    assert any("stopped after" in text or "the connection was lost" in text for text in said)
    server.close()
    with pytest.raises(Unreachable, match=r"there is no connection to 127\.0\.0\.1\. 131 kB are kept; run the same"):
        download(described(server, body), tmp_path / "x.bin")


def test_progress_counts_megabytes(server, tmp_path):
    server.files["/x.bin"] = bytes(3_500_000)
    stages, ticks = [], []
    download(
        described(server),
        tmp_path / "x.bin",
        progress=lambda name, steps: stages.append((name, steps)) or (lambda note="": ticks.append(1)),
    )
    assert stages == [("x.bin (MB)", 4)] and len(ticks) == 3


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
    assert server.seen == [] and "is already on this machine" in said[0]


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
    assert find(mine) is None and left_behind(mine) == "65.5 kB are kept; run the same command to continue"
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
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz has the sha256 .* is damaged") as refused:
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
    with pytest.raises(InputError, match=r"again, download .* with a browser.* --from FILE"):
        fetch(FALCOR3D, again=True)


def test_what_the_user_keeps_elsewhere_is_not_replaced(home, rng, tmp_path):
    folder = home("coil20")
    zipped(folder / "coil-20-proc.zip", {"a": "mine"})
    other = zipped(tmp_path / "other.zip", {"a": "other"})
    for options in ({"given": (other,)}, {"again": True}):
        with pytest.raises(InputError, match=r"is read from .*given/coil20, below the folder that NEARID_DATA names"):
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
    assert any("The address is a mirror" in text for text in said)
    (tmp_path / "source").mkdir()
    write_mnist(tmp_path / "source", rng)
    paths = [tmp_path / "source" / file.name for file in MNIST.files]
    mine = served(server, MNIST, [path.read_bytes() for path in paths])
    said.clear()
    fetch(mine, given=tuple(paths[:2]), say=said.append)
    assert [text for text in said if "mirror" in text] == [f"MNIST: {DOUBTFUL['mnist'].why}"]


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
    with pytest.raises(InputError, match=r"holiday\.zip does not contain Falcor3D_down128/train-rec\.labels"):
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
