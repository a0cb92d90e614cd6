"""Clients that ask again and again, and compare each answer with that of the program alone.

Two kinds: `outrider generate`, each time a new process with a new connection, which resumes an answer whose coordinator
is lost; and one HTTP connection that is kept, as the clients of the OpenAI API keep theirs. A seed makes an answer
repeatable, so "equal" is equal token for token.
"""

import http.client
import json
import select
import subprocess
import threading
import time
from collections import namedtuple

PROMPT = "Once upon a time"
SEEDS = (7, 8, 9)
# A request is given up, and counts as failed, after this many seconds.
LIMIT = 120

# What the command line client says where it has reached no coordinator within five seconds, and nothing was begun.
UNREACHED = "shows which services answer"

# `took` in seconds; `how` is "ok", "failed" or "other" (other tokens than alone); `said` explains the latter two.
Answer = namedtuple("Answer", "began ended seed how resumes said")


class Expected:
    """What the program alone answers, for each seed: the target, without any drafts."""

    def __init__(self, binary, max_tokens):
        self.binary, self.max_tokens = binary, max_tokens
        self.answers = {seed: self._alone(seed) for seed in SEEDS}

    def arguments(self, seed):
        return ["--prompt", PROMPT, "--seed", str(seed), "--max-tokens", str(self.max_tokens), "--ignore-eos", "--json"]

    def _alone(self, seed):
        asked = [self.binary, "generate", *self.arguments(seed), "--method", "target-only"]
        return json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)

    def difference(self, seed, tokens=None, text=None):
        """Where an answer differs from that of the program alone; empty if nowhere."""
        alone = self.answers[seed]
        if tokens is not None and tokens != alone["token_ids"]:
            at = next((i for i, pair in enumerate(zip(tokens, alone["token_ids"])) if pair[0] != pair[1]), len(tokens))
            return f"seed {seed}: other tokens than alone from {at} on, {len(tokens)} in all"
        if text is not None and text != alone["text"]:
            return f"seed {seed}: another text than alone"
        return ""


class Load:
    """So many `outrider generate` at a time, and so many kept HTTP connections, from `start` to `stop`.

    `address` is host and ports of the coordinator, (host, grpc, http); `flags` are those of the command line client.
    `insists` on a coordinator: where none is reached, `outrider generate` is called again, which counts as resumed.
    """

    def __init__(self, expected, address, generating=3, kept=1, scheme="http", flags=(), insists=False):
        self.expected, self.flags, self.insists = expected, list(flags), insists
        self.host, self.grpc, self.http = address
        self.url = f"{scheme}://{self.host}:{self.grpc}"
        self.answers, self.stopping = [], threading.Event()
        # When the request under way began, for each client.
        self.under_way = {}
        self.threads = [threading.Thread(target=self._ask, args=(n, self._generate)) for n in range(generating)]
        clients = range(generating, generating + kept)
        self.threads += [threading.Thread(target=self._ask, args=(n, Kept(self).complete)) for n in clients]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def settle(self):
        """Waits until every request that is under way now has ended, and returns when that was."""
        now, last = time.monotonic(), time.monotonic() + LIMIT + 5
        while any(began <= now for began in list(self.under_way.values())) and time.monotonic() < last:
            time.sleep(0.05)
        return time.monotonic()

    def between(self, began, ended):
        """The answers that were under way at any time between the two."""
        return [it for it in list(self.answers) if it.ended >= began and it.began <= ended]

    def _ask(self, number, ask):
        turn = number
        while not self.stopping.is_set():
            seed = SEEDS[turn % len(SEEDS)]
            turn += 1
            began = self.under_way[number] = time.monotonic()
            try:
                how, resumes, said = ask(seed)
            except Exception as error:  # a client that ends would ask no more, and show nothing
                how, resumes, said = "failed", 0, repr(error)
            self.answers.append(Answer(began, time.monotonic(), seed, how, resumes, said))
            if how == "failed":
                # A refusal takes no time; a million of them would show no more than a few.
                time.sleep(0.2)
        del self.under_way[number]

    def _generate(self, seed):
        how, resumes, said = self._call(seed)
        again, last = 0, time.monotonic() + LIMIT
        while self.insists and how == "failed" and UNREACHED in said and time.monotonic() < last:
            how, resumes, said = self._call(seed)
            again += 1
        return how, resumes + again, said

    def _call(self, seed):
        asked = [self.expected.binary, "generate", *self.expected.arguments(seed), "--coordinator", self.url]
        try:
            done = subprocess.run([*asked, *self.flags], capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return "failed", 0, f"seed {seed}: no end after {LIMIT} s"
        if done.returncode != 0:
            return "failed", 0, (done.stderr + done.stdout).strip()[-500:]
        answer = json.loads(done.stdout)
        difference = self.expected.difference(seed, tokens=answer["token_ids"])
        return ("other" if difference else "ok"), answer["resumes"], difference


class Kept:
    """A client of the OpenAI API that keeps its connection; every other request has drafters draft ahead of the target. It asks
    again where the connection breaks, or where the server says so (503), as the libraries of OpenAI do; each time counts as a
    resumption."""

    tries, pause = 60, 0.5

    def __init__(self, load):
        self.load, self.asked = load, 0
        self.connection = http.client.HTTPConnection(load.host, load.http, timeout=LIMIT)

    def complete(self, seed):
        resumes, why = 0, ""
        self.asked += 1
        while resumes < self.tries:
            self._drop_if_closed()
            try:
                status, body = self._post(seed)
            except (OSError, http.client.HTTPException) as error:
                status, body, why = 503, b"", repr(error)
                self.connection.close()
            if status == 200:
                choice = json.loads(body)["choices"][0]
                difference = self.load.expected.difference(seed, text=choice["text"])
                return ("other" if difference else "ok"), resumes, difference
            why = why or f"{status}: {body[:300]}"
            if status != 503:
                break
            resumes += 1
            time.sleep(self.pause)
        return "failed", resumes, f"seed {seed}: {why}"

    def _post(self, seed):
        body = {"prompt": PROMPT, "seed": seed, "max_tokens": self.load.expected.max_tokens, "ignore_eos": True}
        if self.asked % 2 == 0:
            body["speculation"] = {"schedule": "stream"}
        self.connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def _drop_if_closed(self):
        """A server that stops closes idle connections: what is closed already can carry no request."""
        sock = self.connection.sock
        if sock is not None and select.select([sock], [], [], 0)[0]:
            self.connection.close()
