"""What a case works with: the chart, what the program answers alone, and events under load."""

import time
from collections import namedtuple
from contextlib import contextmanager

from load import Load
from rows import Failed

# How long the load runs before the first event, to know what is usual; and after an event, to see its consequences.
BEFORE, AFTER = 10, 8


class Trial(namedtuple("Trial", "chart expected rows binary root scratch")):
    """What every case is given. `expected` is what the program alone answers."""

    @contextmanager
    def load(self, **how):
        """Clients that ask until the block ends; `event` is what happens to them."""
        with Load(self.expected, self.chart.address(), **how) as load:
            began = time.monotonic()
            time.sleep(BEFORE)
            ended = load.settle()
            usual = load.between(began, ended)
            refuse("nothing happened yet", usual, may_resume=False)
            yield Disturbance(self, load, max(it.ended - it.began for it in usual))

    def ask(self, seed=7, flags=(), url=None):
        """One answer, which must be that of the program alone."""
        load = Load(self.expected, self.chart.address(), 0, 0, flags=flags)
        load.url = url or load.url
        how, _, said = load._generate(seed)
        if how != "ok":
            raise Failed(said)


class Disturbance:
    """Events under a load, whose slowest answer was `usual` before the first."""

    def __init__(self, trial, load, usual):
        self.trial, self.usual = trial, usual
        self.under = load

    def event(self, name, action, may_resume=False, beyond=None, after=AFTER):
        """Does something, waits for its consequences, and adds a row. No request may fail, none may have other tokens
        than alone, none may be resumed unless it `may_resume`, and none may take `beyond` seconds more than usual."""
        began = time.monotonic()
        action()
        time.sleep(after)
        ended = self.under.settle()
        answers = self.under.between(began, ended)
        self.trial.rows.add(name, answers, self.usual)
        refuse(name, answers, may_resume)
        slowest = max(answer.ended - answer.began for answer in answers)
        if beyond is not None and slowest > self.usual + beyond:
            raise Failed(f"{name}: {slowest:.1f} s, {beyond} s beyond {self.usual:.1f} s were allowed")


def refuse(name, answers, may_resume):
    bad = [answer for answer in answers if answer.how != "ok"]
    if bad:
        first = min(answer.began for answer in answers)
        shown = [f"{it.how} from {it.began - first:.1f} to {it.ended - first:.1f} s: {it.said}" for it in bad[:5]]
        raise Failed(f"{name}: {len(bad)} of {len(answers)} requests:\n      " + "\n      ".join(shown))
    if not answers:
        raise Failed(f"{name}: nothing was answered")
    resumed = [answer for answer in answers if answer.resumes]
    if resumed and not may_resume:
        raise Failed(f"{name}: {len(resumed)} of {len(answers)} requests were lost and had to be asked again")
