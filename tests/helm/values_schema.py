#!/usr/bin/env python3
"""Reads and writes helm/outrider/values.schema.json, whose definitions are partly made.

    outrider config schema | python3 tests/helm/values_schema.py

puts the schema of the program's own settings into it, as what `config` may hold.
"""

import json
import pathlib
import sys

PATH = pathlib.Path(__file__).resolve().parents[2] / "helm/outrider/values.schema.json"
KUBERNETES = "io.k8s."

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


def main():
    config = json.load(sys.stdin)
    del config["$schema"], config["title"]
    schema = load()
    schema["definitions"]["config"] = config
    save(schema)


if __name__ == "__main__":
    main()
