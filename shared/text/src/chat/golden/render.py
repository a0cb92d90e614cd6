"""Renders the templates here as the transformers library does, into cases.json, and each line of expressions.txt, a small
template, into expressions.json.

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
