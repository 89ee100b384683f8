"""A server to get data sets from."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server:
    """A server of files for downloads, with ranges, whose answers can be made to fail.

    Attributes
    ----------
    files : dict of path to bytes
    seen : list of (path, Range header or None)
    cut : list of int
        How many bytes of a body to send before the connection is closed, for the next answers.
    lie : int or None
        Content-Length to declare.
    status : list of int
        What the next answers say instead of 200.
    ranges : bool
        Whether ranges are understood.
    encoding : str
        Content-Encoding that bodies are said to have.
    chunked : bool
        Whether bodies are sent in chunks, without a length.
    """

    def __init__(self):
        self.files, self.seen, self.cut, self.status = {}, [], [], []
        self.lie, self.ranges, self.tag = None, True, '"one"'
        self.encoding, self.chunked = "", False
        server = self

        class Handler(BaseHTTPRequestHandler):
            # Chunks are known from this version on.
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.answer(self)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request):
        asked = request.headers.get("Range")
        self.seen.append((request.path, asked))
        body = self.files.get(request.path)
        status = self.status.pop(0) if self.status else 200 if body is not None else 404
        if status != 200:
            request.send_error(status)
            return
        start = 0
        if asked and self.ranges and request.headers.get("If-Range", self.tag) == self.tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                request.send_error(416)
                return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if self.tag:
            request.send_header("ETag", self.tag)
        if self.encoding:
            request.send_header("Content-Encoding", self.encoding)
        if self.chunked:
            request.send_header("Transfer-Encoding", "chunked")
        else:
            request.send_header("Content-Length", str(self.lie or len(body) - start))
        request.send_header("Connection", "close")
        request.end_headers()
        sent = body[start:][: self.cut.pop(0) if self.cut else None]
        if self.chunked:
            # The chunk of no bytes is the end, which a cut body does not have.
            sent = b"%x\r\n%s\r\n" % (len(sent), sent) + (b"0\r\n\r\n" if sent == body[start:] else b"")
        request.wfile.write(sent)

    def close(self):
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server(monkeypatch):
    """A server on this machine, and no patience between attempts."""
    monkeypatch.setattr("nearid.lab.data.fetch.PAUSE", 0.0)
    # Not through a proxy.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Server()
    yield made
    made.close()
