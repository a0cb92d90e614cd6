"""A tool that agents are given, and what it was called with."""

from typing import Annotated, Literal

from pydantic import Field

QUESTION = "What is the weather in Paris, in C?"
AGAIN = "And in Rome?"
CALLED = []


def weather(city: Annotated[str, Field(max_length=20)], unit: Literal["C", "F"]) -> str:
    """The weather in a city."""
    CALLED.append((city, unit))
    return f"It is sunny in {city}, 21 {unit}."


def was_called():
    """What the tool was called with since the last time, which is something."""
    called, CALLED[:] = list(CALLED), []
    assert called and all(unit in ("C", "F") for _, unit in called), called
    return called
