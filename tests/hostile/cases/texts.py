"""Texts that cost much to turn into tokens."""

import json

from attack import connect, head, post, send, written
from case import Case, only

# As long as a body may be, with words that no cache knows.
WORDS = " ".join(f"w{number}ord" for number in range(330_000))[:3_300_000]


def long_prompts(crowd):
    body = written({"prompt": WORDS, "max_tokens": 1})
    crowd.each(lambda _: post(crowd.http, "/v1/completions", body))


def tokenize(crowd):
    body = written({"prompt": WORDS})
    crowd.each(lambda _: post(crowd.http, "/tokenize", body))


def tokenize_and_leave(crowd):
    body = written({"prompt": WORDS})

    def leave(_):
        try:
            with connect(crowd.http) as one:
                send(one, head("/tokenize", len(body)) + body)
        except OSError as error:
            return type(error).__name__
        return "left"

    crowd.each(leave)


def one_long_word(crowd):
    """Without a space a tokenizer has one word of it all."""
    body = written({"prompt": "ab" * 1_600_000})
    crowd.each(lambda _: post(crowd.http, "/tokenize", body))


def long_turns(crowd):
    body = written({"messages": [{"role": "user", "content": "once " * 200_000}], "max_tokens": 1})
    crowd.each(lambda _: post(crowd.http, "/v1/chat/completions", body))


def repeating_template(folder):
    """The model of a long context, with a template that says each turn 200 times."""
    file = folder / "long" / "tokenizer_config.json"
    template = "{% for m in messages %}{% for i in range(200) %}{{ m['content'] }}{% endfor %}{% endfor %}"
    file.write_text(json.dumps({**json.loads(file.read_text()), "chat_template": template}))
    return {}


CASES = [
    Case("long-prompts", "prompts of 3.3 MB", long_prompts, long_context=True, judge=only("400", "429", "503", "408")),
    Case("tokenize", "/tokenize of 3.3 MB", tokenize, short=3),
    Case("tokenize-and-leave", "/tokenize of 3.3 MB, whose clients do not wait", tokenize_and_leave),
    Case("one-long-word", "/tokenize of a word of 3.2 MB", one_long_word),
    Case(
        "rendered-template",
        "conversations of 1 MB that a template makes 200 MB of",
        long_turns,
        long_context=True,
        settings=repeating_template,
        judge=only("400", "429", "503", "408"),
    ),
]
