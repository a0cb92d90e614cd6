"""The clients of Anthropic and of Ollama, over their own routes: chats and streams, calls and what they came to, errors."""

import json

import anthropic
import chat_model
import ollama

QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
# The client has no such argument any more.
GREEDY = {"extra_body": {"temperature": 0}}


def messages(client):
    """Anthropic's /v1/messages."""
    said = client.messages.create(model="SmolLM2", max_tokens=20, system="Be brief.", messages=[QUESTION], **GREEDY)
    assert said.stop_reason == "max_tokens" and said.content[0].text and said.usage.output_tokens == 20, said
    tool = {"name": "weather", "description": "The weather of a city.", "input_schema": SCHEMA}
    asked = {"model": "SmolLM2", "max_tokens": 100, "messages": [QUESTION], "tools": [tool], "tool_choice": {"type": "any"}, **GREEDY}
    whole = client.messages.create(**asked)
    assert whole.stop_reason == "tool_use", whole
    [call] = whole.content
    assert (call.type, call.name) == ("tool_use", "weather"), call
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    assert streamed.stop_reason == "tool_use" and streamed.content[0].input == call.input, streamed
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny, 20 degrees."}
    turns = [QUESTION, {"role": "assistant", "content": [call.model_dump()]}, {"role": "user", "content": [result]}]
    last = client.messages.create(**{**asked, "messages": turns, "tool_choice": {"type": "none"}})
    assert last.content[0].type == "text" and last.content[0].text, last
    try:
        client.messages.create(model="SmolLM2", max_tokens=9, messages=[{"role": "user", "content": [{"type": "image", "source": {}}]}])
    except anthropic.BadRequestError as refused:
        assert "'image' is not supported" in refused.body["error"]["message"], refused.body
    else:
        raise AssertionError("an image was taken")


def chats(client):
    """Ollama's /api/chat, /api/generate and /api/tags."""
    assert [model.model for model in client.list().models] == ["SmolLM2"]
    greedy = {"temperature": 0, "num_predict": 20}
    whole = client.chat(model="SmolLM2", messages=[QUESTION], options=greedy)
    assert whole.done_reason == "length" and whole.eval_count == 20, whole
    pieces = list(client.chat(model="SmolLM2:latest", messages=[QUESTION], options=greedy, stream=True))
    assert len(pieces) > 2 and "".join(piece.message.content for piece in pieces) == whole.message.content
    tool = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA}}
    call = {"function": {"name": "weather", "arguments": {"city": "Paris"}}}
    turns = [QUESTION, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_name": "weather", "content": "Sunny"}]
    assert client.chat(model="SmolLM2", messages=turns, tools=[tool], options=greedy).message.content
    raw = client.generate(model="SmolLM2", prompt="Once upon a time", raw=True, options=greedy)
    assert raw.response and raw.prompt_eval_count == 4, raw
    schema = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"], "additionalProperties": False}
    color = client.generate(model="SmolLM2", prompt="A color?", format=schema, options={"temperature": 0})
    assert json.loads(color.response)["color"] in ("red", "blue"), color
    try:
        client.chat(model="SmolLM2", messages=[])
    except ollama.ResponseError as refused:
        assert refused.status_code == 400 and refused.error.startswith("messages: missing"), refused
    else:
        raise AssertionError("nothing was said, and answered")


with chat_model.served() as server:
    messages(anthropic.Anthropic(base_url=server.url(), api_key="anything"))
    chats(ollama.Client(host=server.url()))
