"""Renders the templates here as the transformers library does, into cases.json, those in calls/ with tools, into calls.json, and
each line of expressions.txt, a small template, into expressions.json.

    pip install jinja2 && python render.py [FOLDER]     # where to, if not here
"""

import json
import pathlib
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
INTO = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE


class Refused(Exception):
    pass


def raise_exception(message):
    raise Refused(message)


class Generation(Extension):
    """What an assistant said: transformers notes where it stands, and writes it as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("written"), [], [], body).set_lineno(line)

    def written(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
)
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception


def message(role, content):
    return {"role": role, "content": content}


SYSTEM = message("system", "  Answer briefly.\n")
TURNS = [
    message("user", "What is 2 + 2? "),
    message("assistant", " 4"),
    message("user", "And <b>\"half\"</b> of it — in Ägypten?\nSay it."),
]
CONVERSATIONS = {
    "one turn": TURNS[:1],
    "three turns": TURNS,
    "system first": [SYSTEM, *TURNS],
    "roles out of order": [TURNS[0], TURNS[0]],
    "a tool": [TURNS[0], message("tool", "x: 1\n  2?")],
    "many": [message("skip", "-"), *TURNS, message("skip", "x"), message("user", "last?")],
}
TOKENS = {
    "chatml": ("", "<|im_end|>"),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
    "mistral": ("<s>", "</s>"),
    "gemma": ("<bos>", "<eos>"),
    "features": ("", ""),
}

cases = []
for name, (bos, eos) in TOKENS.items():
    template = environment.from_string((HERE / f"{name}.jinja").read_text())
    for conversation, messages in CONVERSATIONS.items():
        given = {key: token for key, token in [("bos_token", bos), ("eos_token", eos)] if token}
        case = dict(template=name, conversation=conversation, bos_token=bos, eos_token=eos, messages=messages)
        try:
            case["text"] = template.render(
                messages=messages, tools=None, documents=None, add_generation_prompt=True, **given
            )
        except Refused as refused:
            case["refused"] = str(refused)
        cases.append(case)
(INTO / "cases.json").write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")

THOUGHT = [
    message("system", "Be brief."),
    message("user", "hi there"),
    message("assistant", "<think>x</think>\n\nyes"),
]
lines = []
for line in (HERE / "expressions.txt").read_text().splitlines():
    try:
        text = environment.from_string(line).render(messages=THOUGHT, tools=None, documents=None)
        lines.append(dict(template=line, text=text))
    except Exception as error:
        lines.append(dict(template=line, refused=str(error)))
(INTO / "expressions.json").write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n")

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Tells it", "parameters": PARAMETERS}}
    for name in ("weather", "time")
]
# Beginnings, ends and escapes that are hard to read.
HARD = {"city": 'Zürich "x" \\ {[</b>', "days": 3}
# What ends the assistant's turn: a token that is no text. OpenAI's channels end with marks that are read.
ENDS = {
    "deepseek": "<｜end▁of▁sentence｜>",
    "gpt-oss": "",
    "granite": "<|end_of_text|>",
    "hermes": "<|im_end|>",
    "llama-3": "<|eot_id|>",
    "mistral": "</s>",
    "mistral-args": "</s>",
    "phi-4": "<|end|>",
    "qwen3-coder": "<|im_end|>",
}


def with_calls(form, content, thought, arguments):
    """A turn that calls tools with these arguments, as its template takes it."""
    calls = []
    for at, (name, given) in enumerate(zip(("weather", "time"), arguments)):
        # Some templates take text.
        given = json.dumps(given, ensure_ascii=False) if form == "deepseek" else given
        identifier = f"cal1abc{at:02}"
        calls.append({"id": identifier, "type": "function", "function": {"name": name, "arguments": given}})
    turn = {**message("assistant", content), "tool_calls": calls}
    return {**turn, "reasoning_content": thought, "thinking": thought} if thought else turn


def in_system(form, messages):
    """The messages of a template that reads the tools in the system message."""
    if form != "phi-4":
        return messages
    functions = json.dumps([tool["function"] for tool in TOOLS], ensure_ascii=False, separators=(",", ":"))
    return [{**message("system", ""), "tools": functions}, *messages]


calls = []
for form, end in ENDS.items():
    template = environment.from_string((HERE / "calls" / f"{form}.jinja").read_text())

    def render(messages, tools=None, **given):
        return template.render(messages=messages, tools=tools, documents=None, bos_token="<s>", eos_token="</s>", **given)

    for content, thought, arguments in [("", "", [HARD]), ("I look.", "Hm.", [{"city": "Paris"}, {}])]:
        turn = with_calls(form, content, thought, arguments)
        user = message("user", "Weather?")
        results = [
            {**message("tool", f"It is {at}."), "name": call["function"]["name"], "tool_call_id": call["id"]}
            for at, call in enumerate(turn["tool_calls"])
        ]
        before = render([user], add_generation_prompt=True)
        written = render([user, turn], add_generation_prompt=False)
        assert written.startswith(before), form
        output = written[len(before) :]
        output = output.split(end)[0] if end else output
        calls.append(
            dict(
                form=form,
                content=content if content and content in output else "",
                reasoning=thought if thought and thought in output else "",
                arguments=[json.dumps(given, ensure_ascii=False) for given in arguments],
                output=output,
                given_content=content,
                given_reasoning=thought,
                prompt=render(in_system(form, [user, turn, *results]), TOOLS, add_generation_prompt=True),
            )
        )
(INTO / "calls.json").write_text(json.dumps(calls, indent=1, ensure_ascii=False) + "\n")
