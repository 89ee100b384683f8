"""A small web server on this machine for the tests of addresses. It counts what it sends and can fail on purpose."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Web:
    """Files of a folder at `address`. `fault` is what the server does to every request from now on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.fault, self.left = folder, "", 0
        self.requests: list[str] = []
        self.sent = 0
        self.address = ""

    def fail(self, fault: str, times: int = 10**9) -> None:
        """Fail the next requests: "error", "cut", "silent", "trickle" (20 bytes a second), "whole", "forbidden"."""
        self.fault, self.left = fault, times
        self.requests.clear()


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    """Serve a folder on a free port of this machine."""
    web, stopped = Web(folder), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            web.requests.append(self.path)
            fault = web.fault if web.left > 0 else ""
            web.left -= 1
            file = web.folder / self.path.partition("?")[0].lstrip("/")
            if fault == "silent":
                stopped.wait(30)
                self.close_connection = True
                return
            if fault in ("error", "forbidden") or not file.is_file():
                self.send_response({"error": 500, "forbidden": 403}.get(fault, 404))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.answer(file.read_bytes(), fault, str(file.stat().st_mtime_ns))

        do_HEAD = do_GET

        def answer(self, body: bytes, fault: str, mark: str) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked and fault != "whole":
                first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
                body = body[first : last + 1]
            else:
                self.send_response(200)
            self.send_header("ETag", mark)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            body = body[: len(body) // 2] if fault == "cut" else body
            while fault == "trickle" and body and not stopped.wait(0.05):
                self.wfile.write(body[:1])
                body = body[1:]
            web.sent += len(body)
            self.wfile.write(body)
            if fault == "cut":
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()
