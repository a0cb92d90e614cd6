"""Agents in Python: AutoGen's AssistantAgent and Semantic Kernel's ChatCompletionAgent, each over several turns.

Both send the speaker's name with each message, and their own earlier answers as turns.
"""

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, TextMessage
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.functions import KernelArguments

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
    service = OpenAIChatCompletion(
        ai_model_id="default",
        async_client=AsyncOpenAI(base_url=BASE_URL, api_key="anything", max_retries=0),
    )
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


asyncio.run(autogen())
asyncio.run(semantic_kernel())
