"""A service that answers as docs/reference/serving.md says, with given answers."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from heed.service import page
from heed.service.http.app import HEADERS

MODELS = {
    "models": [
        {"name": "ko-en", "source": "ko", "target": "en", "directions": 1, "kind": "transformer", "attention": True}
    ],
    "directions": [
        {"sources": ["ko", "en"], "targets": ["en", "ko"], "through": None},
        {"sources": ["ko"], "targets": ["de"], "through": "en"},
    ],
    "languages": [
        {"code": "ko", "name": "Korean"},
        {"code": "en", "name": "English"},
        {"code": "de", "name": "German"},
    ],
    "limits": {"characters": 100000, "texts": 500, "bytes": 1048576, "seconds": 60.0},
    "files": [".txt", ".md", ".html", ".srt", ".tsv", ".docx"],
    "keys": False,
    "runs": True,
    "version": "0.1.0",
}


class Fake:
    """Serves the page, and for each path of the API what `answers[path](body)` returns; `asked` records the requests."""

    def __init__(self):
        self.answers, self.asked, self.wait = {"/v1/models": lambda body: MODELS}, [], 0.0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def bodies(self, path):
        return [body for other, body in self.asked if other == path]

    def _answer(self, path, body):
        self.asked.append((path, body))
        if path in self.answers:
            time.sleep(self.wait)
            found = self.answers[path](body)
            status = found.pop("status", 200) if isinstance(found, dict) else 200
            return status, "application/json", json.dumps(found, ensure_ascii=False).encode()
        asset = page.asset(path.removeprefix("/assets/") if path != "/" else "index.html")
        return (200, asset[1], asset[0]) if asset else (404, "application/json", b'{"error": "no such place"}')

    def _handler(fake):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.reply(None)

            def do_POST(self):
                self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def reply(self, body):
                status, kind, data = fake._answer(unquote(urlsplit(self.path).path), body)
                try:
                    self.send_response(status)
                    for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": len(data)}.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the page has changed its mind

            def log_message(self, *parts):
                pass

        return Handler
