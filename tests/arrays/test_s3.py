"""Reading from a real S3 server in a process of its own: moto's."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from nearid.arrays import open_rows, remote
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import open_engine

pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'nearid[remote]'")
pytest.importorskip("moto", reason="moto's S3 server is not installed: pip install 'moto[server]'")
zarr = pytest.importorskip("zarr")

BUCKET, KEY = "rows-of-a-test", "wJalrXUtnFEMI"
NAMES = ["x.npy", "x.parquet", "v2.zarr", "v3.zarr", "sharded.zarr"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an S3 server that this test starts on a free port and stops."""
    log = tmp_path_factory.mktemp("s3") / "log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        yield _announced(log, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _announced(log: Path, process: "subprocess.Popen[bytes]") -> str:
    for _ in range(600):
        found = [word for word in log.read_text().split() if word.startswith("http://127.0.0.1:")]
        if found:
            return found[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.skip(f"moto's server did not start: {log.read_text()[-300:]}")


@pytest.fixture
def numbers() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3000, 5))


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, numbers: np.ndarray) -> Iterator[str]:
    """Address of a bucket with the numbers in every format."""
    import s3fs

    for name, value in (("ENDPOINT_URL", server), ("ACCESS_KEY_ID", "anybody"), ("SECRET_ACCESS_KEY", KEY)):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(remote, "PAUSE", 0.01)
    np.save(tmp_path / "x.npy", numbers)
    table = pa.table({f"c{at}": numbers[:, at] for at in range(5)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=500)
    for version in (2, 3):
        zarr.create_array(tmp_path / f"v{version}.zarr", data=numbers, chunks=(500, 5), zarr_format=version)
    zarr.create_array(tmp_path / "sharded.zarr", data=numbers, chunks=(250, 5), shards=(1000, 5))
    remote._made.cache_clear()
    system = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    system.mkdir(BUCKET)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            system.pipe_file(f"{BUCKET}/{file.relative_to(tmp_path)}", file.read_bytes())
    yield f"s3://{BUCKET}"
    remote._made.cache_clear()
    urlopen(Request(f"{server}/moto-api/reset", method="POST")).close()


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_a_bucket_are_those_of_the_file(store: str, tmp_path: Path, numbers: np.ndarray, name: str) -> None:
    rows = open_rows(f"{store}/{name}")
    np.testing.assert_array_equal(rows.read(0, 3000), numbers)
    some = np.array([2999, 3, 3, 1200])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).take(some), numbers[some])
    assert rows.fingerprint() == open_rows(tmp_path / name).fingerprint()


def test_an_array_of_a_group(store: str, numbers: np.ndarray, tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("a/b", data=numbers, chunks=(1000, 5))
    _system().put(str(tmp_path / "g.zarr"), f"{BUCKET}/g.zarr", recursive=True)
    np.testing.assert_array_equal(open_rows(f"{store}/g.zarr:a/b").read(5, 9), numbers[5:9])


@pytest.mark.parametrize("name", ["v2.zarr/2.0", "v3.zarr/c/2/0", "sharded.zarr/c/1/0"])
def test_a_missing_chunk_is_refused_when_the_array_is_opened(store: str, name: str) -> None:
    _system().rm_file(f"{BUCKET}/{name}")
    with pytest.raises(InputError, match=r"lacks [14] of its (6|12) chunks.*write_empty_chunks=True"):
        open_rows(f"{store}/{name.partition('/')[0]}")


def test_a_chunk_that_vanishes_or_changes_later_is_refused(store: str) -> None:
    rows, system = open_rows(f"{store}/v3.zarr"), _system()
    system.copy(f"{BUCKET}/v3.zarr/c/1/0", f"{BUCKET}/v3.zarr/c/0/0")
    with pytest.raises(InputError, match="changed while it was read"):
        rows.read(0, 10)
    system.rm_file(f"{BUCKET}/v3.zarr/c/2/0")
    with pytest.raises(InputError, match=r"lacks the chunk c/2/0"):
        rows.read(1000, 1010)


@pytest.mark.parametrize("name", ["nothing.npy", "nothing.parquet", "nothing.zarr"])
def test_a_missing_object_or_bucket(store: str, name: str) -> None:
    for place in (f"{store}/{name}", f"s3://no-such-bucket-here/{name}"):
        with pytest.raises(InputError, match=name):
            open_rows(place)


def test_wrong_credentials(server: str, store: str) -> None:
    # From now on the server checks who asks. It knows nobody.
    _allow_without_check(server, b"0")
    try:
        with pytest.raises(InputError, match=r"refuses access\. Set AWS_ACCESS_KEY_ID") as caught:
            open_rows(f"{store}/x.npy")
        assert KEY not in str(caught.value)
    finally:
        _allow_without_check(server, b"inf")


def _allow_without_check(server: str, requests: bytes) -> None:
    plain = {"Content-Type": "text/plain"}
    urlopen(Request(f"{server}/moto-api/reset-auth", data=requests, headers=plain, method="POST")).close()


def test_no_credentials(store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    remote._made.cache_clear()
    with pytest.raises(InputError, match=r"no credentials were found"):
        open_rows(f"{store}/x.npy")


@pytest.mark.parametrize("fault", ["error", "silent"])
def test_a_failing_server(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    from web_server import serving

    monkeypatch.setattr(remote, "SECONDS", 0.5)
    with serving(tmp_path) as web:
        web.fail(fault)
        monkeypatch.setenv("AWS_ENDPOINT_URL", web.address)
        remote._made.cache_clear()
        with pytest.raises(InputError, match=r"could not be read in 3 attempts"):
            open_rows(f"{store}/x.npy")
        assert 1 <= len(web.requests) <= 3 * remote.ATTEMPTS


def test_nothing_listens_at_the_endpoint(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    remote._made.cache_clear()
    with pytest.raises(InputError, match=r"could not be read in 3 attempts.*127\.0\.0\.1:9"):
        open_rows(f"{store}/x.npy")


def test_dask_workers_read_the_bucket_themselves(store: str) -> None:
    pytest.importorskip("distributed")
    rows = open_rows(f"{store}/v3.zarr")

    def sums(engine: Engine) -> list[np.ndarray]:
        items = [(0, 1000), (1000, 2000), (2000, 3000)]
        return engine.reduce(_sum, items, rows, merge=np.add)

    with open_engine("local") as local, open_engine("dask") as cluster:
        np.testing.assert_array_equal(sums(cluster), sums(local))


def _sum(item: tuple[int, int], rows: object) -> list[np.ndarray]:
    return [rows.read(*item).sum(axis=0)]  # type: ignore[attr-defined]


def _system() -> object:
    import s3fs

    return s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
