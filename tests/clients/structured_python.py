"""Clients that ask for JSON, or for the call of a function, and read it into types: instructor and DSPy."""

import os
from typing import Literal

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy  # noqa: E402
import instructor  # noqa: E402
from instructor.core.exceptions import IncompleteOutputException  # noqa: E402
from openai import OpenAI  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from typed import Pet, first_whole  # noqa: E402

BASE = os.environ["OUTRIDER_HTTP"] + "/v1"
SERVED = {"model": "default", "temperature": 0, "max_tokens": 150}
TURNS = [{"role": "user", "content": "A pet."}]


class Anything(BaseModel):
    """What any object is read into: in the mode JSON the schema stands in the prompt alone."""

    model_config = {"extra": "allow"}


def with_instructor():
    client = OpenAI(base_url=BASE, max_retries=0)
    by_schema = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
    pet = by_schema.chat.completions.create(**SERVED, messages=TURNS, response_model=Pet, max_retries=0)
    assert isinstance(pet, Pet), pet
    by_object = instructor.from_openai(client, mode=instructor.Mode.JSON)
    ask = {**SERVED, "temperature": 1, "messages": TURNS, "response_model": Anything, "max_retries": 0}
    read = first_whole(lambda seed: by_object.chat.completions.create(**ask, seed=seed), IncompleteOutputException)
    assert isinstance(read, Anything), read

    # The type is a function, which must be called.
    by_call = instructor.from_openai(client)
    ask = {**SERVED, "messages": TURNS, "response_model": Pet, "max_retries": 0}
    called, answer = by_call.chat.completions.create_with_completion(**ask)
    assert isinstance(called, Pet) and answer.choices[0].message.tool_calls[0].function.name == "Pet", answer
    partial = list(by_call.chat.completions.create_partial(**ask))
    assert len(partial) > 2 and partial[-1].model_dump() == called.model_dump(), partial
    strict = instructor.from_openai(client, mode=instructor.Mode.TOOLS_STRICT)
    assert isinstance(strict.chat.completions.create(**ask), Pet)


def with_dspy():
    class Describe(dspy.Signature):
        question: str = dspy.InputField()
        kind: Literal["cat", "dog"] = dspy.OutputField()
        age: int = dspy.OutputField()

    # LM Studio is a server of which DSPy knows that it takes a schema for every model.
    served = {"api_base": BASE, "api_key": "anything", "engine": "litellm", "num_retries": 0, "cache": False}
    model = dspy.LM("lm_studio/default", **served, temperature=0, max_tokens=70)
    with dspy.context(lm=model, adapter=dspy.JSONAdapter()):
        said = dspy.Predict(Describe)(question="A pet?")
    assert said.kind in ("cat", "dog") and isinstance(said.age, int), said
    assert model.history[-1]["kwargs"]["response_format"].model_fields.keys() == {"kind", "age"}, model.history[-1]


with_instructor()
with_dspy()
