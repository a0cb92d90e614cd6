"""Agents in Python: AutoGen's AssistantAgent and Semantic Kernel's ChatCompletionAgent, each over several turns, and with a
tool of a real chat model, which a relay has call it.

Both send the speaker's name with each message, and their own earlier answers as turns.
"""

import asyncio
import os
from enum import Enum
from typing import Literal

import chat_model
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, TextMessage
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from relay import Relay
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.functions import KernelArguments, kernel_function
from weather import AGAIN, QUESTION, was_called, weather

BASE_URL = f"{os.environ['OUTRIDER_HTTP']}/v1"
TURNS = ["Once upon a time", "Go on.", "And then?"]


async def autogen():
    client = OpenAIChatCompletionClient(
        model="default",
        base_url=BASE_URL,
        api_key="anything",
        max_tokens=16,
        temperature=0,
        max_retries=0,
        model_info={
            "vision": False,
            "function_calling": False,
            "json_output": False,
            "structured_output": False,
            "family": ModelFamily.UNKNOWN,
        },
    )
    whole = AssistantAgent("storyteller", client, system_message="Tell stories.")
    streamed = AssistantAgent("storyteller", client, system_message="Tell stories.", model_client_stream=True)
    sent = []
    for turn in TURNS:
        answer = await whole.run(task=turn)
        said = answer.messages[-1]
        assert isinstance(said, TextMessage) and said.content, answer
        assert said.models_usage.completion_tokens == 16, said
        sent.append(said.models_usage.prompt_tokens)
        pieces = []
        async for event in streamed.run_stream(task=turn):
            if isinstance(event, ModelClientStreamingChunkEvent):
                pieces.append(event.content)
        assert "".join(pieces) == said.content, (pieces, said.content)
    # Each turn has the answers before it.
    assert sent[0] + 16 < sent[1] and sent[1] + 16 < sent[2], sent
    await client.close()


async def semantic_kernel():
    client = AsyncOpenAI(base_url=BASE_URL, api_key="anything", max_retries=0)
    service = OpenAIChatCompletion(ai_model_id="default", async_client=client)
    settings = OpenAIChatPromptExecutionSettings(max_tokens=16, temperature=0)
    agent = ChatCompletionAgent(
        service=service,
        name="Storyteller",
        instructions="Tell stories.",
        arguments=KernelArguments(settings=settings),
    )
    thread = ChatHistoryAgentThread()
    answers = []
    for turn in TURNS:
        answer = await agent.get_response(messages=turn, thread=thread)
        answers.append(str(answer.content))
        assert answers[-1], answer
    pieces = []
    async for piece in agent.invoke_stream(messages=TURNS[0], thread=ChatHistoryAgentThread()):
        pieces.append(str(piece.content))
    assert "".join(pieces) == answers[0], (pieces, answers)
    await client.close()


def weather_of(city: Literal["Paris", "Rome"], unit: Literal["C", "F"]) -> str:
    """The weather in a city."""
    return weather(city, unit)


class City(Enum):
    PARIS = "Paris"
    ROME = "Rome"


class Plugin:
    """What Semantic Kernel takes."""

    @kernel_function
    def weather(self, city: City) -> str:
        """The weather in a city."""
        return weather(City(city).value, "C")


async def autogen_calls(base):
    info = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False}
    answers = []
    for streams in (False, True):
        client = OpenAIChatCompletionClient(
            model="SmolLM2",
            base_url=base,
            api_key="anything",
            max_tokens=120,
            temperature=0,
            max_retries=0,
            model_info={**info, "family": ModelFamily.UNKNOWN},
        )
        helper = AssistantAgent("helper", client, tools=[weather_of], model_client_stream=streams, max_tool_iterations=2)
        answer = (await helper.run(task=QUESTION)).messages[-1]
        answers.append((was_called(), answer.content))
        assert isinstance(answer, TextMessage) and answer.content, answer
        assert (await helper.run(task=AGAIN)).messages[-1].content and was_called()
        # The result is told in a turn of its own, which has no tools.
        reflects = AssistantAgent("helper", client, tools=[weather_of], model_client_stream=streams, reflect_on_tool_use=True)
        assert (await reflects.run(task=QUESTION)).messages[-1].content and was_called() == answers[0][0]
        await client.close()
    assert answers[0] == answers[1], answers


async def semantic_kernel_calls(base):
    client = AsyncOpenAI(base_url=base, api_key="anything", max_retries=0)
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="SmolLM2", async_client=client),
        name="Helper",
        plugins=[Plugin()],
        function_choice_behavior=FunctionChoiceBehavior.Auto(),
        arguments=KernelArguments(settings=OpenAIChatPromptExecutionSettings(max_tokens=120, temperature=0)),
    )
    thread = ChatHistoryAgentThread()
    answer = await agent.get_response(messages=QUESTION, thread=thread)
    called = was_called()
    assert str(answer.content), answer
    pieces = [piece async for piece in agent.invoke_stream(messages=QUESTION, thread=ChatHistoryAgentThread())]
    assert was_called() == called and "".join(str(piece.content) for piece in pieces) == str(answer.content), pieces
    assert str((await agent.get_response(messages=AGAIN, thread=thread)).content) and was_called()
    await client.close()


asyncio.run(autogen())
asyncio.run(semantic_kernel())
with chat_model.served() as server, Relay(server.url()) as relay:
    asyncio.run(autogen_calls(f"{relay.url()}/v1"))
    asyncio.run(semantic_kernel_calls(f"{relay.url()}/v1"))
