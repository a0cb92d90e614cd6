from google.protobuf import struct_pb2 as _struct_pb2
from outrider.v1 import common_pb2 as _common_pb2
from outrider.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ToolChoice(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_CHOICE_UNSPECIFIED: _ClassVar[ToolChoice]
    TOOL_CHOICE_AUTO: _ClassVar[ToolChoice]
    TOOL_CHOICE_NONE: _ClassVar[ToolChoice]
    TOOL_CHOICE_REQUIRED: _ClassVar[ToolChoice]

class Origin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORIGIN_UNSPECIFIED: _ClassVar[Origin]
    ORIGIN_ACCEPTED: _ClassVar[Origin]
    ORIGIN_RECOVERED: _ClassVar[Origin]
    ORIGIN_BONUS: _ClassVar[Origin]
    ORIGIN_TARGET: _ClassVar[Origin]
    ORIGIN_DEFERRED: _ClassVar[Origin]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_STOP: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
    FINISH_REASON_CANCELLED: _ClassVar[FinishReason]
    FINISH_REASON_ERROR: _ClassVar[FinishReason]
    FINISH_REASON_TOOL_CALLS: _ClassVar[FinishReason]
TOOL_CHOICE_UNSPECIFIED: ToolChoice
TOOL_CHOICE_AUTO: ToolChoice
TOOL_CHOICE_NONE: ToolChoice
TOOL_CHOICE_REQUIRED: ToolChoice
ORIGIN_UNSPECIFIED: Origin
ORIGIN_ACCEPTED: Origin
ORIGIN_RECOVERED: Origin
ORIGIN_BONUS: Origin
ORIGIN_TARGET: Origin
ORIGIN_DEFERRED: Origin
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_STOP: FinishReason
FINISH_REASON_LENGTH: FinishReason
FINISH_REASON_CANCELLED: FinishReason
FINISH_REASON_ERROR: FinishReason
FINISH_REASON_TOOL_CALLS: FinishReason

class GenerateRequest(_message.Message):
    __slots__ = ("model", "text", "token_ids", "max_tokens", "sampling", "seed", "choice", "method", "settings", "stop", "stop_token_ids", "ignore_eos", "timeout_ms", "report_rounds", "top_logprobs", "logprobs", "prompt_logprobs", "report_distributions", "messages", "tenant", "tools", "tool_choice", "called_tool", "parallel_tool_calls", "template_arguments", "prediction", "cache_salt", "cache_prompt")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    STOP_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_EOS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REPORT_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    REPORT_DISTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CHOICE_FIELD_NUMBER: _ClassVar[int]
    CALLED_TOOL_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    CACHE_SALT_FIELD_NUMBER: _ClassVar[int]
    CACHE_PROMPT_FIELD_NUMBER: _ClassVar[int]
    model: str
    text: str
    token_ids: TokenIds
    max_tokens: int
    sampling: _common_pb2.SamplingParams
    seed: int
    choice: int
    method: str
    settings: _struct_pb2.Struct
    stop: _containers.RepeatedScalarFieldContainer[str]
    stop_token_ids: _containers.RepeatedScalarFieldContainer[int]
    ignore_eos: bool
    timeout_ms: int
    report_rounds: bool
    top_logprobs: int
    logprobs: bool
    prompt_logprobs: bool
    report_distributions: bool
    messages: _containers.RepeatedCompositeFieldContainer[ChatMessage]
    tenant: str
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    tool_choice: ToolChoice
    called_tool: str
    parallel_tool_calls: bool
    template_arguments: _struct_pb2.Struct
    prediction: str
    cache_salt: str
    cache_prompt: bool
    def __init__(self, model: _Optional[str] = ..., text: _Optional[str] = ..., token_ids: _Optional[_Union[TokenIds, _Mapping]] = ..., max_tokens: _Optional[int] = ..., sampling: _Optional[_Union[_common_pb2.SamplingParams, _Mapping]] = ..., seed: _Optional[int] = ..., choice: _Optional[int] = ..., method: _Optional[str] = ..., settings: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., stop: _Optional[_Iterable[str]] = ..., stop_token_ids: _Optional[_Iterable[int]] = ..., ignore_eos: bool = ..., timeout_ms: _Optional[int] = ..., report_rounds: bool = ..., top_logprobs: _Optional[int] = ..., logprobs: bool = ..., prompt_logprobs: bool = ..., report_distributions: bool = ..., messages: _Optional[_Iterable[_Union[ChatMessage, _Mapping]]] = ..., tenant: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., tool_choice: _Optional[_Union[ToolChoice, str]] = ..., called_tool: _Optional[str] = ..., parallel_tool_calls: bool = ..., template_arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., prediction: _Optional[str] = ..., cache_salt: _Optional[str] = ..., cache_prompt: bool = ...) -> None: ...

class Tool(_message.Message):
    __slots__ = ("name", "description", "parameters", "strict")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters: str
    strict: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters: _Optional[str] = ..., strict: bool = ...) -> None: ...

class ChatMessage(_message.Message):
    __slots__ = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    role: str
    content: str
    name: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[ToolCall]
    tool_call_id: str
    reasoning: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ..., name: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[ToolCall, _Mapping]]] = ..., tool_call_id: _Optional[str] = ..., reasoning: _Optional[str] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("id", "name", "arguments")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    arguments: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[str] = ...) -> None: ...

class TokenIds(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class GenerateResponse(_message.Message):
    __slots__ = ("started", "chunk", "round", "finished", "prompt")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    started: Started
    chunk: Chunk
    round: RoundReport
    finished: Finished
    prompt: PromptPart
    def __init__(self, started: _Optional[_Union[Started, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ..., round: _Optional[_Union[RoundReport, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ..., prompt: _Optional[_Union[PromptPart, _Mapping]] = ...) -> None: ...

class Started(_message.Message):
    __slots__ = ("request_id", "model", "method", "seed", "prompt_tokens", "max_tokens", "reproducible", "warnings")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REPRODUCIBLE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    model: str
    method: str
    seed: int
    prompt_tokens: int
    max_tokens: int
    reproducible: bool
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[str] = ..., model: _Optional[str] = ..., method: _Optional[str] = ..., seed: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., max_tokens: _Optional[int] = ..., reproducible: bool = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class PromptPart(_message.Message):
    __slots__ = ("token_ids", "logprobs")
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedCompositeFieldContainer[_session_pb2.TokenLogprobs]
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[_Union[_session_pb2.TokenLogprobs, _Mapping]]] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("text", "token_ids", "origins", "pieces", "logprobs", "parts")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    text: str
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    origins: _containers.RepeatedScalarFieldContainer[Origin]
    pieces: _containers.RepeatedScalarFieldContainer[str]
    logprobs: _containers.RepeatedCompositeFieldContainer[_session_pb2.TokenLogprobs]
    parts: _containers.RepeatedCompositeFieldContainer[OutputPart]
    def __init__(self, text: _Optional[str] = ..., token_ids: _Optional[_Iterable[int]] = ..., origins: _Optional[_Iterable[_Union[Origin, str]]] = ..., pieces: _Optional[_Iterable[str]] = ..., logprobs: _Optional[_Iterable[_Union[_session_pb2.TokenLogprobs, _Mapping]]] = ..., parts: _Optional[_Iterable[_Union[OutputPart, _Mapping]]] = ...) -> None: ...

class OutputPart(_message.Message):
    __slots__ = ("content", "reasoning", "call", "arguments", "token")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    content: str
    reasoning: str
    call: ToolCall
    arguments: str
    token: int
    def __init__(self, content: _Optional[str] = ..., reasoning: _Optional[str] = ..., call: _Optional[_Union[ToolCall, _Mapping]] = ..., arguments: _Optional[str] = ..., token: _Optional[int] = ...) -> None: ...

class RoundReport(_message.Message):
    __slots__ = ("round", "base_len", "drafted", "accepted", "emitted", "draft_us", "verify_us", "drafter", "verifier", "wire_bytes", "distributions", "accepted_by", "fallbacks")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    BASE_LEN_FIELD_NUMBER: _ClassVar[int]
    DRAFTED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    EMITTED_FIELD_NUMBER: _ClassVar[int]
    DRAFT_US_FIELD_NUMBER: _ClassVar[int]
    VERIFY_US_FIELD_NUMBER: _ClassVar[int]
    DRAFTER_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_FIELD_NUMBER: _ClassVar[int]
    WIRE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_BY_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    round: int
    base_len: int
    drafted: int
    accepted: int
    emitted: int
    draft_us: int
    verify_us: int
    drafter: _common_pb2.Timing
    verifier: _common_pb2.Timing
    wire_bytes: int
    distributions: RoundDistributions
    accepted_by: _containers.RepeatedCompositeFieldContainer[AcceptedDrafts]
    fallbacks: _containers.RepeatedCompositeFieldContainer[Fallback]
    def __init__(self, round: _Optional[int] = ..., base_len: _Optional[int] = ..., drafted: _Optional[int] = ..., accepted: _Optional[int] = ..., emitted: _Optional[int] = ..., draft_us: _Optional[int] = ..., verify_us: _Optional[int] = ..., drafter: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ..., verifier: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ..., wire_bytes: _Optional[int] = ..., distributions: _Optional[_Union[RoundDistributions, _Mapping]] = ..., accepted_by: _Optional[_Iterable[_Union[AcceptedDrafts, _Mapping]]] = ..., fallbacks: _Optional[_Iterable[_Union[Fallback, _Mapping]]] = ...) -> None: ...

class AcceptedDrafts(_message.Message):
    __slots__ = ("source", "tokens")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    source: str
    tokens: int
    def __init__(self, source: _Optional[str] = ..., tokens: _Optional[int] = ...) -> None: ...

class RoundDistributions(_message.Message):
    __slots__ = ("draft_token_ids", "draft", "target")
    DRAFT_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    draft_token_ids: _containers.RepeatedScalarFieldContainer[int]
    draft: _containers.RepeatedCompositeFieldContainer[_common_pb2.Proposal]
    target: _containers.RepeatedCompositeFieldContainer[_session_pb2.Slice]
    def __init__(self, draft_token_ids: _Optional[_Iterable[int]] = ..., draft: _Optional[_Iterable[_Union[_common_pb2.Proposal, _Mapping]]] = ..., target: _Optional[_Iterable[_Union[_session_pb2.Slice, _Mapping]]] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("reason", "error", "error_code", "usage", "speculation", "timing", "effective_method", "exact", "seed", "settings", "lossless", "reproducible", "retry_after_ms", "stop_text")
    REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    SPECULATION_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_METHOD_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    LOSSLESS_FIELD_NUMBER: _ClassVar[int]
    REPRODUCIBLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    STOP_TEXT_FIELD_NUMBER: _ClassVar[int]
    reason: FinishReason
    error: str
    error_code: int
    usage: Usage
    speculation: SpeculationStatistics
    timing: RequestTiming
    effective_method: str
    exact: bool
    seed: int
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    lossless: bool
    reproducible: bool
    retry_after_ms: int
    stop_text: str
    def __init__(self, reason: _Optional[_Union[FinishReason, str]] = ..., error: _Optional[str] = ..., error_code: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., speculation: _Optional[_Union[SpeculationStatistics, _Mapping]] = ..., timing: _Optional[_Union[RequestTiming, _Mapping]] = ..., effective_method: _Optional[str] = ..., exact: bool = ..., seed: _Optional[int] = ..., settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., lossless: bool = ..., reproducible: bool = ..., retry_after_ms: _Optional[int] = ..., stop_text: _Optional[str] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens", "cached_prompt_tokens")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_PREDICTION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_PREDICTION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int
    cached_prompt_tokens: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., accepted_prediction_tokens: _Optional[int] = ..., rejected_prediction_tokens: _Optional[int] = ..., cached_prompt_tokens: _Optional[int] = ...) -> None: ...

class SpeculationStatistics(_message.Message):
    __slots__ = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "mean_acceptance_length", "draft_acceptance_rate", "acceptance_histogram", "per_step_drafted", "per_step_accepted", "target_forwards", "discarded", "retries", "fallbacks", "deferral_rate", "migrations", "rejection_rate", "draft_forwards", "target_calls_per_token", "wire_bytes", "wire_bytes_per_round", "rounds", "fallback_tokens", "draft_forwards_by_model", "withheld", "drafted", "rested_tokens", "predicted_gain", "measured_gain", "length_decision", "at_max_run")
    NUM_SPEC_STEPS_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_ACCEPTED_DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MEAN_ACCEPTANCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ACCEPTANCE_RATE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTANCE_HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    PER_STEP_DRAFTED_FIELD_NUMBER: _ClassVar[int]
    PER_STEP_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    TARGET_FORWARDS_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    DEFERRAL_RATE_FIELD_NUMBER: _ClassVar[int]
    MIGRATIONS_FIELD_NUMBER: _ClassVar[int]
    REJECTION_RATE_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FORWARDS_FIELD_NUMBER: _ClassVar[int]
    TARGET_CALLS_PER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WIRE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WIRE_BYTES_PER_ROUND_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FORWARDS_BY_MODEL_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    DRAFTED_FIELD_NUMBER: _ClassVar[int]
    RESTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_GAIN_FIELD_NUMBER: _ClassVar[int]
    MEASURED_GAIN_FIELD_NUMBER: _ClassVar[int]
    LENGTH_DECISION_FIELD_NUMBER: _ClassVar[int]
    AT_MAX_RUN_FIELD_NUMBER: _ClassVar[int]
    num_spec_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    mean_acceptance_length: float
    draft_acceptance_rate: float
    acceptance_histogram: _containers.RepeatedScalarFieldContainer[int]
    per_step_drafted: _containers.RepeatedScalarFieldContainer[int]
    per_step_accepted: _containers.RepeatedScalarFieldContainer[int]
    target_forwards: int
    discarded: int
    retries: int
    fallbacks: _containers.RepeatedCompositeFieldContainer[Fallback]
    deferral_rate: float
    migrations: int
    rejection_rate: float
    draft_forwards: int
    target_calls_per_token: float
    wire_bytes: int
    wire_bytes_per_round: float
    rounds: int
    fallback_tokens: int
    draft_forwards_by_model: _containers.RepeatedScalarFieldContainer[int]
    withheld: int
    drafted: int
    rested_tokens: int
    predicted_gain: float
    measured_gain: float
    length_decision: str
    at_max_run: int
    def __init__(self, num_spec_steps: _Optional[int] = ..., num_draft_tokens: _Optional[int] = ..., num_accepted_draft_tokens: _Optional[int] = ..., mean_acceptance_length: _Optional[float] = ..., draft_acceptance_rate: _Optional[float] = ..., acceptance_histogram: _Optional[_Iterable[int]] = ..., per_step_drafted: _Optional[_Iterable[int]] = ..., per_step_accepted: _Optional[_Iterable[int]] = ..., target_forwards: _Optional[int] = ..., discarded: _Optional[int] = ..., retries: _Optional[int] = ..., fallbacks: _Optional[_Iterable[_Union[Fallback, _Mapping]]] = ..., deferral_rate: _Optional[float] = ..., migrations: _Optional[int] = ..., rejection_rate: _Optional[float] = ..., draft_forwards: _Optional[int] = ..., target_calls_per_token: _Optional[float] = ..., wire_bytes: _Optional[int] = ..., wire_bytes_per_round: _Optional[float] = ..., rounds: _Optional[int] = ..., fallback_tokens: _Optional[int] = ..., draft_forwards_by_model: _Optional[_Iterable[int]] = ..., withheld: _Optional[int] = ..., drafted: _Optional[int] = ..., rested_tokens: _Optional[int] = ..., predicted_gain: _Optional[float] = ..., measured_gain: _Optional[float] = ..., length_decision: _Optional[str] = ..., at_max_run: _Optional[int] = ...) -> None: ...

class Fallback(_message.Message):
    __slots__ = ("position", "reason")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    position: int
    reason: str
    def __init__(self, position: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class RequestTiming(_message.Message):
    __slots__ = ("time_to_first_token_ms", "total_ms", "tokens_per_second")
    TIME_TO_FIRST_TOKEN_MS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    time_to_first_token_ms: float
    total_ms: float
    tokens_per_second: float
    def __init__(self, time_to_first_token_ms: _Optional[float] = ..., total_ms: _Optional[float] = ..., tokens_per_second: _Optional[float] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ServedModel]
    def __init__(self, models: _Optional[_Iterable[_Union[ServedModel, _Mapping]]] = ...) -> None: ...

class ServedModel(_message.Message):
    __slots__ = ("name", "verifier", "drafter", "has_drafters", "draft_models")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERIFIER_FIELD_NUMBER: _ClassVar[int]
    DRAFTER_FIELD_NUMBER: _ClassVar[int]
    HAS_DRAFTERS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_MODELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    verifier: _common_pb2.PeerDescription
    drafter: _common_pb2.PeerDescription
    has_drafters: bool
    draft_models: _containers.RepeatedCompositeFieldContainer[DraftModelGain]
    def __init__(self, name: _Optional[str] = ..., verifier: _Optional[_Union[_common_pb2.PeerDescription, _Mapping]] = ..., drafter: _Optional[_Union[_common_pb2.PeerDescription, _Mapping]] = ..., has_drafters: bool = ..., draft_models: _Optional[_Iterable[_Union[DraftModelGain, _Mapping]]] = ...) -> None: ...

class DraftModelGain(_message.Message):
    __slots__ = ("name", "gain")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    gain: float
    def __init__(self, name: _Optional[str] = ..., gain: _Optional[float] = ...) -> None: ...

class ListMethodsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListMethodsResponse(_message.Message):
    __slots__ = ("methods", "rules", "axes")
    METHODS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    AXES_FIELD_NUMBER: _ClassVar[int]
    methods: _containers.RepeatedCompositeFieldContainer[MethodDescription]
    rules: _containers.RepeatedCompositeFieldContainer[RuleDescription]
    axes: _containers.RepeatedCompositeFieldContainer[AxisDescription]
    def __init__(self, methods: _Optional[_Iterable[_Union[MethodDescription, _Mapping]]] = ..., rules: _Optional[_Iterable[_Union[RuleDescription, _Mapping]]] = ..., axes: _Optional[_Iterable[_Union[AxisDescription, _Mapping]]] = ...) -> None: ...

class AxisDescription(_message.Message):
    __slots__ = ("name", "help", "default", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HELP_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    help: str
    default: str
    values: _containers.RepeatedCompositeFieldContainer[AxisValue]
    def __init__(self, name: _Optional[str] = ..., help: _Optional[str] = ..., default: _Optional[str] = ..., values: _Optional[_Iterable[_Union[AxisValue, _Mapping]]] = ...) -> None: ...

class AxisValue(_message.Message):
    __slots__ = ("form", "range", "help")
    FORM_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    HELP_FIELD_NUMBER: _ClassVar[int]
    form: str
    range: str
    help: str
    def __init__(self, form: _Optional[str] = ..., range: _Optional[str] = ..., help: _Optional[str] = ...) -> None: ...

class MethodDescription(_message.Message):
    __slots__ = ("name", "aliases", "summary", "lossless", "reproducible", "source", "plan", "target", "verification", "needs_draft_probs", "parameters", "allowed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    LOSSLESS_FIELD_NUMBER: _ClassVar[int]
    REPRODUCIBLE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_FIELD_NUMBER: _ClassVar[int]
    NEEDS_DRAFT_PROBS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    name: str
    aliases: _containers.RepeatedScalarFieldContainer[str]
    summary: str
    lossless: bool
    reproducible: bool
    source: str
    plan: str
    target: str
    verification: str
    needs_draft_probs: bool
    parameters: _containers.RepeatedCompositeFieldContainer[ParameterDescription]
    allowed: bool
    def __init__(self, name: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., summary: _Optional[str] = ..., lossless: bool = ..., reproducible: bool = ..., source: _Optional[str] = ..., plan: _Optional[str] = ..., target: _Optional[str] = ..., verification: _Optional[str] = ..., needs_draft_probs: bool = ..., parameters: _Optional[_Iterable[_Union[ParameterDescription, _Mapping]]] = ..., allowed: bool = ...) -> None: ...

class ParameterDescription(_message.Message):
    __slots__ = ("name", "type", "range", "default", "help")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    HELP_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    range: str
    default: str
    help: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., range: _Optional[str] = ..., default: _Optional[str] = ..., help: _Optional[str] = ...) -> None: ...

class RuleDescription(_message.Message):
    __slots__ = ("name", "summary", "least_alpha", "most_alpha", "default_alpha")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    LEAST_ALPHA_FIELD_NUMBER: _ClassVar[int]
    MOST_ALPHA_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_ALPHA_FIELD_NUMBER: _ClassVar[int]
    name: str
    summary: str
    least_alpha: float
    most_alpha: float
    default_alpha: float
    def __init__(self, name: _Optional[str] = ..., summary: _Optional[str] = ..., least_alpha: _Optional[float] = ..., most_alpha: _Optional[float] = ..., default_alpha: _Optional[float] = ...) -> None: ...
