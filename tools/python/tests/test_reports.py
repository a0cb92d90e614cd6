"""Reports of outrider-bench."""

import io
import json
import tempfile
import unittest
from pathlib import Path

import pandas

from outrider import report

HEAD = {"report": {"title": "replay", "command": "outrider-bench replay x.rec --json", "version": "0.1.0"}}
ROWS = [
    {"table": "recording", "model": "target", "prompts": 2},
    {"table": "replay", "method": "coupled", "block_efficiency": 2.5},
    {"table": "replay", "method": "block", "block_efficiency": 2.75},
]


def lines(*objects):
    return "".join(json.dumps(each) + "\n" for each in objects)


class Reports(unittest.TestCase):
    def test_tables_are_rows_by_their_names_from_a_path_a_file_or_bytes(self):
        text = lines(HEAD, *ROWS)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "replay.json"
            file.write_text(text)
            for source in (file, str(file), io.StringIO(text), io.BytesIO(text.encode())):
                found = report.read(source)
                self.assertEqual(found.head["version"], "0.1.0")
                self.assertEqual(list(found.tables), ["recording", "replay"])
                self.assertEqual(found.tables["replay"][1], {"method": "block", "block_efficiency": 2.75})
        self.assertEqual(pandas.DataFrame(found.tables["replay"])["block_efficiency"].max(), 2.75)

    def test_a_command_that_failed_is_raised_with_what_it_had_found(self):
        with self.assertRaises(report.ReportError) as caught:
            report.read(io.StringIO(lines(HEAD, ROWS[0], {"error": {"message": "--draft-len: too long"}})))
        self.assertEqual(str(caught.exception), "--draft-len: too long")
        self.assertEqual(list(caught.exception.report.tables), ["recording"])

    def test_what_is_no_report_is_refused_by_its_line(self):
        for text, named in (
            ("| method |\n", "line 1 is no JSON"),
            (lines(HEAD) + "[1]\n", "line 2: expected an object"),
            (lines(HEAD, {"tokens": 1}), "line 2 has neither"),
            ("", "it is empty"),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, f"^report: {named}"):
                report.read(io.StringIO(text))
