"""Messages of the protocol as plain records: the same names, lists for repeated fields, None for what is absent."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

Record = TypeVar("Record")
# A row of a table, of which pandas.DataFrame takes a list as it is.
Row = dict[str, Any]


def value_of(message: Message, name: str) -> Any:
    """Returns a field of a message; None for an optional one that is absent."""
    field = message.DESCRIPTOR.fields_by_name[name]
    # In proto3 only optional fields and messages have presence, and messages are read by those who know them.
    if field.has_presence and not message.HasField(name):
        return None
    value = getattr(message, name)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else value


def record(kind: type[Record], message: Message, **read: Any) -> Record:
    """Makes a record of class `kind` of the fields of `message` that it has, but for those that are `read` already."""
    names = [field.name for field in fields(kind) if field.name not in read]  # type: ignore[arg-type]
    return kind(**{name: value_of(message, name) for name in names}, **read)


def names_of(kind: EnumDescriptor, numbers: Iterable[int]) -> list[str]:
    """Returns values of the enumeration `kind` as words, such as "accepted" for ORIGIN_ACCEPTED; those that are newer than
    this package as their numbers."""
    # Values begin with the enumeration's own name, which that of the first shows.
    prefix = len(kind.values_by_number[0].name) - len("UNSPECIFIED")
    known = {number: value.name[prefix:].lower() for number, value in kind.values_by_number.items()}
    return [known.get(number, str(number)) for number in numbers]


@dataclass(frozen=True)
class Timing:
    """Where the time of a peer's reply went. In microseconds, but for `row_ns` in nanoseconds."""

    queue_us: int
    forward_us: int
    total_us: int
    batch: int
    accept_us: int
    forwarded_tokens: int
    row_ns: int
    sessions: int
    reused_tokens: int


@dataclass(frozen=True)
class Fallback:
    """Where the output went on without the drafter: output tokens at that point, and why."""

    position: int
    reason: str


@dataclass(frozen=True)
class Usage:
    """Tokens of a request."""

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int
    cached_prompt_tokens: int


@dataclass(frozen=True)
class RequestTiming:
    """How long a request took, as the coordinator measured it; `tokens_per_second` is of the whole request."""

    time_to_first_token_ms: float
    total_ms: float
    tokens_per_second: float


@dataclass(frozen=True)
class Statistics:
    """How speculation went. The message `SpeculationStatistics` in coordinator.proto says what each field counts."""

    num_spec_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    mean_acceptance_length: float
    draft_acceptance_rate: float
    acceptance_histogram: list[int]
    per_step_drafted: list[int]
    per_step_accepted: list[int]
    target_forwards: int
    discarded: int
    retries: int
    fallbacks: list[Fallback]
    deferral_rate: float | None
    migrations: int
    rejection_rate: float | None
    draft_forwards: int
    target_calls_per_token: float
    wire_bytes: int
    wire_bytes_per_round: float
    rounds: int
    fallback_tokens: int
    draft_forwards_by_model: list[int]
    withheld: int
    drafted: int
    rested_tokens: int
    predicted_gain: float | None
    measured_gain: float | None
    length_decision: str
    at_max_run: int
