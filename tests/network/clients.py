"""Clients of a coordinator that ask for whole answers over HTTP.

    clients.py at-once CLIENTS SECONDS     as many as CLIENTS keep under way
    clients.py RATE SECONDS                RATE new ones a second, at random

Each prints what its request came to as a line of JSON. It runs where the coordinator does.
"""

import http.client
import json
import random
import sys
import threading
import time

TOKENS = 100
SEEDS = 8
# Longest that an answer may take.
PATIENCE = 60
# The target alone, the default, and a drafter that drafts ahead.
METHODS = [{"speculation": {"enabled": False}}, {}, {"speculation": {"schedule": "stream", "drafting": "model"}}]


def ask(seed, method):
    """What was wrong with an answer, if anything, and its text."""
    body = {"prompt": "Once upon a time", "max_tokens": TOKENS, "ignore_eos": True, "seed": seed}
    connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=PATIENCE)
    try:
        connection.request(
            "POST", "/v1/completions", json.dumps(body | method), {"content-type": "application/json"}
        )
        answer = connection.getresponse()
        read = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}", None
    finally:
        connection.close()
    if answer.status != 200:
        return f"HTTP {answer.status}: {read[:300].decode(errors='replace')}", None
    return None, json.loads(read)["choices"][0]["text"]


def tell(turn, lock=threading.Lock()):
    seed = turn % SEEDS
    began = time.monotonic()
    error, text = ask(seed, METHODS[turn // SEEDS % len(METHODS)])
    line = {"seed": seed, "seconds": time.monotonic() - began, "error": error, "text": text}
    with lock:
        print(json.dumps(line), flush=True)


def at_once(clients, ends):
    def run(number):
        turn = number
        while time.monotonic() < ends:
            tell(turn)
            turn += clients

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def arriving(rate, ends):
    dice, turn, threads = random.Random(1), 0, []
    while time.monotonic() < ends:
        time.sleep(dice.expovariate(rate))
        threads = [thread for thread in threads if thread.is_alive()]
        threads.append(threading.Thread(target=tell, args=(turn,)))
        threads[-1].start()
        turn += 1
    for thread in threads:
        thread.join()


if sys.argv[1] == "at-once":
    at_once(int(sys.argv[2]), time.monotonic() + float(sys.argv[3]))
else:
    arriving(float(sys.argv[1]), time.monotonic() + float(sys.argv[2]))
