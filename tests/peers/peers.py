"""The peers: processes that generate on request, on the same processors, with the same number of threads."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import environments

HERE = Path(__file__).resolve().parent
NAMES = ("outrider", "llama.cpp", "transformers")
# Threads of each, which are as many processors.
THREADS = 2
# Seconds before each request, in which the threads of the peer before fall asleep: OpenMP's spin for a moment.
PAUSE = 0.1


class Failed(Exception):
    """A peer ended, or said what it should not."""


class Cannot(Exception):
    """What the peer does not do, in words."""


class Peer:
    """One of them, until its block ends."""

    def __init__(self, name, model, assistant, program, context, log):
        self.name = name
        driver = HERE / "drivers" / f"by_{name.replace('.', '_')}.py"
        arguments = [model, THREADS, context, assistant, program]
        command = [environments.python(name), "-B", driver, *arguments]
        self.log = log / f"{name}.log"
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self):
        try:
            self.told = self.answer()
        except Failed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # A driver ends with its input, and ends what it started.
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            # In the midst of a long request it does not read: interrupted, it still ends what it started.
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def ask(self, **request):
        """Sends a request, and returns its answer."""
        time.sleep(PAUSE)
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise self.failure() from None
        answer = self.answer()
        if "cannot" in answer:
            raise Cannot(answer["cannot"])
        return answer

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise self.failure()
        return json.loads(line)

    def failure(self):
        said = self.log.read_text(errors="replace").strip()[-1500:]
        return Failed(f"{self.name} ended with status {self.process.wait()}:\n{said}")


def pin():
    """Holds this process, and what it starts, to as many processors as there are threads."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < THREADS:
        raise Failed(f"this process may use {len(allowed)} processor; {THREADS} are needed")
    os.sched_setaffinity(0, allowed[:THREADS])
