"""What `outrider-bench COMMAND --json` prints, `replay` among them: tables of rows that pandas.DataFrame takes as they are."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from outrider.records import Row


class ReportError(Exception):
    """A command that failed; `report` is what it had found by then."""

    def __init__(self, message: str, report: "Report") -> None:
        super().__init__(message)
        self.report = report


@dataclass
class Report:
    """What was found: `head` says what was run, when and where, under "title", "command", "version", "date" and "machine";
    `tables` has the rows of each table by its name, in the order of printing."""

    head: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)


def read(source: str | PathLike[str] | Iterable[str | bytes]) -> Report:
    """Reads a report from the file named, or from the lines of an open file or a process's output.

    Raises ValueError for a line that belongs to no report, ReportError where the command failed, and OSError.
    """
    if isinstance(source, (str, PathLike)):
        with Path(source).open(encoding="utf-8") as lines:
            return read(lines)
    report = Report()
    for number, line in enumerate(source, 1):
        if line.strip():
            _add(report, number, line)
    if not report.head:
        raise ValueError("report: it is empty; run `outrider-bench COMMAND --json`")
    return report


def _add(report: Report, number: int, line: str | bytes) -> None:
    """Adds what a line says."""
    try:
        said = json.loads(line)
    except ValueError as error:
        raise ValueError(f"report: line {number} is no JSON, so not of --json: {error}") from error
    if not isinstance(said, dict):
        raise ValueError(f"report: line {number}: expected an object, found {type(said).__name__}")
    if "error" in said and "table" not in said:
        raise ReportError(str(said["error"].get("message", said["error"])), report)
    if "report" in said and "table" not in said:
        report.head = said["report"]
    elif "table" in said:
        name = said.pop("table")
        report.tables.setdefault(name, []).append(said)
    else:
        raise ValueError(f'report: line {number} has neither "report" nor "table", so is not of --json')
