"""LangChain's ChatOpenAI, and LiteLLM."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from langchain_core.messages import HumanMessage, ToolMessage  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI  # noqa: E402
from openai import LengthFinishReasonError  # noqa: E402
from typed import Pet, Weather, first_whole  # noqa: E402

BASE = os.environ["OUTRIDER_HTTP"] + "/v1"
QUESTION = "Once upon a time"


def langchain():
    served = {"base_url": BASE, "api_key": "anything", "model": "default", "temperature": 1, "max_tokens": 24}
    model = ChatOpenAI(**served, seed=7, logprobs=True)
    whole = model.invoke(QUESTION)
    assert whole.content and whole.usage_metadata["output_tokens"] == 24, whole
    assert len(whole.response_metadata["logprobs"]["content"]) == 24
    assert "".join(piece.content for piece in model.stream(QUESTION)) == whole.content
    assert [answer.content for answer in model.batch([QUESTION] * 4)] == [whole.content] * 4
    # What came goes back as a turn, as both of OpenAI's forms have it.
    responses = ChatOpenAI(**served, use_responses_api=True, extra_body={"seed": 7, "ignore_eos": True})
    for model in (model, responses):
        answer = model.invoke(QUESTION)
        assert model.invoke([HumanMessage(QUESTION), answer, HumanMessage("Go on.")]).usage_metadata["input_tokens"] > 24

    for form in ({}, {"use_responses_api": True}):
        asked = ChatOpenAI(**{**served, "max_tokens": 200}, **form).with_structured_output(Pet)
        assert isinstance(asked.invoke(QUESTION), Pet)
    longer = {**served, "max_tokens": 200}
    asked = lambda seed: ChatOpenAI(**longer, seed=seed).with_structured_output(None, method="json_mode").invoke(QUESTION)
    assert isinstance(first_whole(asked, LengthFinishReasonError), dict)

    completions = OpenAI(**served, seed=7)
    assert "".join(completions.stream(QUESTION)) == completions.invoke(QUESTION)

    for form in ({}, {"use_responses_api": True}):
        model = ChatOpenAI(**{**longer, "temperature": 0}, **form)
        model = model.bind_tools([Weather], tool_choice="any", parallel_tool_calls=False)
        (call,) = model.invoke(QUESTION).tool_calls
        assert call["name"] == "Weather" and Weather(**call["args"]), call
        streamed = None
        for piece in model.stream(QUESTION):
            streamed = piece if streamed is None else streamed + piece
        assert [other["args"] for other in streamed.tool_calls] == [call["args"]], (streamed, call)
        # The result goes back, with the call as it came.
        result = ToolMessage("21 C", tool_call_id=streamed.tool_calls[0]["id"])
        answer = model.bind(tool_choice="none").invoke([HumanMessage(QUESTION), streamed, result])
        assert answer.text and not answer.tool_calls, answer


def lite_llm():
    ask = {
        "model": "openai/default",
        "api_base": BASE,
        "api_key": "anything",
        "messages": [{"role": "user", "content": QUESTION}],
        "temperature": 1,
        "seed": 7,
        "max_tokens": 24,
    }
    whole = litellm.completion(**ask)
    text = whole.choices[0].message.content
    assert text and whole.usage.completion_tokens == 24
    pieces = litellm.completion(**ask, stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == text
    parameters = Weather.model_json_schema()
    ask_call = {**ask, "temperature": 0, "max_tokens": 120, "tool_choice": "required", "parallel_tool_calls": False}
    ask_call["tools"] = [{"type": "function", "function": {"name": "Weather", "parameters": parameters}}]
    choice = litellm.completion(**ask_call).choices[0]
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls" and Weather.model_validate_json(call.function.arguments), choice
    built = litellm.stream_chunk_builder(list(litellm.completion(**ask_call, stream=True))).choices[0].message
    assert built.tool_calls[0].function.arguments == call.function.arguments, (built, call)
    try:
        litellm.completion(**{**ask, "model": "openai/other"})
        raise AssertionError("a model that is not served was found")
    except litellm.NotFoundError:
        pass
    try:
        litellm.completion(**{**ask, "messages": [{"role": "user", "content": "word " * 600}]})
        raise AssertionError("a prompt longer than the context was answered")
    except litellm.ContextWindowExceededError:
        pass


langchain()
lite_llm()
