"""An outrider with all three services and its built-in models, on free ports of this machine."""

import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

# Weights in f32, so that `outrider score` computes what the server does, and answers of every client are compared.
SETTINGS = """
[log]
filter = "warn"
[admin]
listen = "off"
[coordinator]
listen = "127.0.0.1:{grpc}"
[coordinator.http]
listen = "127.0.0.1:{http}"
any_model = false
[drafter]
listen = "127.0.0.1:0"
[verifier]
listen = "127.0.0.1:0"
[verifier.model]
path = "embedded:target"
dtype = "f32"
"""
# How long it may take to start.
STARTING = 60


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Served:
    """A process that serves until its block ends."""

    def __init__(self, command, http):
        self.command = command
        self.http = http

    def __enter__(self):
        self.process = subprocess.Popen(self.command)
        limit = time.monotonic() + STARTING
        while not self.is_ready():
            self.check_alive()
            if time.monotonic() > limit:
                self.process.kill()
                raise SystemExit(f"clients: the server is not ready after {STARTING} s")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise SystemExit("clients: the server does not stop") from None

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url()}/ready", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def check_alive(self):
        if self.process.poll() is not None:
            raise SystemExit(f"clients: the server ended with status {self.process.returncode}")

    def url(self):
        return f"http://127.0.0.1:{self.http}"


class Server(Served):
    """The built-in models, configured by a file."""

    def __init__(self, binary):
        self.binary = binary
        self.ports = {"grpc": free_port(), "http": free_port()}
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "outrider.toml"
        super().__init__([binary, "serve", "all", "--config", self.file], self.ports["http"])

    def __enter__(self):
        self.file.write_text(SETTINGS.format(**self.ports))
        return super().__enter__()

    def __exit__(self, *ended):
        try:
            super().__exit__(*ended)
        finally:
            self.folder.cleanup()

    def environment(self):
        """The variables that the scripts read."""
        return {
            **os.environ,
            "OUTRIDER": str(self.binary),
            "OUTRIDER_HTTP": self.url(),
            "OUTRIDER_GRPC": f"127.0.0.1:{self.ports['grpc']}",
            # No client may look anything up elsewhere.
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "OPENAI_API_KEY": "anything",
        }
