#!/usr/bin/env python3
"""Compares a GGUF file in llama.cpp and in outrider: tokens of sample texts, and greedy continuations.

    pip install llama-cpp-python        # builds llama.cpp
    outrider quantize embedded:target target.gguf --to q8_0
    tests/llama_cpp/compare.py target.gguf

Both read the same file. Tokens must be the same. Greedy tokens must be the same too, but where the two
likeliest tokens are less than --margin apart in outrider's natural logarithms of probabilities: sums in
another order may then prefer the other one. After such a token the two texts are no longer comparable,
so the comparison of that prompt ends there.

The exit code is 0 if that holds for every text and prompt. Needs no network; not part of CI.
"""

import argparse
import json
import subprocess
import sys

TEXTS = [
    "Hello, world! It's 1234567 o'clock, isn't it?",
    "  two  spaces\n\n\tand a tab\r\nend ",
    "def f(x):\n    return {\"a\": [x, 3.14e-10]}  # done",
    "Der Hund sieht die Kätzchen über die Straße.",
    "日本語とहिन्दी, русский и العربية: ½ ² ①",
    "naïve café e\u0301 — 👩‍👩‍👧‍👦 …",
    "Question: What is 12 plus 345?\nAnswer:",
]
# By ggml's numbers (ggml.h, ggml_type).
GGML_TYPES = {"f32": 0, "f16": 1}
PROMPTS = [
    "Once upon a time",
    "Question: Translate to German: The dog sees the cat.\nAnswer:",
    "Question: What is 12 plus 30?\nAnswer:",
    "The little girl went to the",
    "Question: Tom has 3 apples and buys 4 more. How many apples does he have?\nAnswer:",
    "In the morning the old man",
    "def add(a, b):\n",
    "A",
]


def outrider_score(binary, model, tokens, formats, top):
    """The rows of `outrider score`: entry t has the likeliest tokens after token t."""
    ids = ",".join(map(str, tokens))
    command = [binary, "score", "--model", model, "--token-ids", ids, *formats]
    command += ["--top", str(top), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"outrider score: {done.stderr.strip()}")
    return json.loads(done.stdout)["positions"]


def outrider_tokens(binary, model, text):
    command = [binary, "score", "--model", model, "--text", text, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"outrider score: {done.stderr.strip()}")
    return [position["token_id"] for position in json.loads(done.stdout)["positions"]]


def llama_greedy(llama, prompt, count, ends):
    tokens = []
    llama.reset()
    for token in llama.generate(prompt, top_k=1, temp=0.0, repeat_penalty=1.0):
        tokens.append(token)
        if len(tokens) == count or token in ends:
            return tokens
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the GGUF file")
    parser.add_argument("--outrider", default="target/release/outrider", help="the binary")
    parser.add_argument("--dtype", default="auto", help="what outrider computes in")
    parser.add_argument("--kv-dtype", default="auto", help="what outrider keeps keys and values in")
    parser.add_argument("--tokens", type=int, default=64, help="greedy tokens a prompt")
    parser.add_argument("--margin", type=float, default=0.05, help="differences below it are excused")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cache", choices=GGML_TYPES, default="f16", help="what llama.cpp keeps keys and values in"
    )
    parser.add_argument("--no-texts", action="store_true", help="the file has no tokenizer: prompts are made of ids")
    args = parser.parse_args()
    try:
        from llama_cpp import Llama
    except ImportError:
        sys.exit("llama.cpp's Python binding is missing: pip install llama-cpp-python")
    cache = GGML_TYPES[args.cache]
    llama = Llama(
        args.model,
        n_ctx=512,
        n_threads=args.threads,
        n_threads_batch=args.threads,
        type_k=cache,
        type_v=cache,
        verbose=False,
    )
    failures = 0

    prompts = []
    if args.no_texts:
        size = llama.n_vocab()
        prompts = [[(7 * i + 31 * n + 3) % size for i in range(12)] for n in range(len(PROMPTS))]
        ends = set()
    else:
        ends = {llama.token_eos()}
        for text in TEXTS + PROMPTS:
            ours = outrider_tokens(args.outrider, args.model, text)
            theirs = llama.tokenize(text.encode(), add_bos=True, special=True)
            if ours != theirs:
                failures += 1
                print(f"tokens of {text!r} differ:\n  outrider  {ours}\n  llama.cpp {theirs}")
        print(f"tokens: {len(TEXTS + PROMPTS) - failures} of {len(TEXTS + PROMPTS)} texts the same")
        prompts = [llama.tokenize(text.encode(), add_bos=True, special=True) for text in PROMPTS]

    same = total = 0
    for number, prompt in enumerate(prompts):
        theirs = llama_greedy(llama, prompt, args.tokens, ends)
        # One forward over prompt and continuation says what outrider would have chosen at each place.
        formats = ["--dtype", args.dtype, "--kv-dtype", args.kv_dtype]
        rows = outrider_score(args.outrider, args.model, prompt + theirs[:-1], formats, 2)
        rows = rows[len(prompt) - 1:]
        total += len(theirs)
        for at, (token, row) in enumerate(zip(theirs, rows)):
            first, second = row["top"][:2]
            if first["token_id"] == token:
                same += 1
                continue
            margin = first["logprob"] - second["logprob"]
            excused = margin < args.margin and second["token_id"] == token
            failures += not excused
            print(
                f"prompt {number}, token {at}: llama.cpp {token}, outrider {first['token_id']}, "
                f"margin {margin:.4f}{' (excused)' if excused else ''}"
            )
            total -= len(theirs) - at - 1
            break
    print(f"greedy: {same} of {total} tokens the same in {len(prompts)} prompts")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
