"""What a case is."""

from dataclasses import dataclass
from typing import Callable, FrozenSet, Optional, Tuple


def no_settings(_folder):
    return {}


def no_models(_servers):
    return {}


def no_judgement(_tally, _servers):
    return []


@dataclass(frozen=True)
class Case:
    """Hostile clients, the servers they are let at, and what must come of it."""

    name: str
    # One line: what they do.
    what: str
    # Does it, with a Crowd, until the crowd's time is over.
    act: Callable
    # How many connections they have; each is a line of the table.
    connections: Tuple[int, ...] = (64,)
    # Of those, with which only memory and /livez are judged: lawful work that takes all places there are.
    memory_only: FrozenSet[int] = frozenset()
    seconds: float = 10
    # The same work asked for by clients that do no harm, where it is lawful: what the honest client has beside it is
    # what it is compared with, instead of silence.
    reference: Optional[Callable] = None
    # Drafter, verifier and coordinator as a process each.
    three: bool = False
    # A context of 32,768 tokens.
    long_context: bool = False
    # The soft limit of open files that the processes are started with.
    soft_files: Optional[int] = None
    # Settings by their variables, given a folder for files; and more models by name, with the URL of their peers.
    settings: Callable = no_settings
    more_models: Callable = no_models
    # The token of the honest client.
    token: str = ""
    # What was wrong with the answers that the hostile clients got, given how often each came.
    judge: Callable = no_judgement
    # Seconds in the short form; none: not a part of it.
    short: Optional[float] = None


def only(*expected):
    """A judgement: nothing but these outcomes, the first at least once. What was under way in the end has none."""

    def judge(tally, _servers):
        allowed = {*expected, "without an answer"}
        others = {outcome: count for outcome, count in tally.items() if outcome not in allowed}
        faults = [f"{count} times {outcome}, expected {' or '.join(expected)}" for outcome, count in others.items()]
        return faults + ([] if tally[expected[0]] else [f"never {expected[0]}"])

    return judge
