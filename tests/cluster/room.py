"""How much of the node is free for the chart."""

import json
from contextlib import contextmanager

from chart import until

# What a node of 2 CPUs has left, in thousandths of a CPU, beside the pods that `kind` runs of the system's: API server,
# controllers, scheduler, etcd, DNS and network, which request 950.
LEFT_OF_TWO_CPUS = 2000 - 950


def thousandths(cpu):
    return int(cpu[:-1]) if cpu.endswith("m") else round(float(cpu) * 1000)


def requested(chart):
    """What the pods of all namespaces request, those that have ended left out."""
    pods = json.loads(chart.kubectl("get", "pods", "--all-namespaces", "--output", "json"))["items"]
    pods = [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
    containers = [it for pod in pods for it in pod["spec"]["containers"]]
    return sum(thousandths(it.get("resources", {}).get("requests", {}).get("cpu", "0")) for it in containers)


@contextmanager
def small_node(chart):
    """A pod that does nothing requests all of the node but what a node of 2 CPUs has left, until the block ends: what
    the scheduler places then, it places there."""
    pods = ["get", "pods", "--selector", f"app.kubernetes.io/instance={chart.release}", "--output", "name"]
    until(60, "the pods of the release before are gone", lambda: not chart.kubectl(*pods), every=1)
    node = chart.object("node", "node1")["status"]["allocatable"]["cpu"]
    taken = thousandths(node) - requested(chart) - LEFT_OF_TWO_CPUS
    resources = {"requests": {"cpu": f"{taken}m"}}
    chart.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "system"},
            "spec": {
                "containers": [{"name": "idle", "image": "cluster.test/pause:1", "resources": resources}],
                "terminationGracePeriodSeconds": 0,
            },
        }
    )
    try:
        chart.kubectl("wait", "--for", "condition=Ready", "pod/system", "--timeout", "60s")
        yield
    finally:
        chart.kubectl("delete", "pod", "system", "--now")
