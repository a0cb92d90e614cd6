"""Long answers: of log probabilities, read by nobody or laid out whole."""

from attack import connect, head, post, send, written
from case import Case
from server import LONG_CONTEXT

COMPLETIONS = "/v1/completions"


def prompt(tokens):
    """Ids of usual tokens."""
    return [100 + number % 3000 for number in range(tokens)]


def echoed(connections, **more):
    """A request that returns its prompt with log probabilities: the less of it, the more connections there are, so that
    places are left for others."""
    outputs = 16 if connections <= 4 else 1
    body = {"max_tokens": 1, "echo": True, "logprobs": 20, "n": outputs, **more}
    return written({"prompt": prompt(LONG_CONTEXT - 768), **body})


def read_all(crowd):
    body = echoed(crowd.connections, stream=True)
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, body))


def whole(crowd):
    body = echoed(crowd.connections, prompt=prompt(16_000))
    crowd.once(lambda: post(crowd.http, COMPLETIONS, body))


def whole_streamed(crowd):
    body = echoed(crowd.connections, prompt=prompt(16_000), stream=True)
    crowd.once(lambda: post(crowd.http, COMPLETIONS, body))


def unread(crowd, body):
    """Asks once for each connection, and reads nothing."""
    silent = []
    for _ in range(crowd.connections):
        one = connect(crowd.http, receive_bytes=4096)
        send(one, head(COMPLETIONS, len(body)) + body)
        silent.append(one)
    crowd.wait()


# A stream of usual length, larger than what is held for a client.
STORY = {"prompt": "Once upon a time", "max_tokens": 480, "ignore_eos": True, "stream": True, "logprobs": 20}
STORY_BODY = written({**STORY, "return_token_ids": True})


LAWFUL = {"connections": (1, 4, 64), "memory_only": frozenset([64]), "long_context": True}

CASES = [
    Case(
        "unread-answers",
        "streams of 32,000 tokens with 20 alternatives that nobody reads, against the same read",
        lambda crowd: unread(crowd, echoed(crowd.connections, stream=True)),
        reference=read_all,
        three=True,
        # The peers' connection was full after 20 s.
        seconds=40,
        **LAWFUL,
    ),
    Case(
        "whole-answers",
        "whole answers of 16,000 tokens with 20 alternatives, against the same streamed",
        whole,
        reference=whole_streamed,
        seconds=10,
        **LAWFUL,
    ),
    Case(
        "unread-stories",
        "streams of usual length that nobody reads, against the same read",
        lambda crowd: unread(crowd, STORY_BODY),
        reference=lambda crowd: crowd.each(lambda _: post(crowd.http, COMPLETIONS, STORY_BODY), pause=0),
        connections=(4, 64),
        three=True,
        seconds=15,
    ),
]
