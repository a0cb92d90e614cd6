"""A second node: a kubelet, a containerd and a proxy of its own, in namespaces below those of the first."""

import os
import signal
import subprocess
import time
from pathlib import Path

from chart import CTR, command, until

HERE = Path(__file__).resolve().parent
NAME = "node2"
# The two ends of the wire between the nodes, which is a veth: here, and there.
HERE_END, THERE_END = "to-node2", "to-node1"


class SecondNode:
    """Joins the cluster with the image that the first node has, until the block ends."""

    def __init__(self, chart, image="docker.io/library/outrider:0.1.0"):
        self.chart, self.images = chart, ["cluster.test/pause:1", image]
        # KUBECONFIG is run/pki/admin.conf there.
        self.home = Path(os.environ["KUBECONFIG"]).parents[2]
        self.process = None

    def __enter__(self):
        namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
        node = [HERE / "node", HERE, self.home, "2"]
        with open(self.home / "run" / "log" / "node2.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["unshare", *namespaces, "--propagation", "private", *map(str, node)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            self.join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.lose()
        self.process.wait()
        command("ip", "link", "delete", HERE_END, check=False)
        (self.home / "run" / NAME).unlink(missing_ok=True)
        self.chart.kubectl("delete", "node", NAME, "--ignore-not-found")
        # Its pods are collected 40 s after it, in sweeps of 20 s; until then they would be left to other cases.
        here = ["get", "pods", "--field-selector", f"spec.nodeName={NAME}", "--output", "name"]
        until(120, "the lost node's pods are gone", lambda: not self.chart.kubectl(*here), every=1)

    def first(self):
        """The node's first process, as the first node counts them."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return until(10, "the second node's first process", lambda: children.read_text().split(), every=0.05)[0]

    def inside(self, *words, **how):
        return command("nsenter", "--target", self.first(), "--mount", "--net", "--pid", "--", *words, **how)

    def join(self):
        bridged = ["ip", "link", "show", "node0"]
        until(20, "the second node's network", lambda: self.inside(*bridged, check=False).returncode == 0, every=0.1)
        command("ip", "link", "add", HERE_END, "type", "veth", "peer", "name", THERE_END, "netns", self.first())
        command("ip", "link", "set", HERE_END, "master", "node0", "up")
        self.inside("ip", "link", "set", THERE_END, "master", "node0", "up")
        until(90, "the second node is known", (self.home / "run" / NAME).exists)
        archive = self.home / "run" / "images.tar"
        command(*CTR, "images", "export", archive, *self.images)
        self.inside(*CTR, "images", "import", "--snapshotter", "overlayfs", archive)
        archive.unlink()
        self.chart.kubectl("wait", "--for", "condition=Ready", f"node/{NAME}", "--timeout", "60s")

    def lose(self):
        """As when its power fails: no packet passes any more, nobody is told, and then nothing runs."""
        if self.process.poll() is None:
            command("ip", "link", "set", HERE_END, "down", check=False)
            os.kill(int(self.first()), signal.SIGKILL)


def is_ready(chart, name=NAME):
    conditions = {it["type"]: it["status"] for it in chart.object("node", name)["status"]["conditions"]}
    return conditions["Ready"] == "True"


def drain(chart, name=NAME):
    """Until every pod of the release has left it."""
    chart.kubectl("drain", name, "--pod-selector", f"app.kubernetes.io/instance={chart.release}", "--timeout", "120s")
    time.sleep(1)
