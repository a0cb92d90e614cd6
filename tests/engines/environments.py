"""The engines' environments: what `requirements/` lists, installed outside of the repository.

`requirements/NAME.txt` names every package in its version. `lock` makes it of NAME.in: with NAME.overrides, since PyPI
has no build of torch for CPUs alone, and without NAME.excludes, which are kernels for GPUs.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENGINES = ("sglang", "vllm")
UV = "uv==0.13.9"
PYTHON = "3.11"


class CannotInstall(Exception):
    """What is needed is not to be had; says which command failed, and how."""


def home():
    """Where environments are kept."""
    given = os.environ.get("OUTRIDER_ENGINES")
    return Path(given) if given else Path.home() / ".cache" / "outrider" / "engines"


def python(engine):
    """The interpreter of an engine's environment."""
    return home() / engine / "bin" / "python"


def run(command, **environment):
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-2000:]
        raise CannotInstall(f"`{' '.join(command)}` ended with status {done.returncode}:\n{said}")


def uv():
    """The installer, which is installed itself the first time."""
    folder = home() / "uv"
    found = folder / "bin" / "uv"
    if not found.exists():
        run([sys.executable, "-m", "venv", folder])
        run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV])
    return found


def cache():
    return {"UV_CACHE_DIR": str(home() / "cache")}


def install(engine):
    """Installs an engine, unless it is there as its file says."""
    wanted = (HERE / "requirements" / f"{engine}.txt").read_text()
    folder = home() / engine
    done = folder / "installed.txt"
    if done.exists() and done.read_text() == wanted:
        return
    print(f"engines: installing {engine} into {folder}", flush=True)
    run([uv(), "venv", "--quiet", "--clear", "--python", PYTHON, folder], **cache())
    # Every package is listed, so none is looked for.
    listed = ["--no-deps", "-r", HERE / "requirements" / f"{engine}.txt"]
    run([uv(), "pip", "install", "--quiet", "--python", python(engine), *listed], **cache())
    done.write_text(wanted)


def install_package(engine, folder):
    """Adds a package of this repository to an engine's environment, as it is now."""
    command = [uv(), "pip", "install", "--quiet", "--no-deps", "--reinstall", "--python", python(engine), folder]
    run(command, **cache())


def lock(engine):
    """Makes the file of an engine's packages anew."""
    folder = HERE / "requirements"
    command = [uv(), "pip", "compile", "--quiet", "--upgrade", "--python", PYTHON, "--no-annotate", "--no-header"]
    command += ["--overrides", folder / f"{engine}.overrides"]
    excludes = folder / f"{engine}.excludes"
    command += ["--excludes", excludes] if excludes.exists() else []
    run([*command, folder / f"{engine}.in", "-o", folder / f"{engine}.txt"], **cache())
