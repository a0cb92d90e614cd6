#!/usr/bin/env python3
"""Every value that is empty by default is set in a values file of the chart's ci/, and seen in what that renders.

    tests/helm/every.py DEFAULTS.json FOLDER

DEFAULTS.json is what helm made of values.yaml; FOLDER has CASE.json, the values of each file in ci/, and CASE.yaml, what it
renders.
"""

import json
import pathlib
import sys

EMPTY = ("", {}, [], None)
# A role without a model has none of what belongs to one.
WITHOUT = ("coordinator.model", "coordinator.cache.", "coordinator.download.")


def leaves(values, path=()):
    """Yields (path, value) for each value that is no section."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def at(values, path):
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return None
        values = values[key]
    return values


def atoms(value):
    """Yields the texts and numbers of a value, and the keys that a user chose."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if "/" in key:
                yield key
            yield from atoms(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from atoms(inner)
    elif not isinstance(value, bool):
        yield str(value)


defaults = json.loads(pathlib.Path(sys.argv[1]).read_text())
cases = {}
for file in sorted(pathlib.Path(sys.argv[2]).glob("*.json")):
    cases[file.stem] = (json.loads(file.read_text()), file.with_suffix(".yaml").read_text())
faults = []
checked = 0
for path, value in leaves(defaults):
    name = ".".join(path)
    if value not in EMPTY or name.startswith(WITHOUT):
        continue
    checked += 1
    setting = {case: at(values, path) for case, (values, _) in cases.items()}
    setting = {case: value for case, value in setting.items() if value not in EMPTY}
    if not setting:
        faults.append(f"{name} is set in no values file of ci/")
        continue
    missing = {
        case: [atom for atom in atoms(value) if atom not in cases[case][1]] for case, value in setting.items()
    }
    if all(missing.values()):
        case, atom = next((case, atoms[0]) for case, atoms in missing.items())
        faults.append(f"{name}: {atom!r} of ci/{case}-values.yaml is not in its render")
for fault in faults:
    print(fault)
if faults:
    sys.exit(1)
print(f"{checked} values that are empty by default are seen where they are set")
