"""What is generated from: the same token ids for all, which Outrider's tokenizer makes of texts of the repository."""

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "tests" / "prompts" / "stories.jsonl"
LONG = ROOT / "models" / "default" / "corpus" / "heldout.jsonl"
# What is to be repeated, in words.
PASSAGE = 80


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    repeats: int
    prompts: int
    new_tokens: int
    # Of the long prompt.
    long_tokens: int

    @property
    def context(self):
        """Longest sequence, in tokens; answers to the other prompts are far shorter."""
        return max(self.long_tokens + self.new_tokens, 2048)


FULL = Size(repeats=5, prompts=2, new_tokens=64, long_tokens=4000)
QUICK = Size(repeats=2, prompts=1, new_tokens=24, long_tokens=500)


def prompts(outrider, size):
    """Token ids by kind of prompt: beginnings of stories; requests to repeat a passage; one long text."""
    stories = [json.loads(line)["prompt"] for line in STORIES.read_text(encoding="utf-8").splitlines()]
    long = [json.loads(line)["text"] for line in LONG.read_text(encoding="utf-8").splitlines()]
    passages = [" ".join(text.split()[:PASSAGE]) for text in long[: size.prompts]]
    joined = []
    for text in long:
        # One by one: together they may be longer than the model takes.
        joined += outrider.ask(text=text, chat=False)["tokens"]
        if len(joined) >= size.long_tokens:
            break
    return {
        "story": [outrider.ask(text=text, chat=False)["tokens"] for text in stories[: size.prompts]],
        "repeat": [outrider.ask(text=f"Repeat this text: {text}", chat=True)["tokens"] for text in passages],
        "long": [joined[: size.long_tokens]],
    }
