"""Of the draft tokens at each position of a block, how many were accepted, over the rounds of one answer.

python acceptance_by_position.py [URL]      (http://127.0.0.1:7001)
"""

import sys

from outrider import Client

DRAFT_LEN = 6


def main(url: str) -> None:
    with Client(url) as client:
        answer = client.generate(
            "Once upon a time", max_tokens=200, seed=7, ignore_eos=True, draft_len=DRAFT_LEN, schedule="rounds"
        )
    # A block is accepted up to its first refused token: position i was decided where those before it were accepted.
    rounds = answer.rounds_table()
    print("position  decided  accepted")
    for position in range(DRAFT_LEN):
        decided = sum(1 for each in rounds if each["drafted"] > position and each["accepted"] >= position)
        accepted = sum(1 for each in rounds if each["accepted"] > position)
        print(f"{position + 1:<8}  {decided:<7}  {accepted / decided:.0%}" if decided else f"{position + 1:<8}  0")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7001")
