"""A sweep over two methods to a table: what each takes of the target model, and how fast it is.

python compare_methods.py [URL]      (http://127.0.0.1:7001)
"""

import sys
from statistics import fmean
from typing import Any

from outrider import Answer, Client

PROMPTS = ["Once upon a time", "One day, a little girl", "The dog was very"]
# Each with its settings. Drafts of a fixed length: with `auto` nothing is drafted where it does not pay.
METHODS: dict[str, dict[str, Any]] = {"coupled": {"draft_len": 4}, "target-only": {}}
COLUMNS = ["method", "temperature", "tokens", "calls_per_token", "tokens_per_round", "accepted", "tokens_per_second"]


def row_of(method: str, temperature: float, answers: list[Answer]) -> dict[str, str | float]:
    """Returns the means over all prompts."""
    figures = [answer.statistics for answer in answers]
    return {
        "method": method,
        "temperature": temperature,
        "tokens": sum(len(answer.token_ids) for answer in answers),
        "calls_per_token": fmean(each.target_calls_per_token for each in figures),
        "tokens_per_round": fmean(each.mean_acceptance_length for each in figures),
        "accepted": fmean(each.draft_acceptance_rate for each in figures),
        "tokens_per_second": fmean(answer.finished.timing.tokens_per_second for answer in answers),
    }


def main(url: str) -> None:
    rows = []
    with Client(url) as client:
        for temperature in (0.0, 1.0):
            for method, settings in METHODS.items():
                answers = [
                    client.generate(
                        prompt,
                        method=method,
                        max_tokens=60,
                        seed=7,
                        temperature=temperature,
                        ignore_eos=True,
                        **settings,
                    )
                    for prompt in PROMPTS
                ]
                rows.append(row_of(method, temperature, answers))
    # `pandas.DataFrame(rows)` takes them as they are.
    print("  ".join(COLUMNS))
    for row in rows:
        cells = (f"{row[name]:.3g}" if isinstance(row[name], float) else str(row[name]) for name in COLUMNS)
        print("  ".join(cell.ljust(len(name)) for cell, name in zip(cells, COLUMNS, strict=True)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7001")
