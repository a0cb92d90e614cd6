"""The generated code is what `generate` makes of the .proto files."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import outrider

ROOT = Path(__file__).resolve().parents[1]


class Generated(unittest.TestCase):
    def test_the_generated_code_is_that_of_the_proto_files(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "generate", folder], check=True)
            made = {file.relative_to(folder): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}
        kept = ROOT / "src"
        there = {
            file.relative_to(kept): file.read_bytes()
            for package in ("v1", "rpc")
            for file in (kept / "outrider" / package).iterdir()
            if file.is_file()
        }
        self.assertEqual(made.keys(), there.keys(), "run tools/python/generate")
        differ = [str(name) for name in made if made[name] != there[name]]
        self.assertEqual(differ, [], "run tools/python/generate")

    def test_the_package_says_that_it_is_typed(self):
        self.assertTrue((Path(outrider.__file__).parent / "py.typed").exists())
