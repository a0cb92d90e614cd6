#!/usr/bin/env python3
"""Prints pairs.jsonl: 200 outputs with a reference each, and what sacrebleu and rouge-score say of them.

    pip install sacrebleu==2.6.0 rouge-score==0.1.2
    python tools/bench/tests/quality/pairs.py > tools/bench/tests/quality/pairs.jsonl

The texts are the additions and the German sentences of models/default/corpus/heldout.jsonl; the outputs are made of them
by edits that depend on the number of the line alone.
"""

import collections
import json
import pathlib
import re
import string

import sacrebleu
from rouge_score import rouge_scorer

HELD_OUT = pathlib.Path(__file__).parents[4] / "models/default/corpus/heldout.jsonl"


def texts():
    """The lines of both kinds in turn, on one line each."""
    lines = [json.loads(line) for line in HELD_OUT.read_text().splitlines()]
    kinds = [[line["text"] for line in lines if line["kind"] == kind] for kind in ("german", "addition")]
    both = [text for pair in zip(*kinds) for text in pair]
    return [re.sub(r"^Question: (Translate to German: )?", "", text).replace("\n", " ") for text in both]


def edited(index, text, after):
    """The text with an edit, of which there are ten; `after` is the text that follows."""
    words = text.split()
    return [
        lambda: text,
        lambda: " ".join(word for place, word in enumerate(words) if place % 4 != index % 4),
        lambda: " ".join(words[place ^ 1] if place ^ 1 < len(words) else word for place, word in enumerate(words)),
        lambda: " ".join(words[: len(words) // 2] + after.split()[len(words) // 2 :]),
        lambda: text.upper() if index % 3 else text.lower(),
        lambda: text.replace("Answer:", f"&quot;Answer&quot; - {index * 1001:,}.{index} &amp; [more],") + "...",
        lambda: text.replace(" ", "\n", 2) + f"\nThe well-known 3-day answer, a {index}% one: naïve – „so“!",
        lambda: after,
        lambda: " ".join(reversed(words)),
        lambda: ["", "the", words[0], "?!"][index // 20 % 4],
    ][index // 2 % 10]()


def normalised(text):
    """normalize_answer of SQuAD's evaluation script."""
    text = "".join(char for char in text.lower() if char not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text, flags=re.UNICODE).split()


def f1(output, reference):
    """compute_f1 of the script for SQuAD 2.0."""
    output, reference = normalised(output), normalised(reference)
    if not output or not reference:
        return float(output == reference)
    same = sum((collections.Counter(output) & collections.Counter(reference)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(output), same / len(reference)
    return 2 * precision * recall / (precision + recall)


def main():
    references = texts()
    outputs = [edited(index, text, references[(index + 1) % 200]) for index, text in enumerate(references)]
    rouge = rouge_scorer.RougeScorer(["rouge2", "rougeL"], use_stemmer=False)
    for output, reference in zip(outputs, references):
        said = rouge.score(reference, output)
        pair = {"output": output, "reference": [reference], "f1": round(f1(output, reference), 6)}
        pair["rouge_2"] = round(said["rouge2"].fmeasure, 6)
        pair["rouge_l"] = round(said["rougeL"].fmeasure, 6)
        print(json.dumps(pair, ensure_ascii=False))

    def bleu(chosen, *others):
        pick = lambda of: [of[place] for place in chosen]
        return sacrebleu.corpus_bleu(pick(outputs), [pick(of) for of in others])

    everything = range(200)
    smoothed = [place for place in everything if bleu([place], references).counts[3] == 0][:12]
    of_all = {
        "bleu": bleu(everything, references).score,
        "bleu_of_two": bleu(everything, references, [text.lower() for text in references]).score,
        "smoothed": smoothed,
        "bleu_smoothed": bleu(smoothed, references).score,
    }
    print(json.dumps(of_all))


main()
