"""Agents that call a tool of a real chat model, each whole and streamed: OpenAI's agents, pydantic-ai, LangChain,
smolagents and llm. Where the client leaves the choice to the model, a relay chooses when it calls.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Literal

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import chat_model  # noqa: E402
from agents import Agent as OpenAIAgent  # noqa: E402
from agents import ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool  # noqa: E402
from langchain.agents import create_agent  # noqa: E402
from langchain.agents.structured_output import ToolStrategy  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from pydantic_ai import Agent, NativeOutput  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel as PydanticResponsesModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402
from relay import Relay  # noqa: E402
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool  # noqa: E402
from typed import Pet  # noqa: E402
from weather import AGAIN, QUESTION, was_called, weather  # noqa: E402


async def openai_agents(base):
    client = AsyncOpenAI(base_url=base, api_key="anything", max_retries=0)
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        agent = OpenAIAgent(
            name="Helper",
            instructions="Help.",
            model=kind("SmolLM2", client),
            model_settings=ModelSettings(temperature=0, max_tokens=60),
            tools=[function_tool(weather)],
        )
        whole = await Runner.run(agent, QUESTION)
        called = was_called()
        assert whole.final_output, whole
        streamed = Runner.run_streamed(agent, QUESTION)
        text = ""
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        assert was_called() == called and text == streamed.final_output == whole.final_output, (text, whole)
        again = await Runner.run(agent, [*whole.to_input_list(), {"role": "user", "content": AGAIN}])
        assert was_called() and again.final_output, again
    await client.close()


async def with_pydantic_ai(base, direct):
    settings = {"temperature": 0, "max_tokens": 120}
    for kind in (OpenAIChatModel, PydanticResponsesModel):
        model = kind("SmolLM2", provider=OpenAIProvider(base_url=base, api_key="anything"), settings=settings)
        # Text, or JSON that follows a schema, behind the result.
        for output in (str, NativeOutput(Pet)):
            agent = Agent(model, tools=[weather], output_type=output)
            whole = await agent.run(QUESTION)
            called = was_called()
            assert whole.output and isinstance(whole.output, Pet if output is not str else str), whole
            async with agent.run_stream(QUESTION) as streamed:
                assert await streamed.get_output() == whole.output, whole
            assert was_called() == called
            again = await agent.run(AGAIN, message_history=whole.all_messages())
            assert was_called() and again.output, again
        # A tool that is the output must be called.
        model = kind("SmolLM2", provider=OpenAIProvider(base_url=direct, api_key="anything"), settings=settings)
        agent = Agent(model, output_type=Pet)
        whole = await agent.run("A cat named Tom, 3 years old.")
        async with agent.run_stream("A cat named Tom, 3 years old.") as streamed:
            assert await streamed.get_output() == whole.output and isinstance(whole.output, Pet), whole


def langchain(base, direct):
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    for form in ({}, {"use_responses_api": True}):
        served = {"api_key": "anything", "model": "SmolLM2", "temperature": 0, "max_tokens": 120, "max_retries": 0, **form}
        agent = create_agent(ChatOpenAI(base_url=base, **served), [weather])
        whole = agent.invoke(asked)["messages"]
        called = was_called()
        assert [turn.type for turn in whole] == ["human", "ai", "tool", "ai"] and whole[-1].text, whole
        pieces = [piece for piece, _ in agent.stream(asked, stream_mode="messages") if piece.type != "tool"]
        assert was_called() == called
        assert "".join(piece.text for piece in pieces) == whole[-1].text, pieces
        again = agent.invoke({"messages": [*whole, {"role": "user", "content": AGAIN}]})["messages"]
        assert was_called() and len(again) == 8, again
        # What is always called.
        typed = create_agent(ChatOpenAI(base_url=direct, **served), response_format=ToolStrategy(Pet))
        assert isinstance(typed.invoke(asked)["structured_response"], Pet)
        must = ChatOpenAI(base_url=direct, **served).bind_tools([weather], tool_choice="any", parallel_tool_calls=False)
        call = must.invoke(QUESTION).tool_calls[0]
        total = None
        for piece in must.stream(QUESTION):
            total = piece if total is None else total + piece
        assert call["name"] == "weather" and total.tool_calls[0]["args"] == call["args"], (call, total)


def smol_agents(direct):
    called = []

    @tool
    def weather_of(city: Literal["Paris", "Rome"]) -> str:
        """The weather in a city.

        Args:
            city: The city.
        """
        called.append(city)
        return f"It is sunny in {city}."

    model = OpenAIModel("SmolLM2", api_base=direct, api_key="anything", temperature=0, max_tokens=120)
    # It must call in every turn, and ends with a tool of its own, or when it may not go on.
    for way in ({}, {"stream_outputs": True}):
        way |= {"verbosity_level": LogLevel.OFF, "return_full_result": True}
        # It prints streams at any level.
        with redirect_stdout(StringIO()):
            cut = ToolCallingAgent([weather_of], model, max_steps=2, **way).run("What is the weather in Paris?")
            ended = ToolCallingAgent([], model, max_steps=1, **way).run("Paris")
        assert cut.output and called == ["Paris"] * 2, (cut, called)
        assert ended.state == "success" and ended.output, ended
        called.clear()


FUNCTION = """
def weather(city: str) -> str:
    "The weather in a city."
    return "It is sunny in " + city + "."
"""


def llm_command(base):
    with tempfile.TemporaryDirectory() as home:
        model = {"model_id": "served", "model_name": "SmolLM2", "api_base": base, "api_key_name": "openai", "supports_tools": True}
        # JSON is YAML.
        Path(home, "extra-openai-models.yaml").write_text(json.dumps([model]))
        options = ["-m", "served", "-o", "temperature", "0", "-o", "max_tokens", "60", "--functions", FUNCTION, "--td"]
        said = []
        for way in ([], ["--no-stream"]):
            command = [Path(sys.executable).with_name("llm"), "prompt", QUESTION, *options, *way]
            environment = {**os.environ, "LLM_USER_PATH": home}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0 and done.stdout.strip(), done.stdout + done.stderr
            assert "Tool call: weather(" in done.stderr and "It is sunny in" in done.stderr, done.stderr
            said.append(done.stdout)
        assert said[0].strip() == said[1].strip(), said


with chat_model.served() as server, Relay(server.url()) as relay:
    base, direct = f"{relay.url()}/v1", f"{server.url()}/v1"
    asyncio.run(openai_agents(base))
    asyncio.run(with_pydantic_ai(base, direct))
    langchain(base, direct)
    smol_agents(direct)
    llm_command(base)
