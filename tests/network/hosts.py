"""Coordinator, drafter and verifiers, each in a network namespace of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from links import Network

# Where each service is, and on which port.
PLACES = {
    "coordinator": ("10.77.0.1", 7001),
    "drafter": ("10.77.0.2", 7101),
    "verifier": ("10.77.0.3", 7201),
    "replica": ("10.77.0.4", 7201),
}
ROLES = {"replica": "verifier"}

SETTINGS = """
insecure = true

[log]
filter = "warn"

[coordinator]
draft_timeout_ms = 1000
# Where drafts do not pay, the default asks no drafter, and its link could be down unnoticed.
draft_len = 4
"""


def built(arguments):
    """The program that was named, or one that is built."""
    if arguments:
        return str(Path(arguments[0]).resolve())
    subprocess.run(["cargo", "build", "--package", "outrider"], check=True)
    target = os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target")
    return str(Path(target) / "debug" / "outrider")


@contextlib.contextmanager
def deployed(binary):
    """A coordinator, a drafter and a verifier that are up; None where no namespaces can be made."""
    network = Network({name: address for name, (address, _) in PLACES.items()})
    try:
        network.start()
    except (OSError, subprocess.CalledProcessError) as error:
        network.stop()
        told = getattr(error, "stderr", None) or error
        print(f"skipped: no network namespaces here ({told})")
        yield None
        return
    settings = Path(f"/run/{network.prefix}settings.toml")
    settings.write_text(SETTINGS)
    hosts = Hosts(binary, network, str(settings))
    try:
        hosts.serve("drafter")
        hosts.serve("verifier")
        hosts.coordinate("verifier")
        hosts.wait()
        yield hosts
    finally:
        hosts.stop()
        network.stop()
        settings.unlink()


def url(name):
    address, port = PLACES[name]
    return f"http://{address}:{port}"


class Hosts:
    """The services, each in its namespace."""

    def __init__(self, binary, network, settings):
        self.network = network
        self.binary, self.settings = binary, settings
        self.processes = {}
        self.url = url("coordinator")

    def inside(self, name):
        """The command that runs what follows where the service is."""
        return ["ip", "netns", "exec", self.network.namespace(name)]

    def command(self, name):
        return [*self.inside(name), self.binary, "--config", self.settings]

    def serve(self, name, *flags):
        address, port = PLACES[name]
        serve = ["serve", ROLES.get(name, name), "--listen", f"{address}:{port}"]
        self.processes[name] = subprocess.Popen([*self.command(name), *serve, *flags])

    def coordinate(self, *verifiers):
        """Begins to coordinate the drafter and these verifiers, in the place of what was coordinated before."""
        if "coordinator" in self.processes:
            self.kill("coordinator")
        peers = [flag for name in verifiers for flag in ("--verifier", url(name))]
        self.serve("coordinator", "--drafter", url("drafter"), *peers)

    def freeze(self, name, is_frozen):
        self.processes[name].send_signal(signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def wait(self):
        for _ in range(100):
            flags = ["--coordinator", self.url, "--prompt", "x", "--max-tokens", "1"]
            asked = [*self.command("coordinator"), "generate", *flags]
            if subprocess.run(asked, capture_output=True, timeout=30).returncode == 0:
                return
            time.sleep(0.1)
        sys.exit("the services did not come up")

    def stop(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
