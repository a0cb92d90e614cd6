"""LangChain's ChatOpenAI, and LiteLLM."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from langchain_core.messages import HumanMessage  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI  # noqa: E402
from openai import BadRequestError, LengthFinishReasonError  # noqa: E402
from typed import Pet, first_whole  # noqa: E402

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
    try:
        ChatOpenAI(**served).bind_tools([{"name": "f", "description": "", "parameters": {}}]).invoke(QUESTION)
    except BadRequestError as error:
        assert error.param == "tools", error
    else:
        raise AssertionError("tools were not refused")


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
