"""Each values file of the chart's ci/ folder is installed, in a namespace of its own."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from certificates import Authority, names_of, secret, token
from chart import Chart
from load import Load
from rows import Failed

# Kinds of operators that are not here. The API server takes their objects; nothing comes of these.
OPERATORS = (
    ("keda.sh", "v1alpha1", "ScaledObject"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
    ("monitoring.coreos.com", "v1", "PodMonitor"),
    ("monitoring.coreos.com", "v1", "PrometheusRule"),
    ("cert-manager.io", "v1", "Certificate"),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute"),
)
# Their pods need what is not here, an image by its digest and a GPU, or a hub: that the API server takes them is all.
ONLY_ACCEPTED = ("every", "every-other", "gpu", "hub-model", "engine")


def definition(group, version, kind):
    plural = kind.lower() + "s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Names in *.k8s.io belong to Kubernetes, which wants to see that they were granted.
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


def without_operators(trial):
    """Values that need an operator are refused whole where it is missing, and the message says which."""
    chart = Chart(trial.chart.folder, "refused")
    done = chart.install("--values", chart.folder / "ci" / "monitoring-values.yaml", wait=False, check=False)
    if done.returncode == 0 or "Prometheus operator" not in done.stderr:
        raise Failed(f"not refused, or without saying why: {done.stderr}")
    if chart.kubectl("get", "deployments", "--output", "name"):
        raise Failed("a refused install left Deployments")
    trial.rows.add("values that need an operator that is not here: refused")


def ci_values(trial):
    """The chart's examples."""
    without_operators(trial)
    kinds = [definition(*one) for one in OPERATORS]
    trial.chart.apply(*kinds)
    for one in kinds:
        trial.chart.kubectl("wait", "--for", "condition=Established", f"crd/{one['metadata']['name']}")
    # Three at a time: most of it is waiting.
    with ThreadPoolExecutor(3) as pool:
        files = sorted((trial.chart.folder / "ci").glob("*-values.yaml"))
        for one in [pool.submit(install, trial, file) for file in files]:
            one.result()


def install(trial, file):
    """Installs a values file on top of the variant it is about, asks, and uninstalls it."""
    name = file.name[: -len("-values.yaml")]
    chart = Chart(trial.chart.folder, f"ci-{name}")
    try:
        ask(trial, chart, name, file)
    finally:
        chart.helm("uninstall", chart.release, "--ignore-not-found")


def ask(trial, chart, name, file):
    variant = chart.folder / f"values-{name}.yaml"
    flags = [*(["--values", variant] if variant.exists() else []), "--values", file]
    chart.kubectl("create", "namespace", chart.namespace)
    shown = chart.helm("template", chart.release, chart.folder, *flags)
    client = needed_secrets(trial, chart, shown)
    # Nobody gives a Service of type LoadBalancer an address, so Helm would wait for ever.
    runs = name not in ONLY_ACCEPTED
    chart.install(*flags, wait=runs and "type: LoadBalancer" not in shown)
    if not runs:
        trial.rows.add(f"ci/{file.name}: accepted by the API server, its pods cannot run here")
        return
    for one in chart.object("deployments")["items"]:
        chart.rollout(one["metadata"]["labels"]["app.kubernetes.io/component"])
    if "helm.sh/hook: test" in shown:
        chart.helm("test", chart.release, "--timeout", "2m")
    elif not client:
        load = Load(trial.expected, chart.address(), 0, 0)
        how, _, said = load._generate(7)
        if how != "ok":
            raise Failed(f"{file.name}: {said}")
    trial.rows.add(f"ci/{file.name}: installed, answers as the program alone")


def needed_secrets(trial, chart, shown):
    """Makes the Secrets that the values name; whether clients must show a token."""
    authority = Authority(Path(trial.scratch) / chart.namespace)
    client, found = token(), []
    for name in sorted(set(re.findall(r"secret(?:Name|KeyRef: \{name): ([\w-]+)", shown))):
        if name.endswith("-tls") or name == "outrider-tls":
            found.append(authority.secret(name, names_of(chart.release, chart.namespace)))
        elif name == "otlp":
            found.append(secret(name, headers="x-test=1"))
        else:
            shared = client if name in ("outrider-clients", "outrider-test") else token()
            found.append(secret(name, tokens=shared, token=shared))
    if found:
        chart.apply(*found)
    return "client_tokens_file" in shown
