"""The chart in the cluster: what the cases do with helm and kubectl, and what they do to pods."""

import json
import re
import subprocess
import time

from rows import Failed

CTR = ["ctr", "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io"]


def command(*words, check=True, stdin=None, timeout=300):
    """The output of a command; a failure shows what it said."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, input=stdin, timeout=timeout)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))[:200]}: {(done.stderr + done.stdout).strip()[-1500:]}")
    return done.stdout if check else done


def until(seconds, what, holds, every=0.5):
    """Waits until `holds()` is true, and returns that; fails after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"not after {seconds} s: {what}")
        time.sleep(every)


class Chart:
    """A release of the chart in a namespace of its own."""

    def __init__(self, folder, namespace="serving", release="outrider"):
        self.folder, self.namespace, self.release = folder, namespace, release

    def kubectl(self, *words, **how):
        return command("kubectl", "--namespace", self.namespace, *words, **how)

    def helm(self, *words, **how):
        return command("helm", "--namespace", self.namespace, *words, **how)

    def object(self, *words):
        return json.loads(self.kubectl("get", *words, "--output", "json"))

    def apply(self, *objects):
        several = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("apply", "--filename", "-", stdin=json.dumps(several))

    def install(self, *flags, wait=True, check=True):
        """Installs or upgrades to exactly these values."""
        waits = ["--wait", "--timeout", "4m"] if wait is True else (wait or [])
        return self.helm(
            "upgrade", "--install", "--create-namespace", "--reset-values", *waits, self.release,
            self.folder, *flags, check=check,
        )  # fmt: skip

    def address(self):
        """Host, gRPC port and HTTP port for clients."""
        return (f"{self.release}.{self.namespace}.svc", 7001, 8000)

    def deployment(self, role):
        return f"deployment/{self.release}-{role}"

    def rollout(self, role, seconds=180):
        self.kubectl("rollout", "status", self.deployment(role), "--timeout", f"{seconds}s")

    def restart(self, role):
        self.kubectl("rollout", "restart", self.deployment(role))
        self.rollout(role)

    # -- pods

    def pods(self, role=None):
        """The pods that run and were not told to end, the oldest first."""
        selector = f"app.kubernetes.io/instance={self.release}"
        selector += f",app.kubernetes.io/component={role}" if role else ""
        found = self.object("pods", "--selector", selector)["items"]
        found = [it for it in found if it["status"]["phase"] == "Running" and "deletionTimestamp" not in it["metadata"]]
        return sorted(found, key=lambda it: it["metadata"]["creationTimestamp"])

    def pod(self, role):
        found = self.pods(role)
        if not found:
            raise Failed(f"no {role} runs")
        return found[0]["metadata"]["name"]

    def ready(self):
        """Waits until every pod is ready again, and none is on its way out."""

        def all_ready():
            found = self.object("pods", "--selector", f"app.kubernetes.io/instance={self.release}")["items"]
            return found and all(is_ready(pod) for pod in found)

        until(120, "all pods ready", all_ready, every=1)

    def delete(self, role):
        self.kubectl("delete", "pod", self.pod(role), "--wait=false")

    def process(self, pod, kind="container"):
        """The process id of a pod's container, or of its sandbox, whose network namespace is the pod's."""
        labels = {"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": self.namespace}
        labels["io.cri-containerd.kind"] = kind
        found = command(*CTR, "containers", "ls", "--quiet", ",".join(f'labels."{k}"=={v}' for k, v in labels.items()))
        tasks = {line.split()[0]: line.split()[1:] for line in command(*CTR, "tasks", "ls").splitlines()[1:]}
        for container in found.split():
            pid, status = tasks.get(container, ("", ""))
            if status == "RUNNING":
                return pid
        raise Failed(f"no {kind} of {pod} runs")

    def crash(self, role):
        """SIGKILL for the process itself. `kubectl delete --force` would still let it end in order."""
        command("kill", "-KILL", self.process(self.pod(role)))

    def in_pod(self, pod, *words, **how):
        """Runs a command of this machine in the network of a pod."""
        return command("nsenter", "--target", self.process(pod, "sandbox"), "--net", "--", *words, **how)

    def link(self, pod):
        """The node's end of the pod's veth."""
        shown = self.in_pod(pod, "ip", "-o", "link", "show", "eth0")
        index = re.search(r"eth0@if(\d+)", shown)[1]
        links = command("ip", "-o", "link")
        return re.search(rf"^{index}: (\w+)@", links, re.MULTILINE)[1]

    def cut(self, pod):
        """Takes a pod's network away: no packet passes, nobody is told. Returns what mends it."""
        link = self.link(pod)
        command("ip", "link", "set", link, "down")
        return lambda: command("ip", "link", "set", link, "up")

    def logs(self, role):
        return self.kubectl("logs", "--selector", f"app.kubernetes.io/component={role}", "--tail", "-1", "--prefix")


def is_ready(pod):
    conditions = {it["type"]: it["status"] for it in pod["status"].get("conditions", [])}
    return "deletionTimestamp" not in pod["metadata"] and conditions.get("Ready") == "True"
