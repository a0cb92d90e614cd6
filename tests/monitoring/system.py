"""A coordinator, two drafters and two verifiers on loopback ports, watched by Prometheus."""

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

# Everything here ends by itself; nothing is waited for longer than this.
PATIENCE_S = 60


def free_ports(count):
    """Ports that nobody listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


class System:
    """Starts all of it, and ends all of it."""

    PEERS = ("drafter-1", "drafter-2", "verifier-1", "verifier-2")

    def __init__(self, binary, scratch, rules):
        self.binary, self.scratch, self.rules = binary, scratch, rules
        names = (*self.PEERS, "coordinator")
        self.service = dict(zip(names, free_ports(len(names))))
        self.admin = dict(zip(names, free_ports(len(names))))
        (self.prometheus,) = free_ports(1)
        self.running = {}
        self.began = time.time()

    def __enter__(self):
        try:
            for name in self.PEERS:
                self.start(name)
            self.start("coordinator")
            self.watch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()

    def url(self, name):
        return f"http://127.0.0.1:{self.service[name]}"

    def start(self, name):
        """Starts a service, and waits until it is ready."""
        role = name.split("-")[0]
        command = [self.binary, "serve", role, f"--listen=127.0.0.1:{self.service[name]}"]
        environment = {"OUTRIDER__ADMIN__LISTEN": f"127.0.0.1:{self.admin[name]}"}
        if role == "coordinator":
            command += [f"--{peer.split('-')[0]}={self.url(peer)}" for peer in self.PEERS]
            # Few, so that a handful of clients is too many.
            environment["OUTRIDER__COORDINATOR__MAX_REQUESTS"] = "4"
            environment["OUTRIDER__COORDINATOR__DRAFT_TIMEOUT_MS"] = "500"
        self.spawn(name, command, environment)
        self.until_answers(f"http://127.0.0.1:{self.admin[name]}/readyz")

    def watch(self):
        """Starts Prometheus, which asks every second."""
        targets = [f"127.0.0.1:{port}" for port in self.admin.values()]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self.rules)],
            "scrape_configs": [{"job_name": "outrider", "static_configs": [{"targets": targets}]}],
        }
        file = self.scratch / "prometheus.yaml"
        file.write_text(json.dumps(config))
        command = [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={self.scratch / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.prometheus}",
            "--enable-feature=exemplar-storage",
        ]
        self.spawn("prometheus", command, {})
        self.until_answers(f"http://127.0.0.1:{self.prometheus}/-/ready")

    def spawn(self, name, command, environment):
        with open(self.scratch / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                command, env={"PATH": "/usr/bin:/bin", **environment}, stdout=log, stderr=log
            )

    def until_answers(self, url):
        end = time.time() + PATIENCE_S
        while time.time() < end:
            try:
                get(url)
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        logs = "\n".join(file.read_text()[-500:] for file in self.scratch.glob("*.log"))
        raise TimeoutError(f"{url} does not answer\n{logs}")

    def kill(self, *names):
        for name in names:
            process = self.running.pop(name)
            process.send_signal(signal.SIGKILL)
            process.wait()

    def client(self, *flags, tokens=60):
        """Starts a client; it may fail."""
        return subprocess.Popen(
            [self.binary, "generate", "--coordinator", self.url("coordinator"), "--ignore-eos"]
            + ["--prompt", "Once upon a time", "--max-tokens", str(tokens), *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def clients_for(self, seconds, *flags, at_once=1, tokens=60):
        """Runs clients one after another, or several at once."""
        end = time.time() + seconds
        while time.time() < end:
            clients = [self.client(*flags, tokens=tokens) for _ in range(at_once)]
            for client in clients:
                client.wait(timeout=PATIENCE_S)

    def live_through(self):
        """What a bad day brings, in half a minute."""
        deferring = ("--method", "spec-cascade", "--rule", "opt", "--alpha", "0.3")
        self.clients_for(3)
        self.clients_for(3, *deferring)
        self.clients_for(2, "--method", "rejection")
        self.clients_for(1, "--temperature", "-1")
        self.clients_for(4, at_once=8, tokens=300)
        for _ in range(20):
            impatient = self.client(tokens=400)
            time.sleep(0.05)
            impatient.kill()
            impatient.wait()
        # Drafters and a verifier die while they are needed.
        for flags, victim in (((), "drafter-1"), (deferring, "drafter-2"), ((), "verifier-1")):
            clients = [self.client(*flags, tokens=400) for _ in range(4)]
            time.sleep(0.15)
            self.kill(victim)
            for client in clients:
                client.wait(timeout=PATIENCE_S)
            self.clients_for(3, *flags)
        # The last verifier dies too, and what is asked then fails.
        clients = [self.client(tokens=400) for _ in range(4)]
        time.sleep(0.15)
        self.kill("verifier-2")
        for client in clients:
            client.wait(timeout=PATIENCE_S)
        self.clients_for(3)
        for name in self.PEERS:
            self.start(name)
        self.clients_for(4)

    def asked(self, expression):
        """All series that an expression had at any time."""
        arguments = {"query": expression, "start": self.began, "end": time.time(), "step": "1s"}
        url = f"http://127.0.0.1:{self.prometheus}/api/v1/query_range"
        try:
            answer = get(f"{url}?{urllib.parse.urlencode(arguments)}")
        except urllib.error.HTTPError as error:
            raise ValueError(f"{expression}: {error.read().decode()}") from error
        return json.loads(answer)["data"]["result"]

    def has_data(self, expression):
        """Whether it ever had a number."""
        values = (value for series in self.asked(expression) for _, value in series["values"])
        return any(value not in ("NaN", "+Inf", "-Inf") for value in values)
