"""Addresses where no scheduler answers: one sentence in bounded time, whatever listens there."""

import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("distributed", reason="the extra `distributed` is not installed")

import nearid.engines.cluster as room
from nearid.base.errors import EngineError
from nearid.engines.address import check_scheduler, quiet_logs, within


@pytest.fixture
def nothing():
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return port


@pytest.fixture
def silent():
    """The port of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def web():
    """The port of a web server, which greets at once in a way that Dask takes for a huge message."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet():
            while True:
                try:
                    with server.accept()[0] as client:
                        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                except OSError:
                    return

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture
def patient_web():
    """The port of a web server that waits for the end of a request."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("nothing", "Timed out|refused"),
        ("silent", "accepts the connection, but does not answer"),
        ("web", "another kind of server answers"),
    ],
)
def test_what_is_no_scheduler_is_told(request, monkeypatch, capfd, kind, reason):
    limit = room.ANSWER
    monkeypatch.setattr(room, "ANSWER", 1)
    address = f"tcp://127.0.0.1:{request.getfixturevalue(kind)}"
    began = time.monotonic()
    with pytest.raises(EngineError, match=rf"No Dask scheduler can be reached at {address} \(.*({reason})"):
        room.Cluster(address)
    assert capfd.readouterr().err == ""
    # The rest is the start of the loop. With the usual limit, the sentence comes within 20 seconds.
    rest = time.monotonic() - began - 1
    assert limit + rest < 20


def test_a_web_server_that_waits_is_told(patient_web, monkeypatch):
    monkeypatch.setattr(room, "ANSWER", 1)
    with pytest.raises(EngineError, match="No Dask scheduler can be reached"):
        room.Cluster(f"tcp://127.0.0.1:{patient_web}")


def test_a_worker_is_no_scheduler(dask_client):
    address = next(iter(dask_client.scheduler_info()["workers"]))
    with pytest.raises(EngineError, match="a Dask worker answers"):
        check_scheduler(address, 10)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1", "tcp://:", "tls://127.0.0.1:1", "pigeon://a:1"])
def test_addresses_that_cannot_be_used_are_told(address):
    with pytest.raises(EngineError, match="No Dask scheduler can be reached at"):
        check_scheduler(address, 1)


def test_waits_end():
    assert within(10, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 / 0)
    release = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer for 0\.05 seconds"):
        within(0.05, lambda: release.wait(60))
    release.set()
    assert time.monotonic() - began < 30


def test_logs_are_quiet_for_a_while(caplog):
    logger = logging.getLogger("distributed.client")
    before = logger.level, logging.getLogger("distributed").level
    with quiet_logs():
        assert not logger.isEnabledFor(logging.CRITICAL)
    assert (logger.level, logging.getLogger("distributed").level) == before
