"""vLLM with draft tokens of an Outrider drafter: the same tokens as without, and fewer steps."""

import json
import time
import urllib.request

from capture import Answer
from servers import NAME, Failed

PROMPTS = ("Once upon a time", "The house at the end of the road", "Question: Tom has 3 apples and", "def main(")
TOKENS = 64
# Longer than the default, for a machine that does other work.
DEADLINE_MS = 200
DRAFTS = 4
COUNTERS = ("vllm:spec_decode_num_drafts", "vllm:spec_decode_num_draft_tokens", "vllm:spec_decode_num_accepted_tokens")


def arguments(drafter_url):
    """What vLLM is started with."""
    speculative = {"method": "custom_class", "model": "vllm_outrider.OutriderProposer", "num_speculative_tokens": DRAFTS}
    outrider = {"url": drafter_url, "deadline_ms": DEADLINE_MS, "release_after_ms": 2000}
    return [
        "--speculative-config",
        json.dumps(speculative),
        "--additional-config",
        json.dumps({"outrider": outrider}),
    ]


def greedy(url):
    """The tokens of one answer for each prompt, all in one request, so that they are a batch."""
    body = {"model": NAME, "prompt": list(PROMPTS), "max_tokens": TOKENS, "temperature": 0}
    answer = Answer(f"{url}/v1/completions", {**body, "ignore_eos": True, "return_token_ids": True})
    if answer.status != 200:
        raise Failed(f"vllm: status {answer.status}: {answer.said}")
    choices = sorted(answer.said["choices"], key=lambda choice: choice["index"])
    return [choice["token_ids"] for choice in choices]


def metrics(url):
    """Sums of the samples of each metric, by its name without `_total`."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0].removesuffix("_total")
            found[name] = found.get(name, 0) + float(value)
    return found


def counted(url):
    found = metrics(url)
    return [found.get(counter, 0) for counter in COUNTERS]


def compare(url, expected, drafter):
    """What the drafts were good for; fails where a token changes, or none is accepted, or a session is left."""
    if greedy(url) != expected:
        raise Failed("vllm: its greedy tokens are other ones with draft tokens")
    rounds, drafted, accepted = counted(url)
    if not accepted:
        raise Failed(f"vllm: no draft token accepted, {drafted:.0f} drafted")
    until = time.monotonic() + 20
    while sessions(drafter):
        if time.monotonic() > until:
            raise Failed(f"vllm: {sessions(drafter):.0f} sessions are left at the drafter")
        time.sleep(0.5)
    return {"rounds": int(rounds), "drafted": int(drafted), "accepted": int(accepted)}


def sessions(drafter):
    return metrics(drafter.admin).get("outrider_sessions", 0)


def without_drafter(url, expected):
    """The drafter is gone: the tokens are the same."""
    before = counted(url)
    if greedy(url) != expected:
        raise Failed("vllm: its greedy tokens are other ones once the drafter is gone")
    if counted(url)[1] != before[1]:
        raise Failed("vllm: there are draft tokens of a drafter that is gone")
