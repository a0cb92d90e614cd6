"""llama-benchy: a load generator, with one request and with eight at once."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What prompts are cut from; unless it is told where to look, llama-benchy fetches a book.
BOOK = (ROOT / "docs" / "methods.md").read_bytes() * 4
PROMPT, OUTPUT = 64, 32


class Library(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(BOOK)

    def log_message(self, *_):
        pass


library = ThreadingHTTPServer(("127.0.0.1", 0), Library)
threading.Thread(target=library.serve_forever, daemon=True).start()
program = Path(sys.executable).with_name("llama-benchy")
with tempfile.TemporaryDirectory() as folder:
    result = Path(folder) / "result.json"
    flags = {
        "--base-url": f"{os.environ['OUTRIDER_HTTP']}/v1",
        "--model": "default",
        "--tokenizer": ROOT / "models" / "default" / "tokenizer",
        "--book-url": f"http://127.0.0.1:{library.server_port}/",
        "--pp": PROMPT,
        "--tg": OUTPUT,
        "--runs": 2,
        "--format": "json",
        "--save-result": result,
    }
    command = [program, *(part for flag in flags.items() for part in flag)]
    command += ["--concurrency", "1", "8", "--exact-tg", "--skip-coherence", "--exit-on-first-fail"]
    home = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder}
    done = subprocess.run([str(part) for part in command], env=home, capture_output=True, text=True)
    if done.returncode != 0 or not result.exists():
        print(done.stdout[-4_000:], done.stderr[-4_000:])
        sys.exit(1)
    loads = json.loads(result.read_text())["benchmarks"]
assert [load["concurrency"] for load in loads] == [1, 8], loads
for load in loads:
    first, rate = load["e2e_ttft"]["mean"], load["tg_throughput"]["mean"]
    assert first > 0 and rate > 0, load
    print(f"{load['concurrency']} at once: first token after {first:.0f} ms, {rate:.0f} tokens/s in all")
