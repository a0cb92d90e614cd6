"""gptme, as its command, with a real chat model that is served alone: two turns, without a limit of tokens.

gptme's own instructions are longer than the context of the built-in model.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import chat_model
from server import Served, free_port

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
arguments = ["--target-model", chat_model.file(), "--served-model-name", "SmolLM2", "--http", f"127.0.0.1:{port}"]
quiet = ["--log", "warn", "--listen", "127.0.0.1:0", "--admin", "off"]
with Served([os.environ["OUTRIDER"], "serve", "all", *arguments, *quiet], port) as server:
    with tempfile.TemporaryDirectory() as home:
        said = say(server.url(), home, ["Tell a long story of a fox.", "Tell it to its end."])
answers = said.split("Assistant:")[1:]
assert len(answers) >= 2 and all(answer.strip() for answer in answers), said
# Two answers that are cut at some hundred tokens each would be shorter.
assert max(len(answer.split()) for answer in answers) > 250, said
