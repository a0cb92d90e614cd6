#!/usr/bin/env python3
"""Holds the recipe of a release's images, deploy/docker-bake.hcl, to what it names and to who names it.

    tests/helm/images.py

- The tags that the chart's values files ask for are among those that it makes.
- What it passes as arguments the Dockerfile takes; the features are the program's.
- A variant for CUDA is compiled on and put on images of one release of CUDA.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "helm/outrider"
TARGET = re.compile(r'^target "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
ARGUMENT = re.compile(r'^    ([A-Z_]+) += "?([^"\n]*)"?$', re.MULTILINE)
CUDA = re.compile(r"nvidia/cuda:([\d.]+)-(?:devel|runtime)-(\w+[\d.]+)")


def targets():
    """The arguments and the tags' suffixes of each target."""
    text = (ROOT / "deploy/docker-bake.hcl").read_text()
    for name, body in TARGET.findall(text):
        yield name, dict(ARGUMENT.findall(body)), re.findall(r'"\$\{REPOSITORY\}:\$\{VERSION\}([\w-]*)"', body)


def wrong():
    """Yields what does not fit."""
    made = list(targets())
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    taken = dict(re.findall(r"^ARG ([A-Z_]+)=(.*)$", dockerfile, re.MULTILINE))
    stages = set(re.findall(r"^FROM .* AS (\w+)$", dockerfile, re.MULTILINE))
    manifest = (ROOT / "services/outrider/Cargo.toml").read_text()
    features = set(re.findall(r"^([\w-]+) = \[", manifest.partition("[features]")[2].partition("\n[")[0], re.MULTILINE))
    for name, arguments, tags in made:
        if not tags:
            yield f"target {name} makes no tag"
        for key in arguments.keys() - taken.keys():
            yield f"target {name} passes {key}, which deploy/Dockerfile does not take"
        for feature in arguments.get("FEATURES", "").split():
            if feature not in features:
                yield f"target {name}: the program has no feature {feature}"
        if arguments.get("TOOLCHAIN", "rust") not in stages:
            yield f"target {name}: deploy/Dockerfile has no stage {arguments['TOOLCHAIN']}"
        if arguments.get("FEATURES") == "cuda":
            on = [CUDA.fullmatch(image) for image in (taken["CUDA_IMAGE"], arguments.get("BASE_IMAGE", ""))]
            if not all(on) or on[0].groups() != on[1].groups():
                yield f"target {name}: compiled on {taken['CUDA_IMAGE']}, and put on {arguments.get('BASE_IMAGE')}"
    suffixes = {suffix for _, _, tags in made for suffix in tags}
    for file in [CHART / "values.yaml", *sorted(CHART.glob("values-*.yaml"))]:
        # That the rest is the version is held by version.py.
        for suffix in re.findall(r"^ +tag: [\d.]+([\w-]*)$", file.read_text(), re.MULTILINE):
            if suffix not in suffixes:
                yield f"{file.name} asks for a tag that ends in {suffix}, and the targets make {sorted(suffixes)}"


def main():
    found = list(wrong())
    for message in found:
        print(message, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
