"""Servers of an engine, an Outrider drafter, and the model that they serve."""

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import environments

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ROOT / "models" / "default"
# What the engines call the model, the length of its rows and its context.
NAME, VOCAB, CONTEXT = "default", 4096, 512
# How long one may take to start on a busy machine, in seconds.
STARTING = 600


class Failed(Exception):
    """Something did not come out as it should."""


def checkpoint(folder):
    """The built-in target as a folder of the Hugging Face kind: the repository has its tokenizer beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [MODELS / "target" / name for name in ("config.json", "model.safetensors")]
    for part in [*parts, *(MODELS / "tokenizer").glob("*.json")]:
        shutil.copy(part, folder)
    return folder


def sglang(model, port):
    """SGLang on a CPU, and what its environment needs."""
    command = [environments.python("sglang"), "-m", "sglang.launch_server", "--model-path", model]
    command += ["--served-model-name", NAME, "--dtype", "float32", "--host", "127.0.0.1", "--port", port]
    command += ["--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"]
    command += ["--grammar-backend", "none", "--disable-overlap-schedule"]
    # Else its cache takes most of the memory there is.
    command += ["--max-total-tokens", "16384"]
    # Its kernels have no build for CPUs that an index has.
    return command, {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(HERE / "stand_in")}


def vllm(model, port, *more):
    """vLLM on a CPU, and what its environment needs."""
    # Its own command asks for the version of a package that is called otherwise here.
    command = [environments.python("vllm"), "-m", "vllm.entrypoints.openai.api_server", "--model", model]
    command += ["--served-model-name", NAME, "--dtype", "float32", "--host", "127.0.0.1", "--port", port]
    command += ["--max-logprobs", "-1", "--enable-scale-out", "--gpu-memory-utilization", "0.2", "--enforce-eager"]
    # Without compiling, which takes minutes and a compiler.
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1"}
    return [*command, *more], {**environment, "VLLM_NO_USAGE_STATS": "1"}


COMMANDS = {"sglang": sglang, "vllm": vllm}

DRAFTER = """
[log]
filter = "warn"
[admin]
listen = "127.0.0.1:{admin}"
[drafter]
listen = "127.0.0.1:{port}"
"""

SERVICES = """
[log]
filter = "warn"
[admin]
listen = "127.0.0.1:{admin}"
[coordinator]
listen = "127.0.0.1:{grpc}"
# An engine without its kernels takes its time.
round_timeout_ms = 60000
[coordinator.http]
listen = "127.0.0.1:{port}"
[drafter]
listen = "127.0.0.1:0"
[verifier]
listen = "127.0.0.1:0"
[verifier.model]
path = "{model}"
name = "default"
{computed}
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A process that answers at a path when it is ready, for a block. It ends with all that it started."""

    def __init__(self, name, command, environment, ready, log):
        self.name, self.ready, self.log = name, ready, log
        self.command = [str(part) for part in command]
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + STARTING
        try:
            while not self.answers():
                self.check_alive()
                if time.monotonic() > until:
                    raise Failed(f"{self.name} is not ready after {STARTING} s; {self.log} says why")
                time.sleep(0.5)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for told, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 20)):
            try:
                os.killpg(self.process.pid, told)
                self.process.wait(patience)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue

    def answers(self):
        try:
            with urllib.request.urlopen(self.ready, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def check_alive(self):
        if self.process.poll() is not None:
            last = "\n".join(Path(self.log).read_text(errors="replace").splitlines()[-20:])
            raise Failed(f"{self.name} ended with status {self.process.returncode}:\n{last}")


def engine(name, model, logs, *more, port=None):
    """A server of an engine; its `url` is where it is."""
    port = port or free_port()
    command, environment = COMMANDS[name](model, port, *more)
    url = f"http://127.0.0.1:{port}"
    server = Server(name, ["nice", "-n", "10", *command], environment, f"{url}/health", logs / f"{name}.log")
    server.url = url
    return server


def drafter(binary, folder):
    """An Outrider drafter with the built-in model."""
    ports = {"port": free_port(), "admin": free_port()}
    config = folder / "drafter.toml"
    config.write_text(DRAFTER.format(**ports))
    command = [binary, "serve", "drafter", "--config", config]
    admin = f"http://127.0.0.1:{ports['admin']}"
    server = Server("outrider", command, {}, f"{admin}/readyz", folder / "drafter.log")
    server.url = f"http://127.0.0.1:{ports['port']}"
    server.admin = admin
    return server


def outrider(binary, folder, name, model, engine_url=None):
    """All of Outrider's services, the target computed by `engine_url` or, without, by themselves in f32."""
    ports = {"port": free_port(), "admin": free_port(), "grpc": free_port()}
    computed = f'[verifier.remote]\nengine = "{name}"\nurl = "{engine_url}"' if engine_url else 'dtype = "f32"'
    config = folder / f"outrider-{name}.toml"
    config.write_text(SERVICES.format(model=model, computed=computed, **ports))
    command = [binary, "serve", "all", "--config", config]
    admin = f"http://127.0.0.1:{ports['admin']}"
    server = Server(name, command, {}, f"{admin}/readyz", folder / f"outrider-{name}.log")
    server.url, server.admin = f"http://127.0.0.1:{ports['port']}", admin
    return server
