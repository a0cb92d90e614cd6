"""Whole requests with an engine beneath the verifier, against the same with Outrider's own engine."""

import statistics
import urllib.request

from capture import Answer, version
from drafts import PROMPTS
from servers import Failed, outrider

TOKENS = 48
SEEDS = range(4)
TEMPERATURES = (0, 1)
# What parts of rows cannot tell, and the field that the refusal names.
REFUSED = {
    "repetition_penalty": {"repetition_penalty": 1.2},
    "verification": {"speculation": {"verification": "block"}},
    "accept_at": {"speculation": {"method": "rejection", "accept_at": "coordinator"}},
}


def ask(server, **more):
    body = {"model": "default", "max_tokens": TOKENS, "ignore_eos": True, "return_token_ids": True, **more}
    return Answer(f"{server.url}/v1/completions", body)


def answers(server):
    """Tokens of each request, and milliseconds a token."""
    found, took = {}, []
    for temperature in TEMPERATURES:
        for prompt in PROMPTS:
            for seed in SEEDS:
                answer = ask(server, prompt=prompt, temperature=temperature, seed=seed)
                if answer.status != 200:
                    raise Failed(f"requests over {server.name}: status {answer.status}: {answer.said}")
                found[temperature, prompt, seed] = answer.said["choices"][0]["token_ids"]
                took.append(answer.ms / TOKENS)
    return found, statistics.median(took)


def refusals(server):
    """The fields that are refused by name."""
    for field, change in REFUSED.items():
        answer = ask(server, prompt=PROMPTS[0], **change)
        if answer.status != 400 or field not in answer.why():
            raise Failed(f"requests over {server.name}: {field} is not refused: {answer.status}: {answer.said}")
    return ", ".join(f"`{field}`" for field in REFUSED)


def gap(server, prompt, tokens):
    """How far apart, at T = 0, the two most likely tokens are after `tokens`, to our own engine."""
    answer = ask(server, prompt=prompt, temperature=0, logprobs=2)
    likely = answer.said["choices"][0]["logprobs"]["top_logprobs"][len(tokens)]
    first, second = sorted(likely.values(), reverse=True)[:2]
    return first - second


def deciding(server):
    """The share of a round at the verifier that it takes to rank noise, to ask, and to prove."""
    spent = {phase: 0.0 for phase in ("verify", "verify_accept")}
    with urllib.request.urlopen(f"{server.admin}/metrics", timeout=20) as answer:
        for line in answer.read().decode().splitlines():
            for phase in spent:
                if line.startswith("outrider_round_duration_seconds_sum") and f'phase="{phase}"' in line:
                    spent[phase] += float(line.rpartition(" ")[2])
    return spent["verify_accept"] / spent["verify"]


def add(table, engine, server, binary, scratch, model):
    with outrider(binary, scratch, "own", model) as own, outrider(binary, scratch, engine, model, server.url) as over:
        expected, own_ms = answers(own)
        found, over_ms = answers(over)
        share = deciding(over)
        refused = refusals(over)
        near = 0
        for request, tokens in expected.items():
            if found[request] == tokens:
                continue
            temperature, prompt, _ = request
            same = next(at for at, pair in enumerate(zip(tokens, found[request])) if pair[0] != pair[1])
            # Drawn ones cannot be looked into from here.
            if temperature == 0 and gap(own, prompt, tokens[:same]) > 1e-4:
                raise Failed(f"requests over {engine}: other tokens after {same} of {request}")
            near += 1
        if near > len(expected) / 50:
            raise Failed(f"requests over {engine}: {near} of {len(expected)} have other tokens")
    what = f"{len(expected)} requests of {TOKENS} tokens through a verifier over it, T = 0 and 1"
    came = f"{len(expected) - near} have the tokens of our own engine in f32, {near} others"
    came += f"; a token takes {over_ms:.1f} ms, with our own engine {own_ms:.1f}; deciding takes {share:.1%} of a round"
    table.add(f"{engine} {version(engine, server.url)}", what, came, refused)
