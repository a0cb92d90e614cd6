#!/usr/bin/env python3
"""Holds the image that the chart asks for by default to the one that the documented commands build.

    tests/helm/version.py

Both are tagged with the version of the program, which the workspace's Cargo.toml has.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A command or a setting that names the image, and its tag.
IMAGE = r"(?:docker (?:build|push|run) |image: ).*\boutrider(?::([\w.-]+))?(?=[ }]|$)"
# Where the version stands, as the group of a pattern; each must be there.
PLACES = [
    ("helm/outrider/Chart.yaml", r'^appVersion: "(.*)"$'),
    ("helm/outrider/README.md", IMAGE),
    ("helm/outrider/values-gpu.yaml", r"^ +tag: (.*)-cuda$"),
    ("deploy/Dockerfile", r"^ARG VERSION=(.*)$"),
    ("deploy/Dockerfile", IMAGE),
    ("deploy/docker-bake.hcl", r'^variable "VERSION" \{\n  default = "(.*)"$'),
    ("deploy/README.md", r"^\| `VERSION`, `REVISION` \| `(.*?)`,"),
    ("deploy/README.md", IMAGE),
    ("deploy/compose.yaml", IMAGE),
    ("tests/containers/base", IMAGE),
]


def main():
    manifest = (ROOT / "Cargo.toml").read_text()
    version = re.search(r'^\[workspace\.package\][^[]*?^version = "(.*)"$', manifest, re.MULTILINE)[1]
    wrong = []
    for path, pattern in PLACES:
        found = list(re.finditer(pattern, (ROOT / path).read_text(), re.MULTILINE))
        if not found:
            wrong.append(f"{path}: nothing matches {pattern}")
        wrong += [f"{path}: {place[0]!r} says {place[1]}, and Cargo.toml {version}" for place in found if place[1] != version]
    for message in wrong:
        print(message, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
