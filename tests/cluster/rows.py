"""What came of the cases: a row for each event, printed as it comes and as a Markdown table at the end."""

import datetime
import os
import platform
import sys
from collections import namedtuple
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import sections  # noqa: E402

Row = namedtuple("Row", "event requests failed resumed slowest undisturbed")
HEADINGS = ("event", "requests", "failed", "resumed", "slowest, s", "slowest undisturbed, s")
# Comments of Markdown that `outrider-bench results`, whose own are HTML's, does not take for a command of its.
BEGIN, END = "[//]: # (tests/cluster/run --table", "[//]: # (end)"


class Failed(Exception):
    """A case did not come out as it should."""


class Rows:
    """The rows so far."""

    def __init__(self):
        self.rows = []

    def add(self, event, answers=(), undisturbed=None):
        """Prints a row and keeps it; an event without requests has empty cells."""
        took = [answer.ended - answer.began for answer in answers]
        row = Row(
            event,
            len(took) if took else "",
            sum(answer.how != "ok" for answer in answers) if took else "",
            sum(answer.resumes > 0 for answer in answers) if took else "",
            f"{max(took):.1f}" if took else "",
            f"{undisturbed:.1f}" if undisturbed is not None else "",
        )
        self.rows.append(row)
        print("   {:<66} {:>5} {:>3} {:>3} {:>5} {:>5}".format(*row), flush=True)

    def markdown(self):
        """The table, with the machine and the day below it."""
        lines = ["| " + " | ".join(HEADINGS) + " |", "|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in self.rows]
        today = datetime.date.today()
        lines += ["", f"{today}, {os.cpu_count()} cores ({platform.machine()}), which other builds may have used."]
        return "\n".join(lines) + "\n"


def heading():
    print("   {:<66} {:>5} {:>3} {:>3} {:>5} {:>5}".format("event", "asked", "bad", "res", "slow", "else"), flush=True)


def put_into(page, table):
    """Puts the table between its markers of a page."""
    before, _, after = sections.split(Path(page), BEGIN, END)
    sections.write(Path(page), before, table, after)
