"""Outriders with the built-in models on free ports of this machine: one process, or one for each role."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# How long a process may take to start, and to stop.
STARTING, STOPPING = 60, 15
# Tokens of the context where a case needs a long one, and bytes that one token's keys and values take in that model.
LONG_CONTEXT = 32768
KV_BYTES = 128
MIB = 1 << 20


class NotServed(Exception):
    """A process did not start, or ended."""


def free_ports(count):
    """Ports that nobody listens on; all are held until all are found, so that none comes twice."""
    found = [socket.socket() for _ in range(count)]
    try:
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]
    finally:
        for each in found:
            each.close()


def long_model(folder):
    """The smallest built-in model, told that its context is long: what it computes costs next to nothing."""
    models = ROOT / "models" / "default"
    target = Path(folder) / "long"
    shutil.copytree(models / "small", target)
    shutil.copytree(models / "tokenizer", target, dirs_exist_ok=True)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "max_position_embeddings": LONG_CONTEXT}))
    return target


class Process:
    """One process, and its memory."""

    def __init__(self, role, command, environment, log, soft_files):
        self.role = role
        self.log = log
        self.admin = int(environment["OUTRIDER__ADMIN__LISTEN"].rsplit(":", 1)[1])

        def limit():
            if soft_files:
                hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft_files, hard))

        with open(log, "w") as out:
            self.popen = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=out, stderr=out, preexec_fn=limit
            )

    def memory(self, field):
        """VmRSS or VmHWM, in bytes."""
        for line in Path(f"/proc/{self.popen.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
        raise NotServed(f"{self.role} ended")

    def forget_peak(self):
        """Begins VmHWM anew."""
        Path(f"/proc/{self.popen.pid}/clear_refs").write_text("5")

    def kv_tokens(self):
        """Tokens whose keys and values it holds."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("outrider_kv_used_tokens"))

    def wait_ready(self):
        limit = time.monotonic() + STARTING
        while time.monotonic() < limit:
            if self.popen.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            time.sleep(0.05)
        tail = Path(self.log).read_text()[-1500:]
        raise NotServed(f"{self.role} is not ready after {STARTING} s:\n{tail}")


class Servers:
    """The processes of one case, which end with the block."""

    def __init__(self, binary, case):
        self.binary, self.case = binary, case
        self.processes, self.killed = [], False
        # Of keys and values the most bytes seen, and of all else.
        self.most_kv, self.most_beside_kv = 0, 0

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="outrider-hostile-")
        drafter, verifier, self.grpc, self.http = free_ports(4)
        address = "127.0.0.1:{}".format
        environment = {
            "OUTRIDER__DRAFTER__LISTEN": address(drafter),
            "OUTRIDER__VERIFIER__LISTEN": address(verifier),
            "OUTRIDER__COORDINATOR__LISTEN": address(self.grpc),
            "OUTRIDER__COORDINATOR__HTTP__LISTEN": address(self.http),
        }
        if self.case.long_context:
            model = str(long_model(self.folder.name))
            environment.update({f"OUTRIDER__{role}__MODEL__PATH": model for role in ("DRAFTER", "VERIFIER")})
        models = [("default", f"http://{address(drafter)}", f"http://{address(verifier)}")]
        models += [(name, url, url) for name, url in self.case.more_models(self).items()]
        entries = [f'{{name="{name}", drafters=["{drafts}"], verifiers=["{url}"]}}' for name, drafts, url in models]
        environment["OUTRIDER__COORDINATOR__MODELS"] = f"[{', '.join(entries)}]"
        environment.update(self.case.settings(Path(self.folder.name)))
        roles = ("drafter", "verifier", "coordinator") if self.case.three else ("all",)
        if not self.case.three:
            # Its peers are its own; more models are for processes apart.
            del environment["OUTRIDER__COORDINATOR__MODELS"]
        try:
            for role, admin in zip(roles, free_ports(len(roles))):
                self.start(role, {**environment, "OUTRIDER__ADMIN__LISTEN": address(admin)})
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, role, environment):
        log = str(Path(self.folder.name) / f"{role}.log")
        command = [str(self.binary), "serve", role]
        self.processes.append(Process(role, command, environment, log, self.case.soft_files))
        self.processes[-1].wait_ready()

    def __exit__(self, *_):
        for process in self.processes:
            process.popen.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.popen.wait(STOPPING)
            except subprocess.TimeoutExpired:
                process.popen.kill()
                process.popen.wait()
        self.folder.cleanup()

    def admins(self):
        return [process.admin for process in self.processes]

    def logs(self):
        return "".join(Path(process.log).read_text() for process in self.processes)

    def resting(self):
        """Bytes in memory now, from when on peaks are looked for."""
        for process in self.processes:
            process.forget_peak()
        return self.memory("VmRSS")

    def look(self):
        """Bytes in memory now. Takes note of how much of them is for no keys and values, where these take much: what is
        freed of them may stay with the process, so the most that they were counts."""
        held = self.memory("VmRSS")
        if self.case.long_context:
            self.most_kv = max(self.most_kv, sum(process.kv_tokens() for process in self.processes) * KV_BYTES)
            self.most_beside_kv = max(self.most_beside_kv, int(held - self.most_kv))
        return held

    def memory(self, field):
        """VmRSS or VmHWM of all processes, in bytes."""
        return sum(process.memory(field) for process in self.processes)

    def kill(self):
        self.killed = True
        for process in self.processes:
            process.popen.kill()

    def peak(self):
        """Most bytes since they rested: each process's own peak; in a long context the most that was seen beside keys
        and values, which have a limit of their own (kv_tokens)."""
        return self.most_beside_kv if self.case.long_context else self.memory("VmHWM")

    def check_alive(self):
        for process in self.processes:
            if process.popen.poll() is not None:
                raise NotServed(f"{process.role} ended with status {process.popen.returncode}")
