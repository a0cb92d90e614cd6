"""The honest client, a program of its own so that the hostile ones do not slow it: whole requests of 64 tokens, back
to back, each over a connection of its own; and beside them /livez of each admin port.

    honest.py HTTP_PORT TOKEN ADMIN_PORT...    (TOKEN may be empty)

Each answer is a line of JSON. It ends when it is told to.
"""

import http.client
import json
import sys
import threading
import time

TOKENS = 64
SEEDS = 4
# Longest that an answer may take, and a probe: the chart's is 5 s.
PATIENCE, PROBE_PATIENCE = 30, 5
PROBE_PAUSE = 0.1


def tell(kind, began, error, lock=threading.Lock()):
    line = json.dumps({"kind": kind, "began": began, "ended": time.monotonic(), "error": error})
    with lock:
        print(line, flush=True)


class Requests:
    """Requests whose answers must be the same each time."""

    def __init__(self, port, token):
        self.port = port
        self.headers = {"content-type": "application/json"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"
        self.texts = {}

    def ask(self, seed):
        """What was wrong with an answer; None if nothing."""
        body = {"prompt": "Once upon a time", "max_tokens": TOKENS, "ignore_eos": True, "seed": seed}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), self.headers)
            answer = connection.getresponse()
            read = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            connection.close()
        if answer.status != 200:
            return f"HTTP {answer.status}: {read[:200].decode(errors='replace')}"
        said = json.loads(read)
        if said["usage"]["completion_tokens"] != TOKENS:
            return f"{said['usage']['completion_tokens']} tokens instead of {TOKENS}"
        text = said["choices"][0]["text"]
        return None if self.texts.setdefault(seed, text) == text else "another text than before for the same seed"

    def run(self):
        turn = 0
        while True:
            began = time.monotonic()
            error = self.ask(turn % SEEDS)
            tell("request", began, error)
            turn += 1
            if error:
                time.sleep(0.1)


def probe(port):
    while True:
        began, error = time.monotonic(), None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_PATIENCE)
        try:
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                error = f"HTTP {answer.status}"
        except (OSError, http.client.HTTPException) as failure:
            error = f"{type(failure).__name__}: {failure}"
        finally:
            connection.close()
        tell("livez", began, error)
        time.sleep(PROBE_PAUSE)


def main():
    port, token, *admins = sys.argv[1:]
    for admin in admins:
        threading.Thread(target=probe, args=(int(admin),), daemon=True).start()
    Requests(int(port), token).run()


if __name__ == "__main__":
    main()
