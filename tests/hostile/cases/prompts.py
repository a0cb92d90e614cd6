"""What is typed without an end."""

import subprocess
import time
from pathlib import Path

from case import Case
from server import MIB

# A program that reads without a bound is stopped there.
STOP_BYTES, STOP_SECONDS = 1 << 30, 20
MOST_BYTES = 256 * MIB


def peak(process):
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def endless_prompt(crowd):
    """`generate --prompt-file -` behind a pipe that never ends."""
    command = [crowd.binary, "generate", "--coordinator", f"http://127.0.0.1:{crowd.grpc}", "--prompt-file", "-"]
    yes = subprocess.Popen(["yes", "once upon a time"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    asked = subprocess.Popen(command, stdin=yes.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    yes.stdout.close()
    began, most = time.monotonic(), 0
    while asked.poll() is None and most < STOP_BYTES and time.monotonic() - began < STOP_SECONDS:
        most = max(most, peak(asked))
        time.sleep(0.005)
    crowd.count("ended by itself" if asked.poll() is not None else "had to be stopped")
    for process in (asked, yes):
        process.kill()
        process.wait()
    if most > MOST_BYTES:
        crowd.count(f"held {most / MIB:.0f} MiB")
    # What is left of the time is quiet: the honest client is measured for long enough.
    crowd.wait()


def ends(tally, _servers):
    return [outcome for outcome in tally if outcome != "ended by itself"]


CASES = [
    Case(
        "endless-prompt",
        "`outrider generate` behind a pipe without an end",
        endless_prompt,
        connections=(1,),
        judge=ends,
        short=3,
    )
]
