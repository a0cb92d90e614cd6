from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Verification(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERIFICATION_UNSPECIFIED: _ClassVar[Verification]
    VERIFICATION_COUPLED: _ClassVar[Verification]
    VERIFICATION_TOKEN: _ClassVar[Verification]
    VERIFICATION_BLOCK: _ClassVar[Verification]
    VERIFICATION_BLOCK_GREEDY: _ClassVar[Verification]
    VERIFICATION_BILD: _ClassVar[Verification]
    VERIFICATION_BILD_CODE: _ClassVar[Verification]

class ProposalForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROPOSAL_FORM_UNSPECIFIED: _ClassVar[ProposalForm]
    PROPOSAL_FORM_NONE: _ClassVar[ProposalForm]
    PROPOSAL_FORM_POINT: _ClassVar[ProposalForm]
    PROPOSAL_FORM_SPARSE: _ClassVar[ProposalForm]
    PROPOSAL_FORM_DENSE_F16: _ClassVar[ProposalForm]
    PROPOSAL_FORM_DENSE_F32: _ClassVar[ProposalForm]

class AcceptAt(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCEPT_AT_UNSPECIFIED: _ClassVar[AcceptAt]
    ACCEPT_AT_VERIFIER: _ClassVar[AcceptAt]
    ACCEPT_AT_COORDINATOR: _ClassVar[AcceptAt]

class Drafting(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DRAFTING_UNSPECIFIED: _ClassVar[Drafting]
    DRAFTING_MODEL: _ClassVar[Drafting]
    DRAFTING_MAX_GRAM: _ClassVar[Drafting]
    DRAFTING_CASCADE: _ClassVar[Drafting]
VERIFICATION_UNSPECIFIED: Verification
VERIFICATION_COUPLED: Verification
VERIFICATION_TOKEN: Verification
VERIFICATION_BLOCK: Verification
VERIFICATION_BLOCK_GREEDY: Verification
VERIFICATION_BILD: Verification
VERIFICATION_BILD_CODE: Verification
PROPOSAL_FORM_UNSPECIFIED: ProposalForm
PROPOSAL_FORM_NONE: ProposalForm
PROPOSAL_FORM_POINT: ProposalForm
PROPOSAL_FORM_SPARSE: ProposalForm
PROPOSAL_FORM_DENSE_F16: ProposalForm
PROPOSAL_FORM_DENSE_F32: ProposalForm
ACCEPT_AT_UNSPECIFIED: AcceptAt
ACCEPT_AT_VERIFIER: AcceptAt
ACCEPT_AT_COORDINATOR: AcceptAt
DRAFTING_UNSPECIFIED: Drafting
DRAFTING_MODEL: Drafting
DRAFTING_MAX_GRAM: Drafting
DRAFTING_CASCADE: Drafting

class SamplingParams(_message.Message):
    __slots__ = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias", "banned_token_ids", "allowed_token_ids", "min_tokens", "grammar")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    LOGIT_BIAS_FIELD_NUMBER: _ClassVar[int]
    BANNED_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: _containers.RepeatedCompositeFieldContainer[LogitBias]
    banned_token_ids: _containers.RepeatedScalarFieldContainer[int]
    allowed_token_ids: _containers.RepeatedScalarFieldContainer[int]
    min_tokens: int
    grammar: Grammar
    def __init__(self, temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., min_p: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., presence_penalty: _Optional[float] = ..., frequency_penalty: _Optional[float] = ..., logit_bias: _Optional[_Iterable[_Union[LogitBias, _Mapping]]] = ..., banned_token_ids: _Optional[_Iterable[int]] = ..., allowed_token_ids: _Optional[_Iterable[int]] = ..., min_tokens: _Optional[int] = ..., grammar: _Optional[_Union[Grammar, _Mapping]] = ...) -> None: ...

class Grammar(_message.Message):
    __slots__ = ("json_schema", "regex", "choice", "lark")
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    LARK_FIELD_NUMBER: _ClassVar[int]
    json_schema: str
    regex: str
    choice: _containers.RepeatedScalarFieldContainer[str]
    lark: str
    def __init__(self, json_schema: _Optional[str] = ..., regex: _Optional[str] = ..., choice: _Optional[_Iterable[str]] = ..., lark: _Optional[str] = ...) -> None: ...

class LogitBias(_message.Message):
    __slots__ = ("token_id", "bias")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    token_id: int
    bias: float
    def __init__(self, token_id: _Optional[int] = ..., bias: _Optional[float] = ...) -> None: ...

class TargetDistribution(_message.Message):
    __slots__ = ("kind", "rule", "alpha", "beta", "beta_tuned", "kl_budget")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[TargetDistribution.Kind]
        KIND_EXACT: _ClassVar[TargetDistribution.Kind]
        KIND_LOSSY: _ClassVar[TargetDistribution.Kind]
        KIND_DEFERRAL: _ClassVar[TargetDistribution.Kind]
    KIND_UNSPECIFIED: TargetDistribution.Kind
    KIND_EXACT: TargetDistribution.Kind
    KIND_LOSSY: TargetDistribution.Kind
    KIND_DEFERRAL: TargetDistribution.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    BETA_TUNED_FIELD_NUMBER: _ClassVar[int]
    KL_BUDGET_FIELD_NUMBER: _ClassVar[int]
    kind: TargetDistribution.Kind
    rule: str
    alpha: float
    beta: float
    beta_tuned: bool
    kl_budget: float
    def __init__(self, kind: _Optional[_Union[TargetDistribution.Kind, str]] = ..., rule: _Optional[str] = ..., alpha: _Optional[float] = ..., beta: _Optional[float] = ..., beta_tuned: bool = ..., kl_budget: _Optional[float] = ...) -> None: ...

class Proposal(_message.Message):
    __slots__ = ("point", "sparse", "dense", "max_probability", "entropy", "logprob", "unscaled")
    POINT_FIELD_NUMBER: _ClassVar[int]
    SPARSE_FIELD_NUMBER: _ClassVar[int]
    DENSE_FIELD_NUMBER: _ClassVar[int]
    MAX_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    UNSCALED_FIELD_NUMBER: _ClassVar[int]
    point: PointDistribution
    sparse: SparseDistribution
    dense: DenseDistribution
    max_probability: float
    entropy: float
    logprob: float
    unscaled: DenseDistribution
    def __init__(self, point: _Optional[_Union[PointDistribution, _Mapping]] = ..., sparse: _Optional[_Union[SparseDistribution, _Mapping]] = ..., dense: _Optional[_Union[DenseDistribution, _Mapping]] = ..., max_probability: _Optional[float] = ..., entropy: _Optional[float] = ..., logprob: _Optional[float] = ..., unscaled: _Optional[_Union[DenseDistribution, _Mapping]] = ...) -> None: ...

class PointDistribution(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SparseDistribution(_message.Message):
    __slots__ = ("token_ids", "weights", "unscaled")
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    UNSCALED_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    weights: bytes
    unscaled: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., weights: _Optional[bytes] = ..., unscaled: _Optional[_Iterable[float]] = ...) -> None: ...

class DenseDistribution(_message.Message):
    __slots__ = ("row", "format")
    class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FORMAT_UNSPECIFIED: _ClassVar[DenseDistribution.Format]
        FORMAT_F32: _ClassVar[DenseDistribution.Format]
        FORMAT_F16: _ClassVar[DenseDistribution.Format]
    FORMAT_UNSPECIFIED: DenseDistribution.Format
    FORMAT_F32: DenseDistribution.Format
    FORMAT_F16: DenseDistribution.Format
    ROW_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    row: bytes
    format: DenseDistribution.Format
    def __init__(self, row: _Optional[bytes] = ..., format: _Optional[_Union[DenseDistribution.Format, str]] = ...) -> None: ...

class TokenTree(_message.Message):
    __slots__ = ("token_ids", "parents")
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    parents: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., parents: _Optional[_Iterable[int]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PeerDescription(_message.Message):
    __slots__ = ("protocol_version", "model", "logits_size", "vocab_size", "vocab_fingerprint", "context_len", "numerics", "limits", "eos_token_ids", "decoder_start_token_id", "version", "verifications", "proposal_forms", "trees", "min_protocol_version", "features", "draftings", "heads", "cascade", "processors", "rows_vary", "rows_are_parts", "model_fingerprint", "text_fingerprint")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LOGITS_SIZE_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_LEN_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    EOS_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    DECODER_START_TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VERIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FORMS_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    MIN_PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    DRAFTINGS_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    CASCADE_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    ROWS_VARY_FIELD_NUMBER: _ClassVar[int]
    ROWS_ARE_PARTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    model: str
    logits_size: int
    vocab_size: int
    vocab_fingerprint: bytes
    context_len: int
    numerics: Numerics
    limits: PeerLimits
    eos_token_ids: _containers.RepeatedScalarFieldContainer[int]
    decoder_start_token_id: int
    version: str
    verifications: _containers.RepeatedScalarFieldContainer[Verification]
    proposal_forms: _containers.RepeatedScalarFieldContainer[ProposalForm]
    trees: bool
    min_protocol_version: int
    features: _containers.RepeatedScalarFieldContainer[str]
    draftings: _containers.RepeatedScalarFieldContainer[Drafting]
    heads: _containers.RepeatedCompositeFieldContainer[AcceptanceHead]
    cascade: DraftCascade
    processors: bytes
    rows_vary: bool
    rows_are_parts: bool
    model_fingerprint: str
    text_fingerprint: str
    def __init__(self, protocol_version: _Optional[int] = ..., model: _Optional[str] = ..., logits_size: _Optional[int] = ..., vocab_size: _Optional[int] = ..., vocab_fingerprint: _Optional[bytes] = ..., context_len: _Optional[int] = ..., numerics: _Optional[_Union[Numerics, _Mapping]] = ..., limits: _Optional[_Union[PeerLimits, _Mapping]] = ..., eos_token_ids: _Optional[_Iterable[int]] = ..., decoder_start_token_id: _Optional[int] = ..., version: _Optional[str] = ..., verifications: _Optional[_Iterable[_Union[Verification, str]]] = ..., proposal_forms: _Optional[_Iterable[_Union[ProposalForm, str]]] = ..., trees: bool = ..., min_protocol_version: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., draftings: _Optional[_Iterable[_Union[Drafting, str]]] = ..., heads: _Optional[_Iterable[_Union[AcceptanceHead, _Mapping]]] = ..., cascade: _Optional[_Union[DraftCascade, _Mapping]] = ..., processors: _Optional[bytes] = ..., rows_vary: bool = ..., rows_are_parts: bool = ..., model_fingerprint: _Optional[str] = ..., text_fingerprint: _Optional[str] = ...) -> None: ...

class AcceptanceHead(_message.Message):
    __slots__ = ("label", "depth")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    label: Verification
    depth: int
    def __init__(self, label: _Optional[_Union[Verification, str]] = ..., depth: _Optional[int] = ...) -> None: ...

class DraftCascade(_message.Message):
    __slots__ = ("models", "lenient")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    LENIENT_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedScalarFieldContainer[str]
    lenient: bool
    def __init__(self, models: _Optional[_Iterable[str]] = ..., lenient: bool = ...) -> None: ...

class Numerics(_message.Message):
    __slots__ = ("weights", "dtype", "kernels")
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    weights: str
    dtype: str
    kernels: str
    def __init__(self, weights: _Optional[str] = ..., dtype: _Optional[str] = ..., kernels: _Optional[str] = ...) -> None: ...

class PeerLimits(_message.Message):
    __slots__ = ("max_draft_tokens", "max_sessions", "max_message_bytes", "max_lease_ms")
    MAX_DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    max_draft_tokens: int
    max_sessions: int
    max_message_bytes: int
    max_lease_ms: int
    def __init__(self, max_draft_tokens: _Optional[int] = ..., max_sessions: _Optional[int] = ..., max_message_bytes: _Optional[int] = ..., max_lease_ms: _Optional[int] = ...) -> None: ...

class Timing(_message.Message):
    __slots__ = ("queue_us", "forward_us", "total_us", "batch", "accept_us", "forwarded_tokens", "row_ns", "sessions", "reused_tokens")
    QUEUE_US_FIELD_NUMBER: _ClassVar[int]
    FORWARD_US_FIELD_NUMBER: _ClassVar[int]
    TOTAL_US_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_US_FIELD_NUMBER: _ClassVar[int]
    FORWARDED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ROW_NS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    REUSED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    queue_us: int
    forward_us: int
    total_us: int
    batch: int
    accept_us: int
    forwarded_tokens: int
    row_ns: int
    sessions: int
    reused_tokens: int
    def __init__(self, queue_us: _Optional[int] = ..., forward_us: _Optional[int] = ..., total_us: _Optional[int] = ..., batch: _Optional[int] = ..., accept_us: _Optional[int] = ..., forwarded_tokens: _Optional[int] = ..., row_ns: _Optional[int] = ..., sessions: _Optional[int] = ..., reused_tokens: _Optional[int] = ...) -> None: ...
