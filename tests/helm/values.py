#!/usr/bin/env python3
"""Holds values.yaml, values.schema.json and the table in the chart's README.md together.

    tests/helm/values.py VALUES.json [--update]

VALUES.json is what helm made of values.yaml; --update writes the table instead of comparing it.
"""

import json
import pathlib
import re
import sys

import values_schema

CHART = values_schema.PATH.parent
ROLES = ("coordinator", "drafter", "verifier")
# Keys of the coordinator that the other roles have not.
OWN = {"httpPort"}
BEGIN, END = "<!-- values -->\n", "<!-- /values -->\n"
KEY = re.compile(r"^( *)([A-Za-z_][\w./-]*):(?: +(.*))?$")
# Whose keys are the user's.
OPEN = {"#/definitions/strings"}


def comments(text):
    """Yields (path, comment, whether it is a section) for each key of values.yaml, in its order."""
    lines = text.splitlines()
    comment, path, skip = [], [], None
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            comment = []
            continue
        if skip is not None and indent > skip:
            continue
        skip = None
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip()[1:].strip())
            continue
        key = KEY.match(line)
        if not key:
            sys.exit(f"values.yaml, line {number + 1}: no key is recognised in {line!r}")
        path = path[: indent // 2] + [key[2]]
        following = next((after for after in lines[number + 1 :] if after.strip()), "")
        deeper = len(following) - len(following.lstrip()) > indent
        is_section = not key[3] and deeper and not following.lstrip().startswith("- ")
        if not is_section:
            skip = indent
        yield list(path), " ".join(comment), is_section
        comment = []


def default(values, path):
    for key in path:
        values = values[key]
    return "`" + json.dumps(values, ensure_ascii=False).replace("|", "\\|") + "`"


def table(values):
    """The tables of README.md: the keys of the chart as a whole, and those of each role."""
    whole, roles = [], []
    for path, comment, is_section in comments((CHART / "values.yaml").read_text()):
        if path[0] in ROLES[1:] or path == [ROLES[0]]:
            continue
        if path[0] != ROLES[0]:
            shown = "" if is_section else default(values, path)
            if comment or not is_section:
                whole.append(f"| `{'.'.join(path)}` | {shown} | {comment} |")
            continue
        if not comment and is_section:
            continue
        path = path[1:]
        having = ROLES[:1] if path[0] in OWN else ROLES
        shown = {role: "" if is_section else default(values, [role, *path]) for role in having}
        if len(having) > 1 and len(set(shown.values())) == 1:
            shown = shown[ROLES[0]]
        else:
            shown = "<br>".join(f"{role}: {value}" for role, value in shown.items())
        roles.append(f"| `{'.'.join(path)}` | {shown} | {comment} |")
    head = "| key | default | what it is |\n|---|---|---|\n"
    return (
        f"### The chart as a whole\n\n{head}" + "\n".join(whole) + "\n\n### Each role\n\n"
        f"The keys of `coordinator`, `drafter` and `verifier`.\n\n{head}" + "\n".join(roles) + "\n"
    )


def paths(schema, definitions, values, at=""):
    """Yields what the schema and the values say differently."""
    reference = schema.get("$ref", "")
    if reference in OPEN or values_schema.KUBERNETES in reference or reference == "#/definitions/config":
        return
    while reference:
        found = definitions
        for part in reference.removeprefix("#/definitions/").split("/"):
            found = found[part]
        schema, reference = found, found.get("$ref", "")
        if values_schema.KUBERNETES in reference or reference in OPEN:
            return
    for name, inner in schema.get("properties", {}).items():
        here = f"{at}.{name}" if at else name
        if name == "global" and not at:
            continue
        if here.split(".")[1:2] == ["probes"] and here.count(".") == 3:
            continue
        if name not in values:
            yield f"{here} is in values.schema.json and not in values.yaml"
        elif isinstance(values[name], dict):
            yield from paths(inner, definitions, values[name], here)


def open_objects(schema, at):
    """Yields where the chart's own part of the schema takes keys it does not name."""
    if isinstance(schema, dict):
        is_strings = schema.get("additionalProperties") == {"type": "string"}
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False and not is_strings:
            yield f"{at} takes keys that values.schema.json does not name"
        for name, inner in schema.items():
            if not name.startswith(values_schema.KUBERNETES) and name != "global":
                yield from open_objects(inner, f"{at}/{name}")


def main():
    values = json.loads(pathlib.Path(sys.argv[1]).read_text())
    schema = values_schema.load()
    wrong = list(paths(schema, schema["definitions"], values)) + list(open_objects(schema, "#"))
    ours = [set(values[role]) | OWN for role in ROLES]
    if not ours[0] == ours[1] == ours[2]:
        wrong.append(f"the roles' keys differ: {sorted(set.union(*ours) - set.intersection(*ours))}")

    readme = CHART / "README.md"
    text = readme.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = before + BEGIN + "\n" + table(values) + "\n" + END + after
    if "--update" in sys.argv:
        readme.write_text(made)
    elif made != text:
        wrong.append("the table in README.md is not what values.yaml says: tests/helm/run --update")
    for message in wrong:
        print(message, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
