"""What the drivers have in common: a process that has a peer generate, and says when tokens came.

It writes one JSON object a line: first what it is, then the answer to each request that it reads, a JSON object a line, too.
A request has the prompt's `tokens`, how many new ones (`count`), and the `way`: "decode", without drafts; "undrafted", the
same by the call that also drafts; "lookup", drafts copied from the text; "assisted", drafts of another model, of another
vocabulary. `drafts` are so many tokens a round, None for what the peer chooses.
"""

import json
import sys
import time


class Cannot(Exception):
    """What the peer does not do, in words."""


class Moments:
    """When tokens came, in seconds since the request."""

    def __init__(self):
        self.began = time.perf_counter()
        self.seconds = []
        self.tokens = []

    def came(self, tokens):
        """Notes tokens that came together."""
        tokens = [int(token) for token in tokens]
        self.seconds += [time.perf_counter() - self.began] * len(tokens)
        self.tokens += tokens

    def said(self):
        return {"seconds": self.seconds, "tokens": self.tokens}


def peak_mib(process="self"):
    """The most memory that a process held at once, in MiB, mapped files included."""
    with open(f"/proc/{process}/status", encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def say(what):
    print(json.dumps(what), flush=True)


def serve(subject):
    """Answers requests until there are no more."""
    say({"version": subject.version, "command": subject.command, "weights": subject.weights})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "memory" in request:
                say({"mib": subject.memory_mib()})
            elif "text" in request:
                say({"tokens": subject.tokens_of(request["text"], request["chat"])})
            else:
                say(subject.generate(**request).said())
        except Cannot as why:
            say({"cannot": str(why)})
