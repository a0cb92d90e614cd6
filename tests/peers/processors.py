"""What programs beside the peers use of the processors meanwhile: their figures are worth nothing then."""

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Others:
    """Counts from when it is made. What this program starts must stay in its group of processes."""

    def __init__(self):
        self.began, self.used = time.monotonic(), self.total()

    def processors(self):
        """How many of the processors that this process may use others used, on average."""
        return max(0.0, (self.total() - self.used) / TICKS / (time.monotonic() - self.began))

    def total(self):
        """Ticks of work of the processors that were not for this program."""
        return sum(map(worked, processors())) - sum(map(used, ours()))


def processors():
    """The lines of the processors that this process may use."""
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = Path("/proc/stat").read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.split(" ")[0] in names]


def worked(line):
    """User, nice and system time, and that of interrupts; not what is idle or waits for disks."""
    user, nice, system, _, _, hard, soft = (int(part) for part in line[1:8])
    return user + nice + system + hard + soft


def ours():
    """What the kernel tells of each process of this one's group, from its third field on."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
        except OSError:
            # It has ended.
            continue
        if int(fields[2]) == os.getpgrp():
            yield fields


def used(fields):
    """Time of a process, and of its children that have ended."""
    return sum(int(part) for part in fields[11:15])
