"""One case, measured: the honest client undisturbed, then beside the hostile ones, and what that did to it."""

import json
import math
import subprocess
import sys
import time
from collections import Counter, namedtuple
from pathlib import Path

from attack import attack
from server import MIB, Servers

# What a case must keep to: p99 beside it over p99 without, seconds of /livez, MiB of memory above idle; and how long
# the honest client is measured undisturbed.
Bars = namedtuple("Bars", "ratio livez_s mib floor_s undisturbed_s")
FULL = Bars(ratio=3, livez_s=1, mib=256, floor_s=0, undisturbed_s=6)
# The short form runs where others work too, and with a program that is not optimised: a p99 below the floor is none
# that a test should stumble over, and more requests are in memory where each takes longer.
SHORT = Bars(ratio=10, livez_s=5, mib=384, floor_s=5, undisturbed_s=1)

# The answers that the honest client must have before it is disturbed.
FEWEST = 8
# Memory above idle at which a case is stopped, lest the machine has none left.
STOP_BYTES = 2048 * MIB

# How long it may take until an answer comes that was asked for after the hostile ones left.
SETTLING = 45

# What was seen of the honest client for a while.
Seen = namedtuple("Seen", "answers p99 errors livez")
# A line of the table.
Row = namedtuple("Row", "case connections undisturbed p99 ratio errors livez mib faults hostile")


def p99(took):
    """The 99th percentile by nearest rank, in seconds; of fewer than 100 it is the longest."""
    ordered = sorted(took)
    return ordered[math.ceil(len(ordered) * 0.99) - 1] if ordered else math.inf


class TooMuch(Exception):
    """Memory that a machine may not have."""


class Honest:
    """The honest client, from the beginning of the block to its end."""

    def __init__(self, servers, token=""):
        self.servers, self.token = servers, token
        self.file = Path(servers.folder.name) / "honest.jsonl"

    def __enter__(self):
        program = [sys.executable, str(Path(__file__).with_name("honest.py"))]
        ports = [str(port) for port in self.servers.admins()]
        with open(self.file, "w") as out:
            self.popen = subprocess.Popen([*program, str(self.servers.http), self.token, *ports], stdout=out)
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()

    def lines(self, kind):
        text = self.file.read_text()
        # The last line may be half written.
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [line for line in map(json.loads, whole) if line["kind"] == kind]

    def settle(self, after):
        """Waits until something is answered that was asked for after `after`."""
        limit = time.monotonic() + SETTLING
        while time.monotonic() < limit:
            if any(line["began"] > after for line in self.lines("request")):
                return
            time.sleep(0.05)

    def seen(self, began, ended):
        """What was asked for, or under way, between the two."""
        during = {}
        for kind in ("request", "livez"):
            during[kind] = [it for it in self.lines(kind) if it["ended"] > began and it["began"] < ended]
        took = {kind: [it["ended"] - it["began"] for it in lines] for kind, lines in during.items()}
        errors = [it["error"] for it in during["request"] if it["error"]]
        errors += [f"/livez: {it['error']}" for it in during["livez"] if it["error"]]
        if not took["request"]:
            errors.append(f"no answer for {ended - began:.0f} s")
        return Seen(len(took["request"]), p99(took["request"]), errors, max(took["livez"], default=math.inf))

    def undisturbed(self, least):
        self.settle(time.monotonic())
        began = time.monotonic()
        while True:
            time.sleep(0.2)
            now = time.monotonic()
            seen = self.seen(began, now)
            if now - began > least and (seen.answers >= FEWEST or now - began > SETTLING):
                return seen

    def beside(self, act, connections, seconds, idle):
        """What is seen while `act` is under way, and what came of it. Processes that take far too much memory above
        `idle` are ended at once."""
        began = time.monotonic()

        def goes_on():
            if self.servers.look() - idle < STOP_BYTES:
                return True
            self.servers.kill()
            return False

        tally = attack(act, self.servers, connections, seconds, goes_on)
        if self.servers.killed:
            raise TooMuch(f"stopped {time.monotonic() - began:.1f} s after it began, {STOP_BYTES // MIB} MiB above idle")
        ended = time.monotonic()
        self.settle(ended)
        return self.seen(began, ended), tally


def measured(case, binary, bars, seconds=None):
    """The rows of a case, as they come: one for each number of connections."""
    with Servers(binary, case) as servers, Honest(servers, case.token) as honest:
        undisturbed = honest.undisturbed(bars.undisturbed_s)
        idle, seconds = servers.resting(), seconds or case.seconds
        for connections in case.connections:
            compared = undisturbed
            is_memory_only = connections in case.memory_only
            try:
                if case.reference and not is_memory_only:
                    compared, _ = honest.beside(case.reference, connections, seconds, idle)
                seen, tally = honest.beside(case.act, connections, seconds, idle)
            except TooMuch as fault:
                # Nothing more can be seen of it.
                none = Seen(0, math.nan, [], math.nan)
                yield row_of(case, connections, compared, none, STOP_BYTES / MIB, [str(fault)], Counter())
                return
            servers.check_alive()
            mib = max(0, servers.peak() - idle) / MIB
            faults = [] if is_memory_only else latency(seen, compared, bars)
            faults += memory(seen, mib, bars) + case.judge(tally, servers)
            yield row_of(case, connections, compared, seen, mib, faults, tally)


def row_of(case, connections, compared, seen, mib, faults, tally):
    ratio = seen.p99 / compared.p99
    return Row(case, connections, compared.p99, seen.p99, ratio, len(seen.errors), seen.livez, mib, faults, tally)


def latency(seen, compared, bars):
    """What the honest client should not have seen."""
    faults = []
    if compared.errors:
        faults.append(f"an error without it already: {compared.errors[0]}")
    if seen.errors:
        faults.append(f"{len(seen.errors)} errors of the honest client, the first: {seen.errors[0]}")
    if seen.p99 > max(bars.ratio * compared.p99, bars.floor_s):
        faults.append(f"p99 {seen.p99 * 1e3:.0f} ms, {compared.p99 * 1e3:.0f} ms without")
    return faults


def memory(seen, mib, bars):
    """What its operator should not have seen."""
    faults = []
    if seen.livez > bars.livez_s:
        faults.append(f"/livez took {seen.livez:.1f} s")
    if mib > bars.mib:
        faults.append(f"{mib:.0f} MiB above idle")
    return faults
