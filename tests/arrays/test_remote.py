import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import nearid
from nearid.arrays import open_columns, open_rows, remote
from nearid.arrays.paths import split_key
from nearid.base.addresses import address_of, public
from nearid.base.errors import InputError
from web_server import Web, serving

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
zarr = pytest.importorskip("zarr")

SECRET = "hush"


@pytest.fixture
def numbers() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path, numbers: np.ndarray) -> Path:
    np.save(tmp_path / "x.npy", numbers)
    np.save(tmp_path / "f.npy", np.asfortranarray(numbers))
    columns = {f"c{at}": numbers[:, at] for at in range(numbers.shape[1])}
    columns["id"] = np.array([f"r{row}" for row in range(len(numbers))])
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=500)
    for version in (2, 3):
        zarr.create_array(tmp_path / f"v{version}.zarr", data=numbers, chunks=(500, 5), zarr_format=version)
    zarr.create_array(tmp_path / "sharded.zarr", data=numbers, chunks=(250, 5), shards=(1000, 5))
    return tmp_path


@pytest.fixture
def web(folder: Path) -> Iterator[Web]:
    with serving(folder) as server:
        yield server


@pytest.fixture
def memory(folder: Path) -> Iterator[str]:
    """The same files in the store memory:// of fsspec."""
    system = fsspec.filesystem("memory")
    for file in folder.rglob("*"):
        if file.is_file():
            system.pipe_file(f"/nearid-test/{file.relative_to(folder)}", file.read_bytes())
    yield "memory://nearid-test"
    system.rm("/nearid-test", recursive=True)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SECONDS", 0.3)
    monkeypatch.setattr(remote, "PAUSE", 0.01)


NAMES = ["x.npy", "f.npy", "x.parquet", "v2.zarr", "v3.zarr", "sharded.zarr"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("store", ["web", "memory"])
def test_rows_at_an_address_are_those_of_the_file(
    folder: Path, web: Web, memory: str, numbers: np.ndarray, name: str, store: str
) -> None:
    rows, local = open_rows(f"{web.address if store == 'web' else memory}/{name}"), open_rows(folder / name)
    assert rows.shape == local.shape and rows.dtype == local.dtype and rows.name == name
    np.testing.assert_array_equal(rows.read(0, 3000), numbers)
    np.testing.assert_array_equal(rows.read(499, 1502), numbers[499:1502])
    some = np.array([2999, 3, 3, 1200])
    np.testing.assert_array_equal(rows.take(some), numbers[some])
    assert rows.fingerprint() == local.fingerprint()


@pytest.mark.parametrize("name", NAMES)
def test_each_process_opens_its_own_connection(web: Web, numbers: np.ndarray, name: str) -> None:
    sent = pickle.dumps(open_rows(f"{web.address}/{name}"))
    np.testing.assert_array_equal(pickle.loads(sent).read(10, 20), numbers[10:20])
    assert b"aiohttp" not in sent and b"fsspec" not in sent and b"s3fs" not in sent


@pytest.mark.parametrize("name", ["x.npy", "x.parquet", "v3.zarr"])
def test_only_the_bytes_of_a_block_are_transferred(tmp_path: Path, name: str) -> None:
    x = np.random.default_rng(1).normal(size=(40_000, 8))
    np.save(tmp_path / "x.npy", x)
    table = pa.table({f"c{at}": x[:, at] for at in range(8)})
    pyarrow.parquet.write_table(
        table, tmp_path / "x.parquet", row_group_size=1000, compression="none", use_dictionary=False
    )
    zarr.create_array(tmp_path / "v3.zarr", data=x, chunks=(1000, 8), compressors=None)
    with serving(tmp_path) as web:
        rows = open_rows(f"{web.address}/{name}")
        web.sent = 0
        np.testing.assert_array_equal(rows.read(2000, 4000), x[2000:4000])
        block = 2000 * 8 * 8
        # Beside the numbers, parquet stores headers of pages.
        assert block <= web.sent < 1.1 * block


def test_scattered_rows_that_are_near_each_other_are_one_request(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(60_000, 16))
    np.save(tmp_path / "x.npy", x)
    with serving(tmp_path) as web:
        rows = open_rows(f"{web.address}/x.npy")
        drawn = np.random.default_rng(2).integers(len(x), size=3000)
        web.requests.clear()
        np.testing.assert_array_equal(rows.take(drawn), x[drawn])
        # 7.7 MB in requests of up to 4.2 MB, and one for the state of the file.
        assert len(web.requests) <= 3
        web.sent, distant = 0, np.array([59_000, 10, 10, 30_000, 12])
        web.requests.clear()
        np.testing.assert_array_equal(rows.take(distant), x[distant])
        assert len(web.requests) <= 4 and web.sent < 3 * remote.GAP


def test_opening_reads_a_header_only(web: Web, numbers: np.ndarray) -> None:
    open_rows(f"{web.address}/x.npy")
    assert web.sent < 5 * remote.SLOWEST and web.sent < 2 * numbers.nbytes
    assert len(web.requests) < 10


def test_columns_blocks_and_ids_come_from_addresses_too(web: Web, folder: Path) -> None:
    address = f"{web.address}/x.parquet"
    assert open_rows(address, ids="id").ids[:2].tolist() == ["r0", "r1"]
    assert list(open_columns(address).values) == list(open_columns(folder / "x.parquet").values)
    np.save(folder / "groups.npy", np.repeat(np.arange(30), 100))
    held = open_rows(f"{web.address}/x.npy", blocks=f"{web.address}/groups.npy").blocks
    np.testing.assert_array_equal(held, np.repeat(np.arange(30), 100))
    assert open_rows(address, blocks="id").blocks[0] == "r0"


def test_a_comparison_of_addresses_equals_that_of_files(web: Web, folder: Path) -> None:
    options: dict[str, Any] = {"permutations": 1, "random_state": 0}
    local = nearid.compare(folder / "x.npy", folder / "v3.zarr", **options)
    signed = f"{web.address}/x.npy?X-Signature={SECRET}"
    away = nearid.compare(signed, f"{web.address}/v3.zarr", **options)
    assert away.to_frame().equals(local.to_frame())
    assert SECRET not in str(away.to_dict()) and SECRET not in str(away)
    assert away.provenance["inputs"][0]["source"] == f"{web.address}/x.npy"


@pytest.mark.parametrize("name", ["v2.zarr/2.0", "v3.zarr/c/2/0", "sharded.zarr/c/1/0"])
@pytest.mark.parametrize("store", ["web", "memory"])
def test_a_missing_chunk_is_never_read_as_zeros(folder: Path, web: Web, memory: str, name: str, store: str) -> None:
    (folder / name).unlink()
    fsspec.filesystem("memory").rm(f"/nearid-test/{name}")
    array = name.partition("/")[0]
    with pytest.raises(InputError, match=r"lacks .*chunk.*write_empty_chunks=True"):
        open_rows(f"{web.address if store == 'web' else memory}/{array}").read(0, 3000)


def test_a_missing_chunk_in_a_shard_is_refused(tmp_path: Path) -> None:
    x = np.ones((2000, 5))
    x[250:500] = 0
    zarr.create_array(tmp_path / "s.zarr", data=x, chunks=(250, 5), shards=(1000, 5))
    with serving(tmp_path) as web, pytest.raises(InputError, match=r"s\.zarr lacks 1 of its 8 chunks"):
        open_rows(f"{web.address}/s.zarr").read(0, 2000)


def test_a_change_while_reading_is_an_error(web: Web, folder: Path, memory: str, numbers: np.ndarray) -> None:
    rows = open_rows(f"{web.address}/x.npy")
    np.save(folder / "x.npy", numbers + 1)
    with pytest.raises(InputError, match=r"x\.npy changed while it was read"):
        rows.read(0, 10)
    chunked = open_rows(f"{memory}/v3.zarr")
    system = fsspec.filesystem("memory")
    system.pipe_file("/nearid-test/v3.zarr/c/0/0", system.cat_file("/nearid-test/v3.zarr/c/1/0"))
    with pytest.raises(InputError, match="changed while it was read"):
        chunked.read(0, 10)


@pytest.mark.parametrize("fault", ["error", "cut", "silent", "trickle"])
def test_a_failing_server_is_a_sentence_after_three_attempts(web: Web, hurried: None, fault: str) -> None:
    rows = open_rows(f"{web.address}/x.npy?key={SECRET}")
    web.fail(fault)
    with pytest.raises(InputError, match="could not be read in 3 attempts") as caught:
        rows.read(0, 3000)
    assert len(web.requests) == remote.ATTEMPTS
    assert SECRET not in str(caught.value) and "x.npy" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_recovers_gives_the_same_rows(web: Web, hurried: None, numbers: np.ndarray, name: str) -> None:
    rows = open_rows(f"{web.address}/{name}")
    for fault in ("error", "cut", "silent", "trickle"):
        web.fail(fault, times=1)
        np.testing.assert_array_equal(rows.read(0, 3000), numbers)


def test_a_server_without_ranges_is_refused_before_its_files_are_transferred(web: Web, numbers: np.ndarray) -> None:
    web.fail("whole")
    with pytest.raises(InputError, match=r"does not send parts of files .*Download the file"):
        open_rows(f"{web.address}/x.npy")
    assert len(web.requests) == 1


def test_refused_and_missing_files(web: Web) -> None:
    with pytest.raises(InputError, match=r"There is no http://.*/nothing\.npy") as caught:
        open_rows(f"{web.address}/nothing.npy?key={SECRET}")
    assert SECRET not in str(caught.value)
    web.fail("forbidden")
    with pytest.raises(InputError, match="refuses access") as caught:
        open_rows(f"{web.address.replace('//', f'//me:{SECRET}@')}/x.npy")
    assert SECRET not in str(caught.value) and len(web.requests) == 1


def test_nothing_listens(hurried: None) -> None:
    with pytest.raises(InputError, match="could not be read in 3 attempts"):
        open_rows("http://127.0.0.1:9/x.npy")


def test_other_formats_and_protocols_are_refused() -> None:
    with pytest.raises(InputError, match=r"At an address, nearid reads \.npy, \.parquet, \.zarr"):
        open_rows("s3://bucket/x.pkl")
    with pytest.raises(InputError, match=r"begins with ftp://, which nearid cannot read"):
        open_rows("ftp://host/x.npy")


def test_objects_are_never_unpickled(memory: str, tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    fsspec.filesystem("memory").pipe_file("/nearid-test/o.npy", (tmp_path / "o.npy").read_bytes())
    with pytest.raises(InputError, match="never unpickles"):
        open_rows(f"{memory}/o.npy")


def test_a_declared_size_is_checked(memory: str, folder: Path) -> None:
    whole = (folder / "x.npy").read_bytes()
    system = fsspec.filesystem("memory")
    system.pipe_file("/nearid-test/x.npy", whole[:-100])
    with pytest.raises(InputError, match="truncated or its header is damaged"):
        open_rows(f"{memory}/x.npy")
    system.pipe_file("/nearid-test/x.npy", whole + b"more")
    with pytest.raises(InputError, match="several arrays were saved into it"):
        open_rows(f"{memory}/x.npy")
    system.pipe_file("/nearid-test/x.npy", b"")
    with pytest.raises(InputError, match=r"not a whole \.npy file"):
        open_rows(f"{memory}/x.npy")


def test_without_the_packages_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    remote._made.cache_clear()
    with pytest.raises(InputError, match=r"pip install 'nearid\[remote\]'"):
        open_rows("s3://bucket/x.npy")


def test_several_threads_read_at_once(web: Web, numbers: np.ndarray) -> None:
    rows, failures = open_rows(f"{web.address}/v3.zarr"), []

    def work() -> None:
        try:
            np.testing.assert_array_equal(rows.read(0, 3000), numbers)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_addresses_are_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_of("s3://b/x.npy") == address_of(Path("s3://b/x.npy")) == "s3://b/x.npy"
    assert address_of("HTTPS://h/x.npy") == "https://h/x.npy"
    for local in ("x.npy", "/a/x.npy", "a:b/x.npy", "C:/x.npy", np.zeros(2), None):
        assert address_of(local) is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    assert address_of("s3:/") is None


def test_secrets_are_removed_from_texts() -> None:
    text = f"status 403, url='https://me:{SECRET}@host:80/a/x.npy?sig={SECRET}#{SECRET}' s3://{SECRET}@b/k, a@b?c"
    assert public(text) == "status 403, url='https://host:80/a/x.npy' s3://b/k, a@b?c"


def test_an_entry_follows_the_suffix() -> None:
    assert split_key("s3://b/x.zarr:a/b") == ("s3://b/x.zarr", "a/b")
    assert split_key("https://h:80/x.npy") == ("https://h:80/x.npy", None)
    assert split_key("https://h/x.parquet?s=.npy:a") == ("https://h/x.parquet?s=.npy:a", None)
