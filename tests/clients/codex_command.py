"""Codex, as its command, edits a file: over responses, with a real chat model that is served alone.

    codex_command.py FOLDER    (with its modules)

Codex's instructions and tools, 6300 tokens with those of types that are left out, reach the model as they are. A model this
small would not choose what to do: a relay names the tool of the first answer, and leaves its command one value; later
answers get no tool. The call is written by the server, through all of its way, and Codex carries it out.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from relay import has_result
from scripted_relay import ScriptedRelay, with_values

CONFIG = """
model = "SmolLM2"
model_provider = "outrider"
model_context_window = 8192
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.outrider]
name = "Outrider"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
TOOL = "exec_command"
COMMAND = "sed -i s/colour/color/ notes.txt"
requests = []


def scripted(body):
    """The request as it goes on."""
    requests.append(body)
    # Greedy, since an answer that goes on to the end of the context is an error to Codex.
    body = {**body, "temperature": 0}
    if has_result(body):
        return {**body, "tool_choice": "none"}
    tools = [with_values(tool, {"cmd": COMMAND}) if tool.get("name") == TOOL else tool for tool in body["tools"]]
    return {**body, "tools": tools, "tool_choice": {"type": "function", "name": TOOL}}


def main():
    codex = Path(sys.argv[1]) / "node_modules" / ".bin" / "codex"
    with tempfile.TemporaryDirectory() as home, ScriptedRelay(os.environ["OUTRIDER_HTTP"], scripted) as relay:
        folder = Path(home) / "work"
        folder.mkdir()
        notes = folder / "notes.txt"
        notes.write_text("The colour of the fox is red.\n")
        (Path(home) / "config.toml").write_text(CONFIG.format(url=relay.url()))
        options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        command = [codex, "exec", *options, "In notes.txt, write color instead of colour."]
        environment = {**os.environ, "HOME": home, "CODEX_HOME": home}
        done = subprocess.run(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert notes.read_text() == "The color of the fox is red.\n", done.stderr
        assert done.stdout.strip(), "Codex prints the last answer"
    # What was called and what came of it went back.
    assert len(requests) == 2, requests
    call, result = requests[1]["input"][-2:]
    assert call["type"] == "function_call" and call["name"] == TOOL and COMMAND in call["arguments"], call
    assert result["type"] == "function_call_output" and result["call_id"] == call["call_id"], result


main()
