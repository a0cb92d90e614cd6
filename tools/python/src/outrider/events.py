"""What comes of a request, in order: `Started`, `PromptPart`s if asked for, `Chunk`s and `Round`s, and `Finished`."""

from collections.abc import Iterable
from dataclasses import dataclass

from outrider.records import (
    Fallback,
    RequestTiming,
    Statistics,
    Timing,
    Usage,
    names_of,
    record,
)
from outrider.v1 import coordinator_pb2, session_pb2

ORIGIN = coordinator_pb2.DESCRIPTOR.enum_types_by_name["Origin"]
REASON = coordinator_pb2.DESCRIPTOR.enum_types_by_name["FinishReason"]


@dataclass(frozen=True)
class TokenLogprobs:
    """Natural logarithm of a token's probability under the target model's own distribution; the most likely tokens at its
    position with theirs, the likeliest first; and the logarithm of the sum of exponentials of the logits."""

    logprob: float
    top: list[tuple[int, float]]
    log_normaliser: float


@dataclass(frozen=True)
class Started:
    """What the request came to. `warnings` says what of it could not be had as asked for, one sentence each."""

    request_id: str
    model: str
    method: str
    seed: int
    prompt_tokens: int
    max_tokens: int
    reproducible: bool
    warnings: list[str]


@dataclass(frozen=True)
class PromptPart:
    """Consecutive tokens of the prompt. The prompt's first token has no log probability."""

    token_ids: list[int]
    logprobs: list[TokenLogprobs]


@dataclass(frozen=True)
class Chunk:
    """Output. `origins` and `pieces` have one entry a token: where it came from ("accepted", "recovered", "bonus",
    "target" or "deferred"), and the text that it completed; `logprobs` too, if they were asked for."""

    text: str
    token_ids: list[int]
    origins: list[str]
    pieces: list[str]
    logprobs: list[TokenLogprobs]
    # Content, reasoning and calls, where the output may hold them.
    parts: list[coordinator_pb2.OutputPart]


@dataclass(frozen=True)
class Round:
    """One round: `base_len` output tokens before it, draft tokens, those accepted, tokens emitted; times in microseconds,
    of which `drafter` and `verifier` tell their own shares."""

    round: int
    base_len: int
    drafted: int
    accepted: int
    emitted: int
    draft_us: int
    verify_us: int
    drafter: Timing
    verifier: Timing
    wire_bytes: int
    # Draft tokens accepted, by who drafted them.
    accepted_by: dict[str, int]
    fallbacks: list[Fallback]
    # If asked for; common.proto and session.proto say what they hold.
    distributions: coordinator_pb2.RoundDistributions | None


@dataclass(frozen=True)
class Finished:
    """The end: `reason` is "stop", "length", "cancelled", "error" or "tool_calls"; `settings` are all that were in effect;
    `exact` says whether the output is what the method promises."""

    reason: str
    error: str
    error_code: int
    usage: Usage
    speculation: Statistics
    timing: RequestTiming
    effective_method: str
    exact: bool
    seed: int
    settings: dict[str, str]
    lossless: bool
    reproducible: bool
    retry_after_ms: int
    stop_text: str


Event = Started | PromptPart | Chunk | Round | Finished


def event_of(response: coordinator_pb2.GenerateResponse) -> Event | None:
    """Reads a part of an answer; None for a kind that is newer than this package."""
    kind = response.WhichOneof("part")
    if kind == "started":
        return record(Started, response.started)
    if kind == "prompt":
        return record(PromptPart, response.prompt, logprobs=_logprobs(response.prompt.logprobs))
    if kind == "chunk":
        chunk = response.chunk
        return record(Chunk, chunk, origins=names_of(ORIGIN, chunk.origins), logprobs=_logprobs(chunk.logprobs))
    if kind == "round":
        return _round(response.round)
    if kind == "finished":
        return _finished(response.finished)
    return None


def _logprobs(messages: Iterable[session_pb2.TokenLogprobs]) -> list[TokenLogprobs]:
    return [record(TokenLogprobs, each, top=[(top.token_id, top.logprob) for top in each.top]) for each in messages]


def _fallbacks(messages: Iterable[coordinator_pb2.Fallback]) -> list[Fallback]:
    return [record(Fallback, message) for message in messages]


def _round(message: coordinator_pb2.RoundReport) -> Round:
    return record(
        Round,
        message,
        drafter=record(Timing, message.drafter),
        verifier=record(Timing, message.verifier),
        accepted_by={source.source: source.tokens for source in message.accepted_by},
        fallbacks=_fallbacks(message.fallbacks),
    )


def _finished(message: coordinator_pb2.Finished) -> Finished:
    speculation = message.speculation
    return record(
        Finished,
        message,
        reason=names_of(REASON, [message.reason])[0],
        usage=record(Usage, message.usage),
        speculation=record(Statistics, speculation, fallbacks=_fallbacks(speculation.fallbacks)),
        timing=record(RequestTiming, message.timing),
        settings={setting.name: setting.value for setting in message.settings},
    )
