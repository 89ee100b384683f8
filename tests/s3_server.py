"""A real S3 server in a process of its own (moto's) with rows in every format, and a proxy that fails on purpose."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest

from die_with_parent import die_with_parent

BUCKET, KEY = "rows-of-a-test", "wJalrXUtnFEMI"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an S3 server that this test starts on a free port and stops."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'nearid[remote]'")
    pytest.importorskip("moto", reason="moto's S3 server is not installed: pip install 'moto[server]'")
    log = tmp_path_factory.mktemp("s3") / "log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, preexec_fn=die_with_parent)
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
def stored() -> np.ndarray:
    """What the bucket holds."""
    return np.random.default_rng(0).normal(size=(3000, 5))


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stored: np.ndarray) -> Iterator[str]:
    """Address of a bucket with the stored numbers in every format."""
    import pyarrow as pa
    import pyarrow.parquet
    import zarr

    from nearid.arrays import remote

    for name, value in (("ENDPOINT_URL", s3), ("ACCESS_KEY_ID", "anybody"), ("SECRET_ACCESS_KEY", KEY)):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(remote, "PAUSE", 0.01)
    np.save(tmp_path / "x.npy", stored)
    table = pa.table({f"c{at}": stored[:, at] for at in range(5)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=500)
    for version in (2, 3):
        zarr.create_array(tmp_path / f"v{version}.zarr", data=stored, chunks=(500, 5), zarr_format=version)
    zarr.create_array(tmp_path / "sharded.zarr", data=stored, chunks=(250, 5), shards=(1000, 5))
    remote._made.cache_clear()
    files = system()
    files.mkdir(BUCKET)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            files.pipe_file(f"{BUCKET}/{file.relative_to(tmp_path)}", file.read_bytes())
    yield f"s3://{BUCKET}"
    remote._made.cache_clear()
    urlopen(Request(f"{s3}/moto-api/reset", method="POST")).close()


def system(address: str | None = None) -> Any:
    """The store as s3fs sees it, at the address of a server or at that of the environment."""
    import s3fs

    return s3fs.S3FileSystem(endpoint_url=address, skip_instance_cache=True, use_listings_cache=False)


def allow_without_check(server: str, requests: bytes) -> None:
    """From now on the server checks who asks, after so many requests. It knows nobody."""
    plain = {"Content-Type": "text/plain"}
    urlopen(Request(f"{server}/moto-api/reset-auth", data=requests, headers=plain, method="POST")).close()


class Proxy:
    """Passes requests on to a server at `address`. From `fail` on, those for chunks of .zarr directories go wrong."""

    def __init__(self, server: str) -> None:
        self.server, self.address, self.fault, self.left = server, "", "", 0
        self.failed: list[str] = []

    def fail(self, fault: str, times: int = 10**9) -> None:
        """Fail the next requests for chunks: "error" (status 500), "trickle" (20 bytes a second)."""
        self.fault, self.left = fault, times
        self.failed.clear()

    def takes(self, path: str) -> str:
        """The fault of a request."""
        if not self.fault or "/c/" not in path or self.left <= 0:
            return ""
        self.left -= 1
        self.failed.append(path)
        return self.fault


@contextmanager
def through_a_proxy(server: str) -> Iterator[Proxy]:
    """A proxy on a free port of this machine."""
    proxy, stopped = Proxy(server), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fault = proxy.takes(self.path)
            if fault == "error":
                self.send_response(500)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            upstream = HTTPConnection(proxy.server.removeprefix("http://"), timeout=30)
            upstream.request(self.command, self.path, headers=dict(self.headers))
            answer = upstream.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                    self.send_header(name, value)
            # The length of an answer to HEAD is that of the object.
            self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(body)))
            self.end_headers()
            upstream.close()
            for start in range(0, len(body), 1 if fault else max(len(body), 1)):
                self.wfile.write(body[start : start + (1 if fault else len(body))])
                if fault and stopped.wait(0.05):
                    return

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    own = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    own.daemon_threads = True
    own.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that gave up
    proxy.address = f"http://127.0.0.1:{own.server_address[1]}"
    thread = threading.Thread(target=own.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        stopped.set()
        own.shutdown()
        own.server_close()
