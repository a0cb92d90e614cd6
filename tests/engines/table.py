"""One table of what was run, put into a page between its markers."""

import datetime
import os
import platform

from servers import Failed

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
    """Puts the table between the markers of a page: a line that begins as BEGIN says, and END. Rows there of engines
    that were not run stay."""
    text = page.read_text()
    before, found, rest = text.partition(BEGIN)
    marker, closed, rest = rest.partition("\n")
    old, ended, after = rest.partition(END)
    if not (found and closed and ended):
        raise Failed(f"{page} has no section between lines {BEGIN}...) and {END}")
    was_run = {row[0].split()[0] for row in table.rows}
    rows = [line.strip("| ").split(" | ") for line in old.splitlines() if line.startswith("| ")][1:]
    # An empty cell at a row's end leaves nothing but its bar.
    rows = [[*row, *[""] * (len(HEADINGS) - len(row))] for row in rows]
    table.rows = sorted([row for row in rows if row[0].split()[0] not in was_run] + table.rows, key=engine_of)
    page.write_text(f"{before}{found}{marker}\n\n{table.markdown()}\n{END}{after}")


def engine_of(row):
    return row[0].split()[0]
