"""Servers that rows talk to, each a process that a row can stop or kill: `servers.py s3 PORT`,
`servers.py metrics PORT`."""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

OBJECTS = {}
LOCK = threading.Lock()


class S3(BaseHTTPRequestHandler):
    """As much of S3 as a load needs: objects in memory, without looking at signatures."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def split(self):
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        return bucket, key, parse_qs(parts.query, keep_blank_values=True)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_PUT(self):
        _, key, _ = self.split()
        body = self.body()
        with LOCK:
            OBJECTS[key] = body
        self.answer(200, headers=[("ETag", '"0"')])

    def do_POST(self):
        body = self.body().decode()
        for part in body.split("<Key>")[1:]:
            with LOCK:
                OBJECTS.pop(part.split("</Key>")[0], None)
        self.answer(200, b"<DeleteResult></DeleteResult>")

    def do_DELETE(self):
        _, key, _ = self.split()
        with LOCK:
            OBJECTS.pop(key, None)
        self.answer(204)

    def do_GET(self):
        _, key, query = self.split()
        if not key:
            return self.list(query)
        with LOCK:
            body = OBJECTS.get(key)
        if body is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        asked = self.headers.get("Range")
        if not asked:
            return self.answer(200, body, [("ETag", '"0"')])
        first, last = asked.split("=")[1].split("-")
        part = body[int(first) : int(last) + 1]
        self.answer(206, part, [("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}")])

    def do_HEAD(self):
        _, key, _ = self.split()
        with LOCK:
            body = OBJECTS.get(key)
        if body is None and key:
            return self.answer(404)
        self.answer(200, headers=[("Content-Length", str(len(body or b""))), ("ETag", '"0"')])

    def list(self, query):
        prefix = query.get("prefix", [""])[0]
        most = int(query.get("max-keys", ["1000"])[0])
        with LOCK:
            keys = sorted(key for key in OBJECTS if key.startswith(prefix))[:most]
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(OBJECTS.get(key, b''))}</Size></Contents>" for key in keys
        )
        text = f"<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><IsTruncated>false</IsTruncated><KeyCount>{len(keys)}</KeyCount>{entries}</ListBucketResult>"
        self.answer(200, text.encode())


class Drip(BaseHTTPRequestHandler):
    """Metrics that come a byte a second, and never to an end."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"#")
                self.wfile.flush()
                time.sleep(1)
        except OSError:
            pass


def main():
    kind, port = sys.argv[1], int(sys.argv[2])
    handler = {"s3": S3, "metrics": Drip}[kind]
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
