"""openai-python: completions, chats and responses, streamed and whole."""

import os
from concurrent.futures import ThreadPoolExecutor

from openai import BadRequestError, NotFoundError, OpenAI
from typed import Pet

client = OpenAI(base_url=os.environ["OUTRIDER_HTTP"] + "/v1", max_retries=0)
MODEL = client.models.list().data[0].id
PROMPT = "Once upon a time"
SEEDED = {"model": MODEL, "seed": 7, "temperature": 1}
TURNS = [{"role": "system", "content": "Tell stories."}, {"role": "user", "content": [{"type": "text", "text": PROMPT}]}]


def refused(kind, field, call):
    try:
        call()
    except kind as error:
        assert error.param == field, error
        return error
    raise AssertionError(f"{field} was not refused")


def completions():
    ask = {**SEEDED, "prompt": PROMPT, "max_tokens": 24}
    whole = client.completions.create(**ask, logprobs=3)
    text, usage = whole.choices[0].text, whole.usage
    assert usage.completion_tokens == 24 and usage.total_tokens == usage.prompt_tokens + 24
    logprobs = whole.choices[0].logprobs
    assert len(logprobs.token_logprobs) == 24 and all(value <= 0 for value in logprobs.token_logprobs)
    assert all(len(top) in (3, 4) for top in logprobs.top_logprobs)
    pieces = list(client.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    assert "".join(piece.choices[0].text for piece in pieces if piece.choices) == text
    assert not pieces[-1].choices and pieces[-1].usage == usage
    assert client.completions.create(**{**ask, "seed": 8}).choices[0].text != text

    three = client.completions.create(**ask, n=3)
    texts = [choice.text for choice in three.choices]
    assert texts[0] == text and len(set(texts)) == 3, texts
    streamed = ["", "", ""]
    for piece in client.completions.create(**ask, n=3, stream=True):
        for choice in piece.choices:
            streamed[choice.index] += choice.text
    assert streamed == texts and [choice.index for choice in three.choices] == [0, 1, 2]

    stop = text[8:12]
    stopped = client.completions.create(**ask, stop=[stop])
    assert stopped.choices[0].text == text.split(stop)[0] and stopped.choices[0].finish_reason == "stop"
    # With echo the prompt has log probabilities too, and max_tokens may be 0.
    echoed = client.completions.create(**{**ask, "max_tokens": 0}, echo=True, logprobs=1).choices[0]
    assert echoed.text == PROMPT and echoed.logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in echoed.logprobs.token_logprobs[1:])


def structured():
    for temperature in (0, 1):
        ask = {"model": MODEL, "seed": 7, "temperature": temperature}
        turn = client.chat.completions.parse(**ask, messages=TURNS, max_completion_tokens=200, response_format=Pet)
        pet = turn.choices[0].message.parsed
        assert isinstance(pet, Pet) and turn.choices[0].finish_reason == "stop", turn
        response = client.responses.parse(**{k: v for k, v in ask.items() if k != "seed"}, input=PROMPT, max_output_tokens=200, text_format=Pet)
        assert isinstance(response.output_parsed, Pet), response
        pieces = ""
        with client.chat.completions.stream(**ask, messages=TURNS, max_completion_tokens=200, response_format=Pet) as stream:
            for event in stream:
                pieces += event.delta if event.type == "content.delta" else ""
        assert pieces == turn.choices[0].message.content
    schema = {"name": "x", "schema": {"type": "nonsense"}}
    bad = {"type": "json_schema", "json_schema": schema}
    refused(BadRequestError, "response_format", lambda: client.chat.completions.create(model=MODEL, messages=TURNS, response_format=bad))


def chats():
    ask = {**SEEDED, "messages": TURNS, "max_completion_tokens": 24}
    whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
    choice = whole.choices[0]
    assert choice.message.role == "assistant" and len(choice.logprobs.content) == whole.usage.completion_tokens
    assert b"".join(bytes(token.bytes) for token in choice.logprobs.content).decode() == choice.message.content
    assert all(len(token.top_logprobs) == 2 for token in choice.logprobs.content)
    pieces = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces[:-1]) == choice.message.content
    assert pieces[-1].usage == whole.usage and all(piece.usage is None for piece in pieces[:-1])
    three = client.chat.completions.create(**ask, n=3)
    assert len({other.message.content for other in three.choices}) == 3
    assert three.choices[0].message.content == choice.message.content
    # The helper raises an error if an answer reaches its longest length.
    stop = choice.message.content[8:12]
    with client.chat.completions.stream(**ask, stop=stop) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == choice.message.content.split(stop)[0]


def responses():
    ask = {"model": MODEL, "temperature": 1, "input": PROMPT, "instructions": "Tell stories.", "max_output_tokens": 24}
    ask["extra_body"] = {"seed": 7}
    whole = client.responses.create(**ask)
    assert whole.status == "incomplete" and whole.incomplete_details.reason == "max_output_tokens"
    assert whole.usage.output_tokens == 24 and whole.output_text
    events = list(client.responses.create(**ask, stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert events[0].type == "response.created" and events[-1].response.output_text == whole.output_text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    told = client.responses.create(**ask, top_logprobs=2, include=["message.output_text.logprobs"])
    logprobs = told.output[0].content[0].logprobs
    assert "".join(token.token for token in logprobs) == told.output_text == whole.output_text
    assert all(len(token.top_logprobs) == 2 for token in logprobs)
    # What came is the beginning of what is asked next.
    turns = [{"role": "user", "content": PROMPT}, *whole.output, {"role": "user", "content": "Go on."}]
    assert client.responses.create(**{**ask, "input": turns}).output_text
    refused(BadRequestError, "previous_response_id", lambda: client.responses.create(**ask, previous_response_id="r"))


def speculation():
    ask = {**SEEDED, "prompt": PROMPT, "max_tokens": 24}
    cascade = {"method": "spec-cascade", "rule": "token-v3", "alpha": 0.3, "draft_len": 4}
    told = client.completions.create(**ask, extra_body={"speculation": cascade}).speculation
    assert told["method"] == "spec-cascade" and told["settings"]["alpha"] == "0.3" and not told["lossless"]
    alone = client.completions.create(**ask, extra_body={"speculation": {"enabled": False}})
    drafted = client.completions.create(**ask, extra_body={"speculation": {"draft_len": 4}})
    assert alone.choices[0].text == drafted.choices[0].text
    assert drafted.metrics["speculative_decoding"]["num_draft_tokens"] > 0 and drafted.timings["draft_n"] > 0


def errors():
    ask = {"model": MODEL, "prompt": PROMPT}
    refused(BadRequestError, "temperature", lambda: client.completions.create(**ask, temperature=-1))
    refused(BadRequestError, "unheard_of", lambda: client.completions.create(**ask, extra_body={"unheard_of": 1}))
    tools = [{"type": "function", "function": {"name": "f"}}]
    refused(BadRequestError, "tools", lambda: client.chat.completions.create(model=MODEL, messages=TURNS, tools=tools))
    long = {**ask, "prompt": "word " * 600}
    assert refused(BadRequestError, "prompt", lambda: client.completions.create(**long)).code == "context_length_exceeded"
    other = refused(NotFoundError, "model", lambda: client.completions.create(**{**ask, "model": "other"}))
    assert other.code == "model_not_found" and other.request_id


def many():
    """Streams beside each other, some of which their client leaves."""

    def ask(index):
        pieces = client.completions.create(model=MODEL, prompt=PROMPT, max_tokens=40, seed=index % 5, stream=True)
        if index % 7 == 6:
            next(pieces)
            pieces.close()
            return None
        return "".join(piece.choices[0].text for piece in pieces if piece.choices)

    with ThreadPoolExecutor(50) as pool:
        texts = list(pool.map(ask, range(50)))
    for seed in range(5):
        same = {text for index, text in enumerate(texts) if index % 5 == seed and text is not None}
        assert len(same) == 1, same


for check in (completions, chats, responses, structured, speculation, errors, many):
    check()
