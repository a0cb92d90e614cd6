"""LlamaIndex's FunctionAgent over OpenAILike, with a tool of a real chat model: whole and streamed, and a second turn."""

import asyncio
import warnings

import chat_model
from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike
from relay import Relay
from weather import AGAIN, QUESTION, was_called, weather

# Of memory that no one writes to a file.
warnings.filterwarnings("ignore", message="Skipping serialization")


async def agent(base, direct):
    served = {"model": "SmolLM2", "api_key": "anything", "temperature": 0, "max_tokens": 120, "max_retries": 0}
    served |= {"is_chat_model": True, "is_function_calling_model": True, "context_window": 2048}
    answers = []
    for streaming in (False, True):
        # Several calls would run beside each other, and their results come in any order.
        settings = {"streaming": streaming, "allow_parallel_tool_calls": False}
        helper = FunctionAgent(tools=[weather], llm=OpenAILike(api_base=base, **served), **settings)
        context = Context(helper)
        run = helper.run(QUESTION, ctx=context)
        text = "".join([event.delta async for event in run.stream_events() if isinstance(event, AgentStream)])
        answer = await run
        answers.append((was_called(), answer.response.content))
        assert answer.response.content and answer.tool_calls, answer
        assert not streaming or text == answer.response.content, (text, answer)
        again = await helper.run(AGAIN, ctx=context)
        assert was_called() and again.response.content, again
    assert answers[0] == answers[1], answers

    # What is always called.
    model, tools = OpenAILike(api_base=direct, **served), [FunctionTool.from_defaults(weather)]
    for choice in ("required", "weather"):
        asked = {"tools": tools, "user_msg": ChatMessage(QUESTION), "tool_choice": choice}
        (whole,) = model.get_tool_calls_from_response(await model.achat_with_tools(**asked))
        pieces = [piece async for piece in await model.astream_chat_with_tools(**asked)]
        (streamed,) = model.get_tool_calls_from_response(pieces[-1])
        assert whole.tool_name == "weather" and whole.tool_kwargs == streamed.tool_kwargs, (whole, streamed)


with chat_model.served() as server, Relay(server.url()) as relay:
    asyncio.run(agent(f"{relay.url()}/v1", f"{server.url()}/v1"))
