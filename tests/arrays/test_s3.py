"""Reading from a real S3 server in a process of its own: moto's."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows, remote
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import open_engine
from s3_server import BUCKET, KEY, allow_without_check, system

zarr = pytest.importorskip("zarr")
NAMES = ["x.npy", "x.parquet", "v2.zarr", "v3.zarr", "sharded.zarr"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_a_bucket_are_those_of_the_file(bucket: str, tmp_path: Path, stored: np.ndarray, name: str) -> None:
    rows = open_rows(f"{bucket}/{name}")
    np.testing.assert_array_equal(rows.read(0, 3000), stored)
    some = np.array([2999, 3, 3, 1200])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).take(some), stored[some])
    assert rows.fingerprint() == open_rows(tmp_path / name).fingerprint()


def test_an_array_of_a_group(bucket: str, stored: np.ndarray, tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("a/b", data=stored, chunks=(1000, 5))
    system().put(str(tmp_path / "g.zarr"), f"{BUCKET}/g.zarr", recursive=True)
    np.testing.assert_array_equal(open_rows(f"{bucket}/g.zarr:a/b").read(5, 9), stored[5:9])


@pytest.mark.parametrize("name", ["v2.zarr/2.0", "v3.zarr/c/2/0", "sharded.zarr/c/1/0"])
def test_a_missing_chunk_is_refused_when_the_array_is_opened(bucket: str, name: str) -> None:
    system().rm_file(f"{BUCKET}/{name}")
    with pytest.raises(InputError, match=r"lacks [14] of its (6|12) chunks.*write_empty_chunks=True"):
        open_rows(f"{bucket}/{name.partition('/')[0]}")


def test_a_chunk_that_vanishes_or_changes_later_is_refused(bucket: str) -> None:
    rows, files = open_rows(f"{bucket}/v3.zarr"), system()
    files.copy(f"{BUCKET}/v3.zarr/c/1/0", f"{BUCKET}/v3.zarr/c/0/0")
    with pytest.raises(InputError, match="changed while it was read"):
        rows.read(0, 10)
    files.rm_file(f"{BUCKET}/v3.zarr/c/2/0")
    with pytest.raises(InputError, match=r"lacks the chunk c/2/0"):
        rows.read(1000, 1010)


@pytest.mark.parametrize("name", ["nothing.npy", "nothing.parquet", "nothing.zarr"])
def test_a_missing_object_or_bucket(bucket: str, name: str) -> None:
    for place in (f"{bucket}/{name}", f"s3://no-such-bucket-here/{name}"):
        with pytest.raises(InputError, match=name):
            open_rows(place)


def test_wrong_credentials(s3: str, bucket: str) -> None:
    # From now on the server checks who asks. It knows nobody.
    allow_without_check(s3, b"0")
    try:
        with pytest.raises(InputError, match=r"refuses access\. Set AWS_ACCESS_KEY_ID") as caught:
            open_rows(f"{bucket}/x.npy")
        assert KEY not in str(caught.value)
    finally:
        allow_without_check(s3, b"inf")


def test_no_credentials(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    remote._made.cache_clear()
    with pytest.raises(InputError, match=r"no credentials were found"):
        open_rows(f"{bucket}/x.npy")


@pytest.mark.parametrize("fault", ["error", "silent"])
def test_a_failing_server(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    from web_server import serving

    monkeypatch.setattr(remote, "SECONDS", 0.5)
    with serving(tmp_path) as web:
        web.fail(fault)
        monkeypatch.setenv("AWS_ENDPOINT_URL", web.address)
        remote._made.cache_clear()
        with pytest.raises(InputError, match=r"could not be read in 3 attempts"):
            open_rows(f"{bucket}/x.npy")
        assert 1 <= len(web.requests) <= 3 * remote.ATTEMPTS


def test_nothing_listens_at_the_endpoint(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    remote._made.cache_clear()
    with pytest.raises(InputError, match=r"could not be read in 3 attempts.*127\.0\.0\.1:9"):
        open_rows(f"{bucket}/x.npy")


def test_dask_workers_read_the_bucket_themselves(bucket: str) -> None:
    pytest.importorskip("distributed")
    rows = open_rows(f"{bucket}/v3.zarr")

    def sums(engine: Engine) -> list[np.ndarray]:
        items = [(0, 1000), (1000, 2000), (2000, 3000)]
        return engine.reduce(_sum, items, rows, merge=np.add)

    with open_engine("local") as local, open_engine("dask") as cluster:
        np.testing.assert_array_equal(sums(cluster), sums(local))


def _sum(item: tuple[int, int], rows: object) -> list[np.ndarray]:
    return [rows.read(*item).sum(axis=0)]  # type: ignore[attr-defined]
