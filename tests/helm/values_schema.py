#!/usr/bin/env python3
"""Reads and writes helm/outrider/values.schema.json, whose definitions are partly made.

    outrider config print --json | python3 tests/helm/values_schema.py

puts the program's own settings into it, as what `config` may hold.
"""

import json
import pathlib
import sys

PATH = pathlib.Path(__file__).resolve().parents[2] / "helm/outrider/values.schema.json"
KUBERNETES = "io.k8s."

TEXTS = {"type": "array", "items": {"type": "string"}}
# What `outrider config print` shows of a setting without a default.
UNSET = "unset"
# Settings whose defaults do not show what they may be.
SPECIAL = {
    "coordinator.draft_len": {"anyOf": [{"enum": ["auto"]}, {"type": "integer", "minimum": 1, "maximum": 64}]},
    "drafter.cascade.max_gram": {"enum": [True, False, "auto"]},
    "telemetry.protocol": {"enum": ["grpc", "http/protobuf"]},
    "telemetry.sample_ratio": {"type": "number", "minimum": 0, "maximum": 1},
    "tls.mode": {"enum": ["off", "server", "mutual"]},
}
# Lists whose defaults do not show what is in them.
LISTS = {
    "coordinator.models": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "drafters": TEXTS, "verifiers": TEXTS},
        "required": ["name", "verifiers"],
        "additionalProperties": False,
    },
    "drafter.cascade.k": {"type": "array", "items": {"type": "integer", "minimum": 0}},
}


def load():
    return json.loads(PATH.read_text())


def save(schema):
    """Writes the chart's own part for reading, and each definition of Kubernetes' on a line."""
    definitions = schema.pop("definitions")
    schema["definitions"] = {name: value for name, value in definitions.items() if not name.startswith(KUBERNETES)}
    text = json.dumps(schema, indent=1)
    lines = [
        f"  {json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
        for name, value in sorted(definitions.items())
        if name.startswith(KUBERNETES)
    ]
    if lines:
        # The end closes the last definition of the chart's own, the definitions, and the schema.
        head = text.removesuffix("\n }\n}")
        text = head + ",\n" + ",\n".join(lines) + "\n }\n}"
    PATH.write_text(text + "\n")


def schema_of(key, value, settings):
    """The schema of a setting, by its default."""
    if key in SPECIAL:
        return SPECIAL[key]
    if value == UNSET:
        sys.exit(f"{key} has no default: say in {__file__} what it may be")
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer", "minimum": 0}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, str):
        return {"type": "string"}
    if isinstance(value, list):
        if key == "drafter.cascade.models":
            model = {name: {"type": "string"} for name in settings["drafter"]["model"]}
            items = {"type": "object", "properties": model, "required": ["path"], "additionalProperties": False}
        else:
            items = LISTS.get(key, {"type": "string"})
        return {"type": "array", "items": items}
    if isinstance(value, dict):
        properties = {
            name: schema_of(f"{key}.{name}" if key else name, item, settings) for name, item in sorted(value.items())
        }
        return {"type": "object", "additionalProperties": False, "properties": properties}
    sys.exit(f"{key}: the default {value!r} does not show what it may be")


def with_earlier_keys(config):
    """Lets what bounds an engine stand where it stood before, as long as the program reads it there."""
    for role in ("drafter", "verifier"):
        section = config["properties"][role]["properties"]
        section.update(section["engine"]["properties"])
        config["properties"][role]["properties"] = dict(sorted(section.items()))
    return config


def main():
    settings = {}
    for setting in json.load(sys.stdin):
        *sections, last = setting["key"].split(".")
        place = settings
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = UNSET if setting["value"] == UNSET else json.loads(setting["value"])
    schema = load()
    schema["definitions"]["config"] = with_earlier_keys(schema_of("", settings, settings))
    save(schema)


if __name__ == "__main__":
    main()
