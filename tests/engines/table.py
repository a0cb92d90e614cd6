"""One table of what was run, put into a page between its markers."""

import datetime
import os
import platform
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
import sections  # noqa: E402

HEADINGS = ("engine", "what", "came of it", "refused", "bytes a round: asked, answered", "requests a round", "ms a round")
# Comments of Markdown that `outrider-bench results`, whose own are HTML's, does not take for a command of its.
BEGIN, END = "[//]: # (tests/engines/run --table", "[//]: # (end)"


class Table:
    def __init__(self):
        self.rows = []

    def add(self, engine, what, came, refused="", size="", requests="", ms=""):
        row = (engine, what, came, refused, size, requests, ms)
        self.rows.append([str(cell) for cell in row])
        print("engines: " + "; ".join(cell for cell in self.rows[-1] if cell), flush=True)

    def markdown(self):
        lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        today = datetime.date.today()
        lines += ["", f"{today}, {os.cpu_count()} cores ({platform.machine()}), which other programs may have used."]
        return "\n".join(lines) + "\n"


def put_into(page, table):
    """Puts the table between its markers of a page. Rows there of engines that were not run stay."""
    before, old, after = sections.split(page, BEGIN, END)
    was_run = {engine_of(row) for row in table.rows}
    rows = [line.strip("| ").split(" | ") for line in old.splitlines() if line.startswith("| ")][1:]
    # An empty cell at a row's end leaves nothing but its bar.
    rows = [[*row, *[""] * (len(HEADINGS) - len(row))] for row in rows]
    table.rows = sorted([row for row in rows if engine_of(row) not in was_run] + table.rows, key=engine_of)
    sections.write(page, before, table.markdown(), after)


def engine_of(row):
    return row[0].split()[0]
