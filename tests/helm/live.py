#!/usr/bin/env python3
"""Renders the chart as `helm upgrade` does, with a cluster to ask: one that answers for a single Deployment.

    tests/helm/live.py

What it holds: with autoscaling the chart keeps as many pods as run, and asks the cluster for nothing else.
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

CHART = pathlib.Path(__file__).resolve().parents[2] / "helm/outrider"
DEPLOYMENT = "/apis/apps/v1/namespaces/serving/deployments/outrider-drafter"
DEPLOYMENTS = {"name": "deployments", "namespaced": True, "kind": "Deployment", "verbs": ["get"]}
KINDS = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [DEPLOYMENTS]}
MISSING = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}

HPA = ["type=hpa", "cpuPercent=70", "minReplicas=2", "maxReplicas=9"]
KEDA = ["type=keda", "queue=4", "minReplicas=2", "maxReplicas=9"]
# What is set of drafter.autoscaling, how many pods run (None: no Deployment), and what the Deployment then says.
CASES = [
    (HPA, 7, 7),
    (KEDA, 7, 7),
    (HPA, 1, 2),
    (HPA, 0, 2),
    (HPA, 20, 9),
    (HPA, None, 2),
    ([*HPA, "replicas=omit"], 7, None),
    (["type=none"], 7, 1),
]


class Cluster(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.add(path)
        answer = KINDS if path == "/apis/apps/v1" else MISSING
        if path == DEPLOYMENT and self.server.running is not None:
            spec = {"replicas": self.server.running}
            answer = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {}, "spec": spec}
        body = json.dumps(answer).encode()
        self.send_response(answer.get("code", 200))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def rendered(server, settings, running):
    """The number of pods that the drafters' Deployment says, None where it says none."""
    server.running, server.asked = running, set()
    command = ["helm", "template", "outrider", str(CHART), "--namespace", "serving", "--show-only", "templates/deployment.yaml"]
    command += ["--dry-run=server", "--kube-apiserver", f"http://127.0.0.1:{server.server_port}"]
    for setting in settings:
        command += ["--set", f"drafter.autoscaling.{setting}"]
    # No cluster but this one.
    alone = {**os.environ, "KUBECONFIG": os.devnull}
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=alone).stdout
    (drafter,) = [part for part in text.split("\n---\n") if "\n  name: outrider-drafter\n" in part]
    number = re.search(r"^  replicas: (\d+)$", drafter, re.MULTILINE)
    return number and int(number[1])


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wrong = 0
    for settings, running, expected in CASES:
        number = rendered(server, settings, running)
        beyond = server.asked - {"/apis/apps/v1", DEPLOYMENT}
        if number != expected or beyond:
            print(f"{settings}, {running} running: {number} instead of {expected}; asked also for {beyond}", file=sys.stderr)
            wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
