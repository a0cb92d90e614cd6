"""Connections that say nothing, or not enough, or are idle."""

import resource
import select
import time

from attack import connect
from case import Case

# More than are taken, and more than the files that a process usually may open.
MANY = 1100
USUAL_FILES = 1024
# Within this time what did not begin a request must be gone; a busy machine may take longer than the 10 s it has.
BEGINNING = 14
BEGINNINGS = [b"", b"PRI * HT", b"GET /health HTTP/1.1\r\n", b"POST /v1/comp"]
PROBE = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"


def opened(crowd, port, said):
    """Connections that say something each, as many as the crowd has; what is refused is no matter."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    connections = []
    for number in range(crowd.connections):
        if crowd.left() <= 0:
            break
        try:
            one = connect(port, patience=2)
            one.sendall(said(number))
            connections.append(one)
        except OSError:
            crowd.count("refused")
    return connections


def still_open(connections):
    poll = select.poll()
    for one in connections:
        poll.register(one, select.POLLIN | select.POLLHUP | select.POLLERR)
    return len(connections) - len(poll.poll(0))


def begin_nothing(crowd):
    began = time.monotonic()
    connections = opened(crowd, crowd.http, lambda number: BEGINNINGS[number % len(BEGINNINGS)])
    crowd.wait()
    if time.monotonic() - began > BEGINNING:
        crowd.count("still open", still_open(connections))


def are_closed(tally, _servers):
    return [f"{tally['still open']} connections that began no request are still open"] if tally["still open"] else []


def stay_idle(crowd):
    connections = opened(crowd, crowd.http, lambda _: PROBE)
    crowd.wait()
    crowd.count("open at the end", len(connections))


def silent_at_admin(crowd):
    connections = opened(crowd, crowd.admins[0], lambda number: BEGINNINGS[number % len(BEGINNINGS)])
    crowd.wait()
    crowd.count("open at the end", still_open(connections))


def silent_at_grpc(crowd):
    connections = opened(crowd, crowd.grpc, lambda number: BEGINNINGS[number % 2])
    crowd.wait()
    crowd.count("still open", still_open(connections))


CASES = [
    Case(
        "silent-connections",
        "connections that begin no request",
        begin_nothing,
        connections=(64, MANY),
        seconds=BEGINNING + 2,
        judge=are_closed,
        short=3,
    ),
    Case(
        "idle-connections",
        "connections that stay open, more than files may be",
        stay_idle,
        connections=(MANY,),
        soft_files=USUAL_FILES,
    ),
    Case(
        "silent-at-admin",
        "connections to the admin port, more than files may be",
        silent_at_admin,
        connections=(MANY,),
        soft_files=USUAL_FILES,
    ),
    Case(
        "silent-at-grpc",
        "connections to the gRPC port that begin nothing",
        silent_at_grpc,
        connections=(64,),
        seconds=BEGINNING + 2,
        judge=are_closed,
    ),
]
