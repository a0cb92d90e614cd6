"""A client of Outrider, speculative decoding as a distributed service.

    from outrider import Client

    with Client("http://127.0.0.1:7001") as client:
        answer = client.generate("Once upon a time", method="coupled", max_tokens=60, seed=7)
        print(answer.text, answer.statistics.mean_acceptance_length)

`outrider.report` reads what `outrider-bench ... --json` prints; `outrider.v1` holds the messages of the protocol.
"""

from outrider.answer import Answer
from outrider.client import Client
from outrider.errors import OutriderError
from outrider.events import Chunk, Event, Finished, PromptPart, Round, Started
from outrider.listing import Axis, AxisValue, Method, Model, Parameter, Peer, Rule

__all__ = [
    "Answer",
    "Axis",
    "AxisValue",
    "Chunk",
    "Client",
    "Event",
    "Finished",
    "Method",
    "Model",
    "OutriderError",
    "Parameter",
    "Peer",
    "PromptPart",
    "Round",
    "Rule",
    "Started",
]
