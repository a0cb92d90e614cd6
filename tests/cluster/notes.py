"""Runs the commands that the chart's notes show, as somebody does who has just installed it."""

import json
import os
import re
import subprocess

from chart import until
from rows import Failed

COMMAND = re.compile(r"^  ((?:kubectl|outrider|curl) .*)$", re.MULTILINE)


def run(trial):
    """Each command of the notes must succeed, and those of clients must answer."""
    folder = trial.scratch / "notes"
    folder.mkdir(exist_ok=True)
    if not (folder / "outrider").exists():
        (folder / "outrider").symlink_to(trial.binary)
    commands = COMMAND.findall(trial.chart.helm("get", "notes", trial.chart.release))
    clients = [one for one in commands if one.startswith(("outrider", "curl"))]
    if len(clients) != 2:
        raise Failed(f"the notes show {len(clients)} clients, instead of one of each port: {commands}")
    forward = None
    try:
        for one in commands:
            if "port-forward" in one:
                forward = forwarded(one, folder)
            else:
                said = output(one, folder)
                if one in clients and not answer(one, said):
                    raise Failed(f"nothing is answered to `{one}`: {said}")
    finally:
        if forward:
            forward.terminate()
            forward.wait()


def environment(folder):
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def output(one, folder):
    how = {"cwd": folder, "env": environment(folder), "capture_output": True, "text": True}
    done = subprocess.run(["sh", "-c", one], timeout=120, check=False, **how)
    if done.returncode != 0:
        raise Failed(f"`{one}`: {(done.stderr + done.stdout).strip()[-500:]}")
    return done.stdout


def forwarded(one, folder):
    """The ports are open when as many lines say so."""
    log = folder / "port-forward"
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(["sh", "-c", f"exec {one}"], stdout=file, stderr=file, env=environment(folder))
    ports = len(re.findall(r" \d+:\d+", one))
    opened = lambda: log.read_text().count("Forwarding from 127.0.0.1") == ports  # noqa: E731
    until(20, f"`{one}` forwards {ports} ports", opened)
    return process


def answer(one, said):
    return json.loads(said)["choices"][0]["text"] if one.startswith("curl") else said.strip()
