"""schemathesis: requests made of /openapi.json, five minutes of them, and answers held to it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SECONDS = os.environ.get("OUTRIDER_OPENAPI_SECONDS", "300")
program = Path(sys.executable).with_name("schemathesis")
command = [program, "run", f"{os.environ['OUTRIDER_HTTP']}/openapi.json", "--checks", CHECKS, "--max-time", SECONDS]
with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([*command, "--no-color", "--generation-database", "none"], cwd=folder, capture_output=True, text=True)
if done.returncode != 0:
    print(done.stdout[-20_000:], done.stderr[-4_000:])
    sys.exit(1)
print(next(line.strip() for line in done.stdout.splitlines() if " generated, " in line))
