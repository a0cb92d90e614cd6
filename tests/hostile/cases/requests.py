"""Requests for many outputs, to peers that do not answer, with tokens that are guessed."""

import time

from attack import post
from case import Case, only
from silent_peer import SilentPeer

COMPLETIONS = "/v1/completions"
STORY = {"prompt": "Once upon a time", "max_tokens": 64, "ignore_eos": True, "seed": 1}
TOKEN = "an-honest-client-0123456789"
# Of 64 clients that could try 1,280.
GUESSING_SECONDS, MOST_GUESSES = 10, 200


def few_places(_folder):
    return {"OUTRIDER__COORDINATOR__MAX_REQUESTS": "16"}


def too_many_outputs(crowd):
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, {**STORY, "n": 32}))


def all_places(crowd):
    """One of these fits at a time, and one must always go on, whoever else asks."""
    crowd.each(lambda _: post(crowd.http, COMPLETIONS, {**STORY, "n": 16}))


def away(servers):
    """A model whose peer answers pings and nothing else."""
    servers.silent_peer = SilentPeer()
    return {"away": servers.silent_peer.url}


def ask_the_silent(crowd):
    def ask(_):
        began = time.monotonic()
        status = post(crowd.http, COMPLETIONS, {**STORY, "model": "away"})
        return status if time.monotonic() - began < 8 else f"{status} too late"

    crowd.each(ask)


def short_deadline(_folder):
    return {"OUTRIDER__COORDINATOR__REQUEST_TIMEOUT_MS": "5000"}


def with_tokens(folder):
    file = folder / "clients"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return {"OUTRIDER__AUTH__CLIENT_TOKENS_FILE": str(file)}


def guess(crowd):
    """Guesses, each over a connection of its own, as fast as they are answered."""

    def try_one(number):
        more = f"authorization: Bearer a-guess-{number:08}-{time.monotonic_ns():020}\r\n"
        return post(crowd.http, COMPLETIONS, STORY, more)

    crowd.each(try_one, pause=0.05)


def guesses_are_seen(tally, servers):
    faults = only("401", "429", "403")(tally, servers)
    guesses = tally["401"] / GUESSING_SECONDS
    if guesses > MOST_GUESSES:
        faults.append(f"{guesses:.0f} guesses a second, expected at most {MOST_GUESSES}")
    if not any("127.0.0.1" in line and "token" in line for line in servers.logs().splitlines()):
        faults.append("no line of the log has the address of who guesses tokens")
    return faults


CASES = [
    Case(
        "outputs-beyond-all-places",
        "n 32 where 16 requests are taken",
        too_many_outputs,
        connections=(20,),
        settings=few_places,
        judge=only("400"),
        short=3,
    ),
    Case(
        "outputs-all-or-none",
        "n 16 where 16 requests are taken: all or none",
        all_places,
        connections=(20,),
        # They take all places that there are, and the honest client is told to come again like them.
        memory_only=frozenset([20]),
        settings=few_places,
        judge=only("200", "429"),
    ),
    Case(
        "silent-peer",
        "requests of a model whose peer answers nothing, with 5 s for each",
        ask_the_silent,
        three=True,
        more_models=away,
        settings=short_deadline,
        seconds=15,
        judge=only("504", "503", "429"),
    ),
    Case(
        "guessed-tokens",
        "tokens that are guessed",
        guess,
        settings=with_tokens,
        token=TOKEN,
        seconds=GUESSING_SECONDS,
        judge=guesses_are_seen,
    ),
]
