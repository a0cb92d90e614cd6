"""What a deployment serves: models, and the methods, axes and rules that a request can choose."""

from dataclasses import dataclass

from outrider.records import record
from outrider.v1 import common_pb2, coordinator_pb2


@dataclass(frozen=True)
class Peer:
    """A model behind a drafter or a verifier. `dtype` is the format that the weights are computed in."""

    model: str
    vocab_size: int
    context_len: int
    eos_token_ids: list[int]
    version: str
    features: list[str]
    rows_vary: bool
    model_fingerprint: str
    dtype: str


@dataclass(frozen=True)
class Model:
    """A model to ask for. `verifier` and `drafter` are None where none could be reached; `gains` are the draft models' speed
    over that of the target alone, as requests measured it last."""

    name: str
    verifier: Peer | None
    drafter: Peer | None
    has_drafters: bool
    gains: dict[str, float]


@dataclass(frozen=True)
class Parameter:
    """A setting that a method takes."""

    name: str
    type: str
    range: str
    default: str
    help: str


@dataclass(frozen=True)
class Method:
    """A way of generating: a preset over the axes. `allowed` says whether this deployment serves it with its defaults."""

    name: str
    aliases: list[str]
    summary: str
    lossless: bool
    reproducible: bool
    source: str
    plan: str
    target: str
    verification: str
    needs_draft_probs: bool
    parameters: list[Parameter]
    allowed: bool


@dataclass(frozen=True)
class Rule:
    """A deferral rule, and the range of its alpha."""

    name: str
    summary: str
    least_alpha: float
    most_alpha: float
    default_alpha: float


@dataclass(frozen=True)
class AxisValue:
    """A value of an axis, or a form of values, whose capital letters stand for a number within `range`."""

    form: str
    range: str
    help: str


@dataclass(frozen=True)
class Axis:
    """A choice beside the method."""

    name: str
    help: str
    default: str
    values: list[AxisValue]


def models_of(message: coordinator_pb2.ListModelsResponse) -> list[Model]:
    """Reads the list of models."""
    return [_model(model) for model in message.models]


def methods_of(message: coordinator_pb2.ListMethodsResponse) -> list[Method]:
    """Reads the list of methods."""
    return [
        record(Method, method, parameters=[record(Parameter, each) for each in method.parameters])
        for method in message.methods
    ]


def rules_of(message: coordinator_pb2.ListMethodsResponse) -> list[Rule]:
    """Reads the list of rules."""
    return [record(Rule, rule) for rule in message.rules]


def axes_of(message: coordinator_pb2.ListMethodsResponse) -> list[Axis]:
    """Reads the list of axes."""
    return [record(Axis, axis, values=[record(AxisValue, value) for value in axis.values]) for axis in message.axes]


def _model(message: coordinator_pb2.ServedModel) -> Model:
    return record(
        Model,
        message,
        verifier=_peer(message.verifier) if message.HasField("verifier") else None,
        drafter=_peer(message.drafter) if message.HasField("drafter") else None,
        gains={each.name: each.gain for each in message.draft_models},
    )


def _peer(message: common_pb2.PeerDescription) -> Peer:
    return record(Peer, message, dtype=message.numerics.dtype)
