"""The schemas of tests/prompts, asked of a real chat model that is served alone: every whole answer is what its schema
describes, by the package jsonschema, and every answer is the same with drafts off."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import chat_model
from jsonschema import Draft202012Validator
from openai import OpenAI
from server import Served, free_port

SCHEMAS = Path(__file__).resolve().parent.parent / "prompts" / "schemas.jsonl"
PROMPTS = [
    "Call {name}.",
    "Give me an example of {name} as JSON.",
    "Write JSON for {name}, about a trip to Paris.",
    "My cat Tom is 3 years old and likes fish. Use {name}.",
    "What would {name} look like for a small shop?",
]
MAX_TOKENS = 300


def answers(client, schema, prompt, temperature):
    """The answers with drafts and without, and why they ended."""
    asked = {
        "model": client.models.list().data[0].id,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": temperature,
        "seed": 7,
        "max_completion_tokens": MAX_TOKENS,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}},
    }
    for way in ({}, {"speculation": {"method": "target-only"}}):
        choice = client.chat.completions.create(**asked, extra_body=way).choices[0]
        yield choice.message.content, choice.finish_reason


def check(client, schema, prompt, temperature):
    """Whether the answer came to its end."""
    (text, reason), alone = answers(client, schema, prompt, temperature)
    assert (text, reason) == alone, f"{prompt}: drafts change {alone} into {(text, reason)}"
    if reason == "length":
        return False
    assert reason == "stop", reason
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(json.loads(text))
    return True


def main():
    schemas = [json.loads(line) for line in SCHEMAS.read_text().splitlines()]
    cases = [
        (it["schema"], prompt.format(name=it["name"].replace("_", " ")), temperature)
        for it in schemas
        for prompt in PROMPTS
        for temperature in (0, 1)
    ]
    port = free_port()
    arguments = ["--target-model", chat_model.file(), "--http", f"127.0.0.1:{port}"]
    quiet = ["--log", "warn", "--listen", "127.0.0.1:0", "--admin", "off"]
    with Served([os.environ["OUTRIDER"], "serve", "all", *arguments, *quiet], port) as server:
        client = OpenAI(base_url=f"{server.url()}/v1", max_retries=0)
        with ThreadPoolExecutor(8) as pool:
            whole = list(pool.map(lambda case: check(client, *case), cases))
    print(f"schemas: {len(cases)} answers, {sum(whole)} of them whole, each valid, and the same with drafts off")
    # The others are texts that a small model does not end.
    assert sum(whole) > 0.9 * len(cases), whole


main()
