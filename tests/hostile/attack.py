"""What hostile clients are made of: sockets, requests as bytes, and many of them at a time."""

import json
import multiprocessing
import os
import socket
import threading
import time
from collections import Counter

# Longest that a hostile client waits for an answer; and between two of its requests, so that it is what it asks for
# that is measured, not how fast this machine copies bytes.
PATIENCE = 120
PAUSE = 1.0
# Behind servers and honest clients, but before what else a machine may do at its lowest priority.
NICE = 5
HEAD = "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n{more}\r\n"


def connect(port, receive_bytes=None, patience=PATIENCE):
    """A connection; `receive_bytes` keeps the kernel from reading ahead."""
    one = socket.socket()
    if receive_bytes:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    one.settimeout(patience)
    try:
        one.connect(("127.0.0.1", port))
    except OSError:
        one.close()
        raise
    return one


def head(path, length, more=""):
    """The head of a request whose body has `length` bytes; None is a body in chunks."""
    announced = "transfer-encoding: chunked\r\n" if length is None else f"content-length: {length}\r\n"
    return HEAD.format(path=path, more=announced + more).encode()


def chunked(body):
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def written(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def send(one, data):
    """Sends as much as is taken: a server may answer, and close, before it has read all."""
    try:
        one.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def read_status(one):
    """Reads an answer to its end; its status, or what went wrong."""
    first, status = b"", None
    try:
        while data := one.recv(1 << 20):
            if status is None:
                first += data
                if b"\r\n" in first:
                    status = first.split(b" ", 2)[1].decode()
    except OSError as error:
        return status or type(error).__name__
    return status or "closed"


def post(port, path, body, more="", in_chunks=False):
    """One request, whose answer is read and dropped; its status, or what went wrong."""
    body = written(body)
    try:
        with connect(port) as one:
            if in_chunks:
                send(one, head(path, None, more) + chunked(body))
            else:
                send(one, head(path, len(body), more) + body)
            return read_status(one)
    except OSError as error:
        return type(error).__name__


class Crowd:
    """Clients that do something again and again until their time is over, and what came of it."""

    def __init__(self, servers, connections, seconds):
        self.binary, self.http, self.grpc, self.admins = servers.binary, servers.http, servers.grpc, servers.admins()
        self.connections, self.seconds, self.ends = connections, seconds, None
        self.tally, self.lock = Counter(), threading.Lock()

    def left(self):
        """Seconds that are left; they begin when they are first asked for, so that bodies can be made before."""
        if self.ends is None:
            self.ends = time.monotonic() + self.seconds
        return self.ends - time.monotonic()

    def count(self, outcome, by=1):
        with self.lock:
            self.tally[str(outcome)] += by

    def wait(self):
        time.sleep(max(0, self.left()))

    def once(self, work):
        """Has each client call `work` once, however long that takes, within bounds."""
        threads = [threading.Thread(target=lambda: self.count(work()), daemon=True) for _ in range(self.connections)]
        for thread in threads:
            thread.start()
        self.join(threads, PATIENCE / 2)
        self.wait()

    def join(self, threads, seconds):
        """Waits for all of them together. What hangs is left alone: it ends with this process."""
        limit = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0, limit - time.monotonic()))
        hang = sum(thread.is_alive() for thread in threads)
        if hang:
            self.count("without an answer", hang)

    def each(self, work, pause=PAUSE):
        """Has each client call `work`, with its number, until the time is over; what it returns is counted."""

        def repeat(number):
            while self.left() > 0:
                self.count(work(number))
                time.sleep(max(0, min(pause, self.left())))

        self.left()
        threads = [threading.Thread(target=repeat, args=(number,), daemon=True) for number in range(self.connections)]
        for thread in threads:
            thread.start()
        self.join(threads, max(0, self.left()) + 1)


def attack(act, servers, connections, seconds, goes_on):
    """Runs `act` with a crowd, in a process of its own behind the others: in life it is another machine. Asks `goes_on`
    ten times a second whether it may. Returns how often what came of it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run():
        os.nice(NICE)
        crowd = Crowd(servers, connections, seconds)
        act(crowd)
        theirs.send(crowd.tally)
        # Threads that hang must not hold it up.
        theirs.close()
        os._exit(0)

    process = context.Process(target=run, daemon=True)
    process.start()
    theirs.close()
    limit = time.monotonic() + seconds + PATIENCE
    try:
        while not ours.poll(0.1):
            if not goes_on():
                return Counter({"stopped": 1})
            if time.monotonic() > limit:
                return Counter({"never ended": 1})
        return ours.recv()
    except EOFError:
        return Counter({"failed": 1})
    finally:
        process.kill()
        process.join()
