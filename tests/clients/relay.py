"""A relay in front of a server whose model is too small to decide by itself when to call a tool.

Of a request with tools it changes `tool_choice` alone, where the client leaves it open: "required" while no result of a
tool stands behind the last message of the user, "none" afterwards. Answers pass through as they come.
"""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def is_answered(body):
    """Whether a result of a tool stands behind the last message of the user; of a chat, or of input to responses."""
    turns = body.get("messages") or body.get("input")
    for turn in reversed(turns if isinstance(turns, list) else []):
        if turn.get("role") == "tool" or turn.get("type") == "function_call_output":
            return True
        if turn.get("role") == "user":
            return False
    return False


def tool_first(body):
    """The request as it goes on."""
    if body.get("tools") and body.get("tool_choice") in (None, "auto"):
        return {**body, "tool_choice": "none" if is_answered(body) else "required"}
    return body


class Relay(ThreadingHTTPServer):
    """Relays to `server` until its block ends; `change` makes of each request's body the one that goes on."""

    daemon_threads = True

    def __init__(self, server, change=tool_first):
        self.server = server
        self.change = change
        super().__init__(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.relay(None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.relay(json.dumps(self.server.change(json.loads(body))).encode())

    def relay(self, body):
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            answer = urllib.request.urlopen(urllib.request.Request(self.server.server + self.path, body, headers))
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
            self.end_headers()
            while piece := answer.read1():
                self.wfile.write(piece)

    def log_message(self, *_):
        pass
