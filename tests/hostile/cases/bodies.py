"""Bodies that cost much more than their bytes, or that never come."""

import urllib.error
import urllib.request

from attack import connect, head, post, send, written
from case import Case, only

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
# The most that a body may have, and a little room for what stands around a list.
MOST = 4 << 20
ROOM = 64
# A body may also be late on a machine that others keep busy.
REFUSED = ("400", "429", "503", "408")
STORY = {"prompt": "Once upon a time", "ignore_eos": True, "seed": 1}


def filled(before, item, after=b"]}"):
    """A list of as many of `item` as a body has room for."""
    return before + b",".join([item] * ((MOST - ROOM) // (len(item) + 1))) + after


def long_name(crowd):
    body = b'{"prompt":"a","' + b"x" * (MOST - ROOM) + b'":1}'
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, body))


def json_bombs(crowd):
    bodies = [
        (CHAT, filled(b'{"messages":[', b'{"":0}')),
        (COMPLETIONS, filled(b'{"prompt":"a","unknown":[', b'{"":0}')),
        (COMPLETIONS, filled(b'{"prompt":[', b"[]")),
        (COMPLETIONS, filled(b'{"prompt":[', b"1")),
        (COMPLETIONS, filled(b'{"stop":[', b'""')),
        (CHAT, filled(b'{"messages":[{"role":"user","content":[', b'{"type":"text","text":""}', b"]}]}")),
        ("/v1/responses", filled(b'{"input":[', b'{"":0}')),
        ("/detokenize", filled(b'{"tokens":[', b"1")),
    ]
    crowd.each(lambda number: post(crowd.http, *bodies[number % len(bodies)]))


def nested(crowd):
    body = b'{"prompt":' + b"[" * (MOST - ROOM)
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, body))


def announced(crowd):
    """Connections that announce a body and send none; one that is closed is opened again."""
    heads = [head(COMPLETIONS, MOST), head(COMPLETIONS, None)]

    def announce(number):
        with connect(crowd.http, patience=max(0.1, crowd.left())) as one:
            send(one, heads[number % 2])
            try:
                return one.recv(64).split(b" ")[1].decode()
            except (OSError, IndexError):
                return "held or closed"

    crowd.each(announce)


def half_sent(crowd):
    """Three quarters of a body, and then nothing."""
    sent = head(COMPLETIONS, MOST) + b'{"prompt":"' + b"a" * (MOST * 3 // 4)

    def stop_short(_):
        with connect(crowd.http, patience=max(0.1, crowd.left())) as one:
            send(one, sent)
            try:
                return one.recv(64).split(b" ")[1].decode()
            except (OSError, IndexError):
                return "held or closed"

    crowd.each(stop_short)


def in_chunks(crowd):
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, {**STORY, "max_tokens": 400}, in_chunks=True), pause=0)


def with_length(crowd):
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, {**STORY, "max_tokens": 400}), pause=0)


def too_long(crowd):
    """What a usual library makes of a body that is too long: it reads the answer once it has sent all."""
    body = written({"prompt": "a" * (MOST + MOST // 2)})

    def ask(_):
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{crowd.http}{COMPLETIONS}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code
        except OSError as error:
            return f"{type(getattr(error, 'reason', error)).__name__}"

    crowd.each(ask)


def endless(crowd):
    """A body in chunks that never ends."""
    piece = b"10000\r\n" + b" " * (1 << 16) + b"\r\n"
    # Far more than the limit, and what the kernel holds on the way.
    pieces = 8 * MOST // len(piece)

    def go_on(_):
        with connect(crowd.http) as one:
            send(one, head(COMPLETIONS, None))
            try:
                for _ in range(pieces):
                    one.sendall(piece)
            except OSError:
                return "stopped"
        return "taken without an end"

    crowd.each(go_on)


CASES = [
    Case("long-name", "a field whose name has 4 MiB", long_name, short=3, judge=only(*REFUSED)),
    Case("json-bombs", "4 MiB of JSON that become much more", json_bombs, short=3),
    Case("nested-json", "4 MiB of open brackets", nested, judge=only(*REFUSED)),
    Case("announced-bodies", "bodies that are announced and do not come", announced, short=3),
    Case("half-bodies", "bodies of which a quarter does not come", half_sent),
    Case("endless-body", "a body in chunks without an end", endless, judge=only("stopped")),
    Case(
        "chunked-bodies",
        "whole answers to bodies of unknown length, against the same with their length",
        in_chunks,
        reference=with_length,
        judge=only("200"),
    ),
    Case("too-long-bodies", "bodies of 6 MiB, sent by a usual library", too_long, short=2, judge=only("413")),
]
