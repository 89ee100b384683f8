"""Downloads from a server that fails in every way."""

import gzip
import hashlib

import numpy as np
import pytest
import requests

from nearid.base.errors import InputError
from nearid.lab.data.base import RemoteFile
from nearid.lab.data.download import ATTEMPTS, BLOCK, Unreachable, download, part_of


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
    assert server.seen == [("/x.bin", "bytes=131072-")] and "going on after 131 kB" in said[0]
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
        download(described(server), tmp_path / "x.bin")
    new = server.files["/x.bin"] = body[::-1]
    said = []
    download(described(server, new), tmp_path / "x.bin", say=said.append)
    assert (tmp_path / "x.bin").read_bytes() == new and any("beginning anew" in text for text in said)


def test_a_file_that_became_shorter_is_begun_anew(server, body, tmp_path):
    server.tag = ""
    server.cut = [2 * BLOCK] + [0] * (ATTEMPTS - 1)
    with pytest.raises(InputError):
        download(described(server), tmp_path / "x.bin")
    server.files["/x.bin"] = body[:50]
    download(described(server, body[:50]), tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == body[:50]


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
    with pytest.raises(InputError, match=r"gives 404 Not Found\. Is the address still right\?"):
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
    with pytest.raises(InputError, match=r"offers 300000 bytes, but x\.bin has 7: it is another file"):
        download(described(server, size=7), tmp_path / "x.bin")
    assert leftovers(tmp_path) == []


def test_a_declared_size_that_no_disk_holds_is_refused_before_anything_is_written(server, body, tmp_path):
    server.lie = 10**18
    with pytest.raises(InputError, match=r"needs 1e\+06 TB more, but .* are free"):
        download(described(server), tmp_path / "x.bin")
    assert not part_of(tmp_path / "x.bin").exists()


def test_a_declared_size_that_is_too_large_is_not_believed(server, body, tmp_path):
    server.lie = len(body) + 10
    with pytest.raises(InputError, match=r"broke off: .* are kept"):
        download(described(server, body), tmp_path / "x.bin")
    assert not (tmp_path / "x.bin").exists()


def test_a_declared_size_that_is_too_small_gives_no_file(server, body, tmp_path):
    server.lie = 1000
    with pytest.raises(InputError, match="sha256"):
        download(described(server, body), tmp_path / "x.bin")
    assert leftovers(tmp_path) == []


def test_nobody_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("nearid.lab.data.download.PAUSE", 0.0)
    said = []
    with pytest.raises(Unreachable) as refused:
        download(RemoteFile("x", "http://127.0.0.1:9/x"), tmp_path / "x", say=said.append)
    assert str(refused.value) == (
        "x could not be downloaded from http://127.0.0.1:9/x: there is no connection to 127.0.0.1."
    )
    assert said == ["x: there is no connection to 127.0.0.1; trying again"] * (ATTEMPTS - 1)
    with pytest.raises(InputError, match=r"nonsense://x could not be asked for \(InvalidSchema\)"):
        download(RemoteFile("x", "nonsense://x"), tmp_path / "x")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (requests.exceptions.ProxyError, "the proxy gives no connection to example.org"),
        (requests.exceptions.SSLError, "its certificate is not accepted"),
        (requests.exceptions.ConnectTimeout, "example.org does not answer"),
        (requests.exceptions.ReadTimeout, "example.org does not answer"),
        (requests.exceptions.ConnectionError, "there is no connection to example.org"),
    ],
)
def test_silence_is_told_in_words(tmp_path, monkeypatch, error, words):
    def get(*_, **__):
        raise error("HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded")

    monkeypatch.setattr("nearid.lab.data.download.PAUSE", 0.0)
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
