"""openai-python: completions, chats and responses, streamed and whole, with tools and without."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

from openai import BadRequestError, NotFoundError, OpenAI, pydantic_function_tool
from typed import Pet, Weather

client = OpenAI(base_url=os.environ["OUTRIDER_HTTP"] + "/v1", max_retries=0)
MODEL = client.models.list().data[0].id
PROMPT = "Once upon a time"
SEEDED = {"model": MODEL, "seed": 7, "temperature": 1}
TURNS = [{"role": "system", "content": "Tell stories."}, {"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
NAMED = {"type": "function", "function": {"name": "Weather"}}
TOOLS = [pydantic_function_tool(Weather), {"type": "function", "function": {"name": "now"}}]


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


def calls_of(message):
    """The calls of a message: their names and arguments, which are objects."""
    calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or []]
    assert all(isinstance(json.loads(arguments), dict) for _, arguments in calls), calls
    return calls


def tools():
    for temperature in (0, 1):
        ask = {"model": MODEL, "seed": 7, "temperature": temperature, "messages": TURNS, "max_completion_tokens": 120}
        ask["tools"] = TOOLS
        for choice in ("required", NAMED, "auto", "none"):
            whole = client.chat.completions.create(**ask, tool_choice=choice, parallel_tool_calls=False).choices[0]
            calls = calls_of(whole.message)
            if choice in ("required", NAMED):
                assert len(calls) == 1 and whole.finish_reason == "tool_calls" and whole.message.content is None, whole
            if choice == NAMED:
                assert calls[0][0] == "Weather" and Weather.model_validate_json(calls[0][1]), calls
            if choice == "none":
                assert not calls and whole.message.content, whole
            text, streamed, reason = "", [], None
            for piece in client.chat.completions.create(**ask, tool_choice=choice, parallel_tool_calls=False, stream=True):
                text += piece.choices[0].delta.content or ""
                for call in piece.choices[0].delta.tool_calls or []:
                    if call.id:
                        assert call.index == len(streamed) and call.type == "function", call
                        streamed.append((call.function.name, ""))
                    name, arguments = streamed[call.index]
                    streamed[call.index] = (name, arguments + call.function.arguments)
                reason = piece.choices[0].finish_reason or reason
            assert (text, streamed, reason) == (whole.message.content or "", calls, whole.finish_reason), (streamed, whole)

    # The helpers read arguments into types.
    ask = {**ask, "tools": TOOLS[:1], "tool_choice": "required"}
    parsed = client.chat.completions.parse(**ask, parallel_tool_calls=False).choices[0].message.tool_calls[0].function
    assert isinstance(parsed.parsed_arguments, Weather), parsed
    with client.chat.completions.stream(**ask, parallel_tool_calls=False) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
    assert [event.parsed_arguments for event in done] == [parsed.parsed_arguments], done

    # Several calls have ids of their own.
    ask = {**ask, "tools": TOOLS, "parallel_tool_calls": True}
    several = [client.chat.completions.create(**{**ask, "seed": seed}).choices[0] for seed in range(8)]
    assert all(calls_of(choice.message) for choice in several if choice.finish_reason == "tool_calls"), several
    ids = [call.id for choice in several for call in choice.message.tool_calls]
    assert len(set(ids)) == len(ids), ids
    assert any(len(choice.message.tool_calls) > 1 for choice in several), several


def tool_results():
    ask = {"model": MODEL, "temperature": 0, "max_completion_tokens": 8, "tools": TOOLS[:1], "tool_choice": "none"}
    call = {"id": "c", "type": "function", "function": {"name": "Weather", "arguments": '{"city": "Rome", "unit": "C"}'}}
    absent = {"role": "assistant", "tool_calls": [call]}
    answers = set()
    for turn in (absent, {**absent, "content": None}, {**absent, "content": ""}, {**absent, "content": []}):
        for content in ("21 C", [{"type": "text", "text": "21 C"}]):
            turns = [*TURNS, turn, {"role": "tool", "tool_call_id": "c", "content": content}]
            answer = client.chat.completions.create(**ask, messages=turns)
            answers.add((answer.choices[0].message.content, answer.usage.prompt_tokens))
    # All of them say the same.
    assert len(answers) == 1 and answers.pop()[0], answers

    # What came goes back as it came, with its result.
    called = client.chat.completions.create(**{**ask, "max_completion_tokens": 120, "tool_choice": NAMED}, messages=TURNS)
    said = called.choices[0].message
    turns = [*TURNS, said, {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "21 C"}]
    whole = client.chat.completions.create(**ask, messages=turns)
    alone = client.chat.completions.create(**ask, messages=TURNS)
    assert whole.choices[0].message.content and whole.usage.prompt_tokens > alone.usage.prompt_tokens, whole
    pieces = client.chat.completions.create(**ask, messages=turns, stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == whole.choices[0].message.content


def tools_of_responses():
    function = {"type": "function", "name": "Weather", "strict": True, "parameters": Weather.model_json_schema()}
    ask = {"model": MODEL, "temperature": 0, "max_output_tokens": 120, "tools": [function]}
    for choice in ("required", {"type": "function", "name": "Weather"}):
        asked = {**ask, "input": PROMPT, "tool_choice": choice, "parallel_tool_calls": False}
        whole = client.responses.create(**asked)
        (call,) = whole.output
        assert whole.status == "completed" and call.type == "function_call" and call.status == "completed", whole
        assert call.name == "Weather" and Weather.model_validate_json(call.arguments), call
        with client.responses.stream(**asked) as stream:
            events = list(stream)
            final = stream.get_final_response()
        assert [event.sequence_number for event in events] == list(range(len(events)))
        deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
        assert "".join(deltas) == call.arguments == final.output[0].arguments, (deltas, call)
        done = next(event for event in events if event.type == "response.function_call_arguments.done")
        assert done.arguments == call.arguments and done.item_id == final.output[0].id, done
        assert isinstance(client.responses.parse(**asked).output[0].arguments, str)
    alone = client.responses.create(**{**ask, "max_output_tokens": 8}, input=PROMPT, tool_choice="none")
    for output in ("21 C", [{"type": "input_text", "text": "21 C"}]):
        result = {"type": "function_call_output", "call_id": call.call_id, "output": output}
        turns = [{"role": "user", "content": PROMPT}, call, result]
        answered = client.responses.create(**{**ask, "max_output_tokens": 8}, input=turns, tool_choice="none")
        assert answered.output_text and answered.usage.input_tokens > alone.usage.input_tokens, answered
        with client.responses.stream(**{**ask, "max_output_tokens": 8}, input=turns, tool_choice="none") as stream:
            assert list(stream)[-1].response.output_text == answered.output_text


def tool_errors():
    chat = lambda **more: client.chat.completions.create(model=MODEL, **{"messages": TURNS, "tools": TOOLS, **more})
    response = lambda **more: client.responses.create(model=MODEL, **{"input": PROMPT, **more})
    named = lambda name: {"type": "function", "function": {"name": name}}
    refused(BadRequestError, "tools", lambda: chat(tools=[named('a"b')]))
    refused(BadRequestError, "tools", lambda: chat(tools=[named("f"), named("f")]))
    refused(BadRequestError, "tool_choice", lambda: chat(tool_choice=named("other")))
    result = {"role": "tool", "tool_call_id": "unheard_of", "content": "21 C"}
    refused(BadRequestError, "messages", lambda: chat(messages=[*TURNS, result]))
    refused(BadRequestError, "tools", lambda: response(tools=[{"type": "function", "name": "a'b", "parameters": {}}]))
    f = {"type": "function", "name": "f", "parameters": {}}
    refused(BadRequestError, "tool_choice", lambda: response(tools=[f], tool_choice={"type": "function", "name": "g"}))
    result = {"type": "function_call_output", "call_id": "unheard_of", "output": "21 C"}
    refused(BadRequestError, "input", lambda: response(input=[{"role": "user", "content": PROMPT}, result]))


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


of_tools = (tools, tool_results, tools_of_responses, tool_errors)
for check in (completions, chats, responses, structured, *of_tools, speculation, errors, many):
    check()
