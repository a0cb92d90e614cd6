"""Clients that ask and are gone."""

import socket
import struct

from attack import connect, head, send, written
from case import Case
from silent_peer import PREFACE, SETTINGS, frame

HEADERS, RESET = 1, 3
END_HEADERS = 4
CANCEL = struct.pack(">I", 8)
# Resets of one connection, before it is opened again.
RESETS = 1000
BODY = written({"prompt": "Once upon a time", "max_tokens": 400, "ignore_eos": True, "stream": True})


def literal(name, value):
    """A header of HPACK that is neither compressed nor remembered."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


ASKED = b"".join(
    literal(name, value)
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":authority", b"localhost"),
        (b":path", b"/v1/completions"),
        (b"content-type", b"application/json"),
    )
)


def reset_http1(crowd):
    """Requests whose connection is reset as soon as they are sent."""

    def ask(_):
        try:
            one = connect(crowd.http)
            send(one, head("/v1/completions", len(BODY)) + BODY)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
        except OSError as error:
            return type(error).__name__
        return "reset"

    crowd.each(ask, pause=0.5)


def reset_http2(crowd, port, asked):
    pairs = b"".join(
        frame(HEADERS, END_HEADERS, stream, asked) + frame(RESET, 0, stream, CANCEL)
        for stream in range(1, 2 * RESETS, 2)
    )

    def ask(_):
        try:
            with connect(port, patience=5) as one:
                one.sendall(PREFACE + frame(SETTINGS) + pairs)
                one.recv(1 << 16)
        except OSError as error:
            return type(error).__name__
        return "reset"

    crowd.each(ask, pause=0.2)


CASES = [
    Case("resets-http1", "requests over HTTP/1.1 that are reset once sent", reset_http1, connections=(16,)),
    Case(
        "resets-http2",
        "1,000 requests over HTTP/2 at a time, each reset once sent",
        lambda crowd: reset_http2(crowd, crowd.http, ASKED),
        connections=(16,),
        short=3,
    ),
]
