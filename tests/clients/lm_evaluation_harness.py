"""lm-evaluation-harness: a multiple-choice task of its own, whose log-likelihoods must be those of `outrider score`, and
whether each ending is what greedy decoding gives."""

import json
import os
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import lm_eval
from lm_eval.tasks import TaskManager

HTTP = os.environ["OUTRIDER_HTTP"]
PROMPTS = Path(__file__).resolve().parent.parent / "prompts" / "stories.jsonl"
ITEMS = 50
# Both compute in f32, which the answer of the server is written in.
TOLERANCE = 1e-4
TASK = """
task: endings
dataset_path: json
dataset_kwargs:
  data_files: {{ "test": "{file}" }}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{context}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: label
target_delimiter: ""
metric_list:
  - metric: acc
"""


def items():
    """Beginnings of stories, each with its own last words, one or three, and with another's."""
    texts = [json.loads(line)["prompt"].split() for line in PROMPTS.read_text().splitlines()][:ITEMS]
    assert len(texts) == ITEMS
    lengths = [1 + index % 2 * 2 for index in range(ITEMS)]
    ends = [" " + " ".join(words[-length:]) for words, length in zip(texts, lengths)]
    for index, words in enumerate(texts):
        choices = [ends[index], ends[(index + 1) % ITEMS]]
        yield {"context": " ".join(words[: -lengths[index]]), "choices": choices, "label": 0}


def evaluated(folder):
    """The harness's results for each context and continuation."""
    data = folder / "items.jsonl"
    data.write_text("".join(json.dumps(item) + "\n" for item in items()))
    (folder / "endings.yaml").write_text(TASK.format(file=data))
    done = lm_eval.simple_evaluate(
        model="local-completions",
        model_args={
            "model": "default",
            "base_url": f"{HTTP}/v1/completions",
            "tokenizer_backend": "remote",
            "num_concurrent": 1,
            "max_length": 512,
        },
        tasks=["endings"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        batch_size=4,
        bootstrap_iters=0,
        log_samples=True,
    )
    for sample in done["samples"]["endings"]:
        for number, answer in enumerate(sample["filtered_resps"]):
            yield sample["doc"]["context"], sample["doc"]["choices"][number], answer


def tokens(text):
    body = json.dumps({"prompt": text, "add_special_tokens": False}).encode()
    asked = urllib.request.Request(f"{HTTP}/tokenize", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)["tokens"]


def scored(context, continuation):
    """The results of `outrider score`, which needs no server."""
    whole, before = tokens(context + continuation), len(tokens(context))
    ids = ",".join(str(token) for token in whole)
    command = [os.environ["OUTRIDER"], "score", "--json", "--dtype", "f32", "--top", "1", "--token-ids", ids]
    positions = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["positions"]
    # `top` at a position lists the most likely next tokens.
    likeliest = [position["top"][0]["token_id"] for position in positions[before - 1 : -1]]
    return sum(position["logprob"] for position in positions[before:]), likeliest == whole[before:]


with tempfile.TemporaryDirectory() as folder:
    found = list(evaluated(Path(folder)))
assert len(found) == 2 * ITEMS, len(found)
furthest = 0.0
greedy = []
for context, ending, (likelihood, is_greedy) in found:
    expected, would_come = scored(context, ending)
    assert is_greedy == would_come, (context, ending)
    greedy.append(is_greedy)
    furthest = max(furthest, abs(likelihood - expected))
print(f"{len(found)} log-likelihoods, {sum(greedy)} greedy, at most {furthest:.1e} from those of `outrider score`")
assert furthest <= TOLERANCE
assert any(greedy) and not all(greedy)
