"""Outrider's own package for Python, tools/python, as it stands there: answers, refusals, listings, and its examples."""

import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "tools" / "python"
sys.path.insert(0, str(PACKAGE / "src"))

from outrider import Client, OutriderError, Round, Started  # noqa: E402
from outrider.v1 import coordinator_pb2 as v1  # noqa: E402

URL = f"http://{os.environ['OUTRIDER_GRPC']}"
PROMPT = "Once upon a time"


def example(name):
    """What an example prints: its headings, and a list of words for each row."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE / "src")}
    command = [sys.executable, "-B", PACKAGE / "examples" / f"{name}.py", URL]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    heading, *rows = [line.split() for line in printed.splitlines()]
    assert rows and all(len(row) == len(heading) for row in rows), printed
    return [dict(zip(heading, row, strict=True)) for row in rows]


with Client(URL) as client:
    assert client.models()[0].name == "default" and client.methods()[0].name == "coupled"
    assert client.axes() and client.rules()

    answer = client.generate(PROMPT, max_tokens=60, seed=7, ignore_eos=True, draft_len=4)
    assert len(answer.token_ids) == 60 and "".join(answer.pieces) == answer.text, answer
    assert answer.finished.settings["draft_len"] == "4" and answer.finished.lossless, answer.finished
    alone = client.generate(PROMPT, max_tokens=60, seed=7, ignore_eos=True, method="target-only")
    assert alone.token_ids == answer.token_ids
    # Each round's figures are those of the whole.
    table, statistics = answer.rounds_table(), answer.statistics
    assert [row["accepted"] for row in table] == statistics.per_step_accepted, (table, statistics)
    assert sum(row["emitted"] for row in table) <= 60 and all(row["verify_us"] for row in table), table
    assert answer.origins.count("accepted") == statistics.num_accepted_draft_tokens, answer.origins
    assert [row["token_id"] for row in answer.tokens_table()] == answer.token_ids

    chat = [{"role": "user", "content": "Go on."}]
    scored = client.generate(chat, max_tokens=4, temperature=0, request=v1.GenerateRequest(logprobs=True, top_logprobs=2))
    assert all(row["logprob"] <= 0 for row in scored.tokens_table()) and len(scored.logprobs[0].top) == 2, scored

    stream = client.stream(PROMPT, max_tokens=400, ignore_eos=True, draft_len=4)
    assert isinstance(next(stream), Started) and any(isinstance(event, Round) for event in stream)
    left = client.stream(PROMPT, max_tokens=400, ignore_eos=True)
    next(left)
    left.close()

    for arguments, field in (({"max_tokens": 0}, "max_tokens"), ({"alpha": 0.5}, "settings.alpha"), ({"model": "x"}, "model")):
        try:
            client.generate(PROMPT, **arguments)
        except OutriderError as error:
            assert error.field == field and error.text.startswith(field) and error.answer is None, (error, error.field)
            print(f"outrider_python: refused: {error}")
        else:
            raise AssertionError(f"{field} was not refused")

sweep = {(row["method"], row["temperature"]): row for row in example("compare_methods")}
assert all(row["tokens"] == "180" for row in sweep.values()) and len(sweep) == 4, sweep
assert float(sweep["coupled", "0"]["calls_per_token"]) < float(sweep["target-only", "0"]["calls_per_token"]), sweep
positions = example("acceptance_by_position")
assert int(positions[0]["decided"]) > int(positions[1]["decided"]) > 0, positions
