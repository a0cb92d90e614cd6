"""Qwen Code, as its command, edits a file: over chat completions, with a real chat model that is served alone.

    qwen_code_command.py FOLDER    (with its modules)

A relay cuts what Qwen Code sends to the context of a small model, 8192 tokens: of its instructions it leaves the beginning,
and of its tools three. Such a model would not choose what to do either: the relay names the tools of the first two answers,
and leaves each of their arguments one value; the third gets no tool. The calls are written by the server, through all of
its way, and Qwen Code carries them out.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scripted_relay import ScriptedRelay, with_values

# Characters of the instructions.
INSTRUCTIONS = 4000
TOOLS = ("read_file", "edit", "write_file")


class Script:
    """What becomes of the requests of a conversation with `calls`: names of tools with their arguments."""

    def __init__(self, calls):
        self.calls = calls
        self.requests = []

    def __call__(self, body):
        if "tools" not in body:
            return body
        self.requests.append(body)
        system, *others = body["messages"]
        messages = [{**system, "content": system["content"][:INSTRUCTIONS]}, *others]
        functions = [tool["function"] for tool in body["tools"] if tool["function"]["name"] in TOOLS]
        choice = "none"
        step = sum(message["role"] == "tool" for message in others)
        if step < len(self.calls):
            called, values = self.calls[step]
            functions = [with_values(it, values) if it["name"] == called else it for it in functions]
            choice = {"type": "function", "function": {"name": called}}
        tools = [{"type": "function", "function": it} for it in functions]
        return {**body, "messages": messages, "tools": tools, "tool_choice": choice, "temperature": 0}


def main():
    qwen = Path(sys.argv[1]) / "node_modules" / ".bin" / "qwen"
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "work"
        folder.mkdir()
        notes = folder / "notes.txt"
        notes.write_text("The colour of the fox is red.\n")
        file = {"file_path": str(notes)}
        calls = [("read_file", file), ("edit", {**file, "old_string": "colour", "new_string": "color"})]
        script = Script(calls)
        with ScriptedRelay(os.environ["OUTRIDER_HTTP"], script) as relay:
            environment = {
                **os.environ,
                "HOME": home,
                "OPENAI_BASE_URL": f"{relay.url()}/v1",
                "OPENAI_MODEL": "SmolLM2",
                "OPENAI_API_KEY": "anything",
                "QWEN_CODE_MAX_OUTPUT_TOKENS": "1000",
                "QWEN_TELEMETRY_ENABLED": "false",
            }
            options = ["--yolo", "--auth-type", "openai"]
            command = [qwen, *options, "-p", "In notes.txt, write color instead of colour."]
            done = subprocess.run(
                command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400
            )
        assert done.returncode == 0, done.stdout + done.stderr
        assert notes.read_text() == "The color of the fox is red.\n", done.stdout + done.stderr
        assert done.stdout.strip(), "Qwen Code prints the last answer"
    # What was called and what came of it went back.
    assert len(script.requests) == 3, script.requests
    turns = script.requests[-1]["messages"][-4:]
    for (name, arguments), said, result in zip(calls, turns[::2], turns[1::2]):
        (call,) = said["tool_calls"]
        assert call["function"]["name"] == name and json.loads(call["function"]["arguments"]) == arguments, said
        assert result["role"] == "tool" and result["tool_call_id"] == call["id"], result


main()
