#!/usr/bin/env python3
"""Makes the strict JSON schemas in this folder from what the projects publish as Go modules.

    python3 -m pip install pyyaml
    python3 tests/helm/schemas/make.py

Needs Go (for its module proxy) and PyYAML; README.md says what comes from where. Also writes the
Kubernetes definitions that helm/outrider/values.schema.json refers to into that file.
"""

import json
import pathlib
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import values_schema  # noqa: E402

KUBERNETES = "k8s.io/kubernetes@v1.34.2"
KINDS = {
    "ConfigMap": ("core", "v1"),
    "PersistentVolumeClaim": ("core", "v1"),
    "Pod": ("core", "v1"),
    "Service": ("core", "v1"),
    "ServiceAccount": ("core", "v1"),
    "Deployment": ("apps", "v1"),
    "HorizontalPodAutoscaler": ("autoscaling", "v2"),
    "Ingress": ("networking", "v1"),
    "NetworkPolicy": ("networking", "v1"),
    "PodDisruptionBudget": ("policy", "v1"),
}
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
CUSTOM = {
    (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"),
    (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"),
    (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"),
    ("github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml"),
    ("github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds/cert-manager.io_certificates.yaml"),
    ("sigs.k8s.io/gateway-api@v1.4.1", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"),
}
PREFIX = "#/definitions/"


def module(version):
    """The folder of a Go module, downloaded if need be."""
    out = subprocess.run(["go", "mod", "download", "-json", version], check=True, capture_output=True)
    return pathlib.Path(json.loads(out.stdout)["Dir"])


def strict(schema):
    """A schema that takes nothing it does not name, without descriptions and vendor extensions."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    kept = {}
    for key, value in schema.items():
        if key in ("description", "example", "default", "format", "nullable") or key.startswith("x-kubernetes"):
            continue
        if key == "properties":
            kept[key] = {name: strict(item) for name, item in value.items()}
        elif key in ("required", "enum"):
            kept[key] = value
        else:
            kept[key] = strict(value)
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields")
    if kept.get("properties") and not open_ended:
        kept.setdefault("additionalProperties", False)
    return kept


def references(schema):
    """Names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        for item in schema:
            yield from references(item)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str) and schema["$ref"].startswith(PREFIX):
            yield schema["$ref"].removeprefix(PREFIX)
        for item in schema.values():
            yield from references(item)


def closure(names, definitions):
    """The named definitions and all that they refer to."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting.extend(references(definitions[name]))
    return dict(sorted(found.items()))


def write(path, schema):
    path.write_text(json.dumps(schema, separators=(",", ":")) + "\n")


def file_name(kind, group, version):
    """As kubeconform asks for it: the first part of the group, nothing for the core."""
    group = "" if group == "core" else "-" + group.split(".")[0]
    return f"{kind.lower()}{group}-{version}.json"


def main():
    for old in HERE.glob("*.json"):
        old.unlink()
    swagger = json.loads((module(KUBERNETES) / "api/openapi-spec/swagger.json").read_text())
    definitions = {name: strict(schema) for name, schema in swagger["definitions"].items()}
    # Written as a number too.
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = {"type": ["string", "integer"]}
    kinds = {kind: f"io.k8s.api.{group}.{version}.{kind}" for kind, (group, version) in KINDS.items()}
    write(HERE / "definitions.json", {"definitions": closure(kinds.values(), definitions)})
    for kind, (group, version) in KINDS.items():
        body = {"$ref": f"definitions.json{PREFIX}{kinds[kind]}"}
        write(HERE / file_name(kind, group, version), {"allOf": [body], "required": ["apiVersion", "kind"]})

    for source, path in sorted(CUSTOM):
        resource = yaml.safe_load((module(source) / path).read_text())["spec"]
        version = next(version for version in resource["versions"] if version["storage"])
        schema = strict(version["schema"]["openAPIV3Schema"])
        name = file_name(resource["names"]["kind"], resource["group"], version["name"])
        schema["properties"]["metadata"] = {"type": "object"}
        write(HERE / name, schema)

    values = values_schema.load()
    own = {
        name: schema
        for name, schema in values["definitions"].items()
        if not name.startswith(values_schema.KUBERNETES)
    }
    wanted = [name for name in references(values) if name.startswith(values_schema.KUBERNETES)]
    values["definitions"] = own | closure(wanted, definitions)
    values_schema.save(values)


if __name__ == "__main__":
    sys.exit(main())
