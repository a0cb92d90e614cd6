"""Choices proved from parts of rows, against those from whole rows of the same engine."""

import json
import subprocess
from collections import namedtuple

import environments
from servers import CONTEXT, MODELS, NAME, ROOT, VOCAB, Failed

# How an engine is gone through: tokens of a sequence and how many are committed at first, sequences of a request.
Plan = namedtuple("Plan", "engine committed length sessions")
PLANS = {
    # 100 rows of a sequence.
    "sglang": [Plan("sglang", 100, 199, 1), Plan("sglang", 100, 199, 2)],
    # vLLM reads a sequence from its beginning in each round, and answers with all of its rows: 20 rows each.
    "vllm": [Plan("vllm", 5, 24, 1), Plan("vllm-completions", 5, 24, 1)],
}
SEED = 11


def build():
    """The program that goes through the rounds."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "engines", "--example", "prove"]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "examples" / "prove"


def sequences(length, count):
    """The beginnings of texts that the model was not trained on."""
    # The tokenizer is in the environment of an engine, not in this one.
    program = (
        "import json, sys; from tokenizers import Tokenizer; read = Tokenizer.from_file(sys.argv[1]);"
        "print(json.dumps([read.encode(json.loads(line)['text']).ids for line in open(sys.argv[2])]))"
    )
    engine = next(name for name in environments.ENGINES if environments.python(name).exists())
    files = [MODELS / "tokenizer" / "tokenizer.json", MODELS / "corpus" / "heldout.jsonl"]
    found = subprocess.run([environments.python(engine), "-c", program, *files], capture_output=True, text=True, check=True)
    texts = [tokens[:length] for tokens in json.loads(found.stdout) if len(tokens) >= length]
    if len(texts) < count:
        raise Failed(f"there are {len(texts)} texts of {length} tokens, {count} are needed")
    return texts[:: len(texts) // count][:count]


def prove(program, plan, url, context, rows):
    """The report of so many rows, or the words in which the engine refuses."""
    count = -(-rows // (plan.length + 1 - plan.committed))
    job = {
        "engine": plan.engine,
        "url": url,
        "model": NAME,
        "vocab_size": VOCAB,
        "context_len": context,
        "sequences": sequences(plan.length, count),
        "committed": plan.committed,
        "draft_tokens": 4,
        "sessions": plan.sessions,
        "seed": SEED,
    }
    done = subprocess.run([program], input=json.dumps(job), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if "NotOffered" in done.stderr:
            return None, done.stderr.partition('"')[2].partition('"')[0]
        raise Failed(f"proofs over {plan.engine}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    wrong = {way: counts["wrong"] for way, counts in report["ways"].items() if counts["wrong"]}
    if wrong:
        raise Failed(f"proofs over {plan.engine}: wrong ones: {wrong}")
    if report["rows"] < rows:
        raise Failed(f"proofs over {plan.engine}: {report['rows']} rows, expected {rows}")
    return report, ""


def context_of(engine, said):
    """What the engine takes for one sequence at most, by what it says of itself."""
    if engine == "sglang":
        return said["server_info"]["max_req_input_len"]
    return said.get("v1/models", {}).get("data", [{}])[0].get("max_model_len", CONTEXT)
