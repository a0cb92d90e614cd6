"""Prompts to train acceptance heads with: the beginnings of training texts, as many of each kind.

    python head_prompts.py CORPUS PROMPTS [PER_KIND]

CORPUS is the folder that corpus.py made; only its train.jsonl is read. A question's prompt ends with its
"Answer:", any other text's after its first words. The same corpus gives the same prompts.
"""

import json
import sys
from pathlib import Path

# Words of a prompt that has no question.
WORDS = 10
# Longest prompt: prompt and response must fit into the pair's context.
MAX_CHARACTERS = 700


def prompt(text):
    if text.startswith("Question:"):
        head, answer, _ = text.partition("\nAnswer:")
        return head + answer if answer else None
    words = text.split(" ")
    return " ".join(words[:WORDS]) if len(words) > 2 * WORDS else None


def main(corpus, prompts, per_kind=250):
    found = {}
    with open(Path(corpus) / "train.jsonl", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            mine = found.setdefault(document["kind"], [])
            begun = prompt(document["text"])
            if len(mine) < per_kind and begun and len(begun) <= MAX_CHARACTERS and begun not in mine:
                mine.append(begun)
    with open(prompts, "w", encoding="utf-8") as out:
        # In turn, so that every kind is among those held out.
        for turn in range(per_kind):
            for kind in sorted(found):
                if turn < len(found[kind]):
                    row = {"kind": kind, "prompt": found[kind][turn]}
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
