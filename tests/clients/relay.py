"""A relay in front of a server, that chooses when a model calls tools.

The real chat model of these tests is too weak to choose: left free, it calls nothing, and where it must call, it does so in
every turn, and an agent never ends. So the relay changes `tool_choice` of a request with tools, where the client leaves the
choice to the model: to `required` while no result of a tool stands behind the last message of the user, and to `none` then.
Which tool is called, and with which arguments, the model writes itself. Nothing else of a request is changed, and nothing of
an answer, which is passed on as it comes.
"""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


def has_result(request):
    """Whether a result of a tool stands behind the last message of the user."""
    turns = request.get("messages") or request.get("input")
    found = False
    for turn in turns if isinstance(turns, list) else []:
        if turn.get("role") == "user":
            found = False
        found |= turn.get("role") == "tool" or turn.get("type") == "function_call_output"
    return found


def chosen(body):
    """The request with its choice."""
    request = json.loads(body)
    if not request.get("tools") or request.get("tool_choice") not in (None, "auto"):
        return body
    return json.dumps({**request, "tool_choice": "none" if has_result(request) else "required"}).encode()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.pass_on(None)

    def do_POST(self):
        self.pass_on(chosen(self.rfile.read(int(self.headers["Content-Length"]))))

    def pass_on(self, body):
        served = http.client.HTTPConnection(self.server.behind)
        served.request(self.command, self.path, body, {"Content-Type": "application/json"})
        answer = served.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "date"):
                self.send_header(name, value)
        self.end_headers()
        while part := answer.read1(65536):
            self.wfile.write(part)
        served.close()

    def log_message(self, *_):
        """Says nothing."""


class Relay:
    """Relays to the server at `url` until its block ends."""

    def __init__(self, url):
        self.relay = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.relay.behind = urlsplit(url).netloc

    def __enter__(self):
        threading.Thread(target=self.relay.serve_forever).start()
        return self

    def __exit__(self, *_):
        self.relay.shutdown()
        self.relay.server_close()

    def url(self):
        return f"http://127.0.0.1:{self.relay.server_port}"
