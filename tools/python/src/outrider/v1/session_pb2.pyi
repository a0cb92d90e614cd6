from outrider.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StopCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STOP_CAUSE_UNSPECIFIED: _ClassVar[StopCause]
    STOP_CAUSE_LENGTH: _ClassVar[StopCause]
    STOP_CAUSE_END_TOKEN: _ClassVar[StopCause]
    STOP_CAUSE_POLICY: _ClassVar[StopCause]
    STOP_CAUSE_CONTEXT: _ClassVar[StopCause]

class LastToken(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAST_TOKEN_UNSPECIFIED: _ClassVar[LastToken]
    LAST_TOKEN_RECOVERED: _ClassVar[LastToken]
    LAST_TOKEN_BONUS: _ClassVar[LastToken]
    LAST_TOKEN_ACCEPTED_END: _ClassVar[LastToken]
STOP_CAUSE_UNSPECIFIED: StopCause
STOP_CAUSE_LENGTH: StopCause
STOP_CAUSE_END_TOKEN: StopCause
STOP_CAUSE_POLICY: StopCause
STOP_CAUSE_CONTEXT: StopCause
LAST_TOKEN_UNSPECIFIED: LastToken
LAST_TOKEN_RECOVERED: LastToken
LAST_TOKEN_BONUS: LastToken
LAST_TOKEN_ACCEPTED_END: LastToken

class SessionRequest(_message.Message):
    __slots__ = ("open", "round", "grant", "close", "append", "commit")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    open: Open
    round: RoundRequest
    grant: Grant
    close: Close
    append: Append
    commit: Commit
    def __init__(self, open: _Optional[_Union[Open, _Mapping]] = ..., round: _Optional[_Union[RoundRequest, _Mapping]] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ..., close: _Optional[_Union[Close, _Mapping]] = ..., append: _Optional[_Union[Append, _Mapping]] = ..., commit: _Optional[_Union[Commit, _Mapping]] = ...) -> None: ...

class SessionReply(_message.Message):
    __slots__ = ("opened", "need_from", "progress", "answer", "draining", "closed")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    NEED_FROM_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    need_from: NeedFrom
    progress: Progress
    answer: RoundAnswer
    draining: Draining
    closed: Closed
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., need_from: _Optional[_Union[NeedFrom, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., answer: _Optional[_Union[RoundAnswer, _Mapping]] = ..., draining: _Optional[_Union[Draining, _Mapping]] = ..., closed: _Optional[_Union[Closed, _Mapping]] = ...) -> None: ...

class RoundRequest(_message.Message):
    __slots__ = ("header", "draft", "verify", "decode", "score", "ahead")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    DECODE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    header: RoundHeader
    draft: DraftRound
    verify: VerifyRound
    decode: DecodeRound
    score: ScoreRound
    ahead: AheadRound
    def __init__(self, header: _Optional[_Union[RoundHeader, _Mapping]] = ..., draft: _Optional[_Union[DraftRound, _Mapping]] = ..., verify: _Optional[_Union[VerifyRound, _Mapping]] = ..., decode: _Optional[_Union[DecodeRound, _Mapping]] = ..., score: _Optional[_Union[ScoreRound, _Mapping]] = ..., ahead: _Optional[_Union[AheadRound, _Mapping]] = ...) -> None: ...

class RoundAnswer(_message.Message):
    __slots__ = ("header", "block", "verdict", "slice", "decoded", "scored", "proposed")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SLICE_FIELD_NUMBER: _ClassVar[int]
    DECODED_FIELD_NUMBER: _ClassVar[int]
    SCORED_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    block: DraftBlock
    verdict: Verdict
    slice: Slice
    decoded: Decoded
    scored: Scored
    proposed: Append
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., block: _Optional[_Union[DraftBlock, _Mapping]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., slice: _Optional[_Union[Slice, _Mapping]] = ..., decoded: _Optional[_Union[Decoded, _Mapping]] = ..., scored: _Optional[_Union[Scored, _Mapping]] = ..., proposed: _Optional[_Union[Append, _Mapping]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("session_id", "epoch", "model", "prompt_token_ids", "sampling", "seed", "choice", "end_token_ids", "ignore_eos", "decoder_start_token_id", "vocab_size", "lease_ms", "verification", "proposal_form", "proposal_top", "accept_at", "target", "top_logprobs", "logprobs", "want_hidden", "requires", "vocab_fingerprint", "confidences", "unscaled", "draft_logprobs", "regenerates", "rollback", "entropies", "tenant", "numerics")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    END_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_EOS_FIELD_NUMBER: _ClassVar[int]
    DECODER_START_TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FORM_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_TOP_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_AT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    WANT_HIDDEN_FIELD_NUMBER: _ClassVar[int]
    REQUIRES_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCES_FIELD_NUMBER: _ClassVar[int]
    UNSCALED_FIELD_NUMBER: _ClassVar[int]
    DRAFT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    REGENERATES_FIELD_NUMBER: _ClassVar[int]
    ROLLBACK_FIELD_NUMBER: _ClassVar[int]
    ENTROPIES_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_FIELD_NUMBER: _ClassVar[int]
    session_id: bytes
    epoch: int
    model: str
    prompt_token_ids: _containers.RepeatedScalarFieldContainer[int]
    sampling: _common_pb2.SamplingParams
    seed: int
    choice: int
    end_token_ids: _containers.RepeatedScalarFieldContainer[int]
    ignore_eos: bool
    decoder_start_token_id: int
    vocab_size: int
    lease_ms: int
    verification: _common_pb2.Verification
    proposal_form: _common_pb2.ProposalForm
    proposal_top: int
    accept_at: _common_pb2.AcceptAt
    target: _common_pb2.TargetDistribution
    top_logprobs: int
    logprobs: bool
    want_hidden: bool
    requires: _containers.RepeatedScalarFieldContainer[str]
    vocab_fingerprint: bytes
    confidences: bool
    unscaled: bool
    draft_logprobs: bool
    regenerates: bool
    rollback: float
    entropies: bool
    tenant: str
    numerics: str
    def __init__(self, session_id: _Optional[bytes] = ..., epoch: _Optional[int] = ..., model: _Optional[str] = ..., prompt_token_ids: _Optional[_Iterable[int]] = ..., sampling: _Optional[_Union[_common_pb2.SamplingParams, _Mapping]] = ..., seed: _Optional[int] = ..., choice: _Optional[int] = ..., end_token_ids: _Optional[_Iterable[int]] = ..., ignore_eos: bool = ..., decoder_start_token_id: _Optional[int] = ..., vocab_size: _Optional[int] = ..., lease_ms: _Optional[int] = ..., verification: _Optional[_Union[_common_pb2.Verification, str]] = ..., proposal_form: _Optional[_Union[_common_pb2.ProposalForm, str]] = ..., proposal_top: _Optional[int] = ..., accept_at: _Optional[_Union[_common_pb2.AcceptAt, str]] = ..., target: _Optional[_Union[_common_pb2.TargetDistribution, _Mapping]] = ..., top_logprobs: _Optional[int] = ..., logprobs: bool = ..., want_hidden: bool = ..., requires: _Optional[_Iterable[str]] = ..., vocab_fingerprint: _Optional[bytes] = ..., confidences: bool = ..., unscaled: bool = ..., draft_logprobs: bool = ..., regenerates: bool = ..., rollback: _Optional[float] = ..., entropies: bool = ..., tenant: _Optional[str] = ..., numerics: _Optional[str] = ...) -> None: ...

class RoundHeader(_message.Message):
    __slots__ = ("round", "epoch", "timeout_ms", "from_len", "committed", "digest", "trace_context")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    FROM_LEN_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    TRACE_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    round: int
    epoch: int
    timeout_ms: int
    from_len: int
    committed: _containers.RepeatedScalarFieldContainer[int]
    digest: int
    trace_context: bytes
    def __init__(self, round: _Optional[int] = ..., epoch: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., from_len: _Optional[int] = ..., committed: _Optional[_Iterable[int]] = ..., digest: _Optional[int] = ..., trace_context: _Optional[bytes] = ...) -> None: ...

class ReplyHeader(_message.Message):
    __slots__ = ("round", "epoch", "base_len", "digest", "replayed")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BASE_LEN_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    round: int
    epoch: int
    base_len: int
    digest: int
    replayed: bool
    def __init__(self, round: _Optional[int] = ..., epoch: _Optional[int] = ..., base_len: _Optional[int] = ..., digest: _Optional[int] = ..., replayed: bool = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("epoch", "held_len", "lease_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HELD_LEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    held_len: int
    lease_ms: int
    def __init__(self, epoch: _Optional[int] = ..., held_len: _Optional[int] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class NeedFrom(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., **kwargs) -> None: ...

class Progress(_message.Message):
    __slots__ = ("header", "done", "total")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    done: int
    total: int
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class Draining(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Close(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Closed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Grant(_message.Message):
    __slots__ = ("until",)
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    until: int
    def __init__(self, until: _Optional[int] = ...) -> None: ...

class AheadRound(_message.Message):
    __slots__ = ("horizon", "nodes")
    HORIZON_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    horizon: int
    nodes: int
    def __init__(self, horizon: _Optional[int] = ..., nodes: _Optional[int] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ("token_ids", "credit", "price")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    credit: int
    price: float
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., credit: _Optional[int] = ..., price: _Optional[float] = ..., **kwargs) -> None: ...

class Append(_message.Message):
    __slots__ = ("after", "roots", "token_ids", "parents", "survivals", "sources")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    SURVIVALS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    after: int
    roots: _containers.RepeatedScalarFieldContainer[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    parents: _containers.RepeatedScalarFieldContainer[int]
    survivals: bytes
    sources: bytes
    def __init__(self, after: _Optional[int] = ..., roots: _Optional[_Iterable[int]] = ..., token_ids: _Optional[_Iterable[int]] = ..., parents: _Optional[_Iterable[int]] = ..., survivals: _Optional[bytes] = ..., sources: _Optional[bytes] = ...) -> None: ...

class DraftRound(_message.Message):
    __slots__ = ("max_tokens", "bonus_q", "drafting", "draft_length", "tree", "tokens_per_block", "cascade")
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BONUS_Q_FIELD_NUMBER: _ClassVar[int]
    DRAFTING_FIELD_NUMBER: _ClassVar[int]
    DRAFT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_BLOCK_FIELD_NUMBER: _ClassVar[int]
    CASCADE_FIELD_NUMBER: _ClassVar[int]
    max_tokens: int
    bonus_q: bool
    drafting: _common_pb2.Drafting
    draft_length: DraftLength
    tree: TreeShape
    tokens_per_block: int
    cascade: CascadeSettings
    def __init__(self, max_tokens: _Optional[int] = ..., bonus_q: bool = ..., drafting: _Optional[_Union[_common_pb2.Drafting, str]] = ..., draft_length: _Optional[_Union[DraftLength, _Mapping]] = ..., tree: _Optional[_Union[TreeShape, _Mapping]] = ..., tokens_per_block: _Optional[int] = ..., cascade: _Optional[_Union[CascadeSettings, _Mapping]] = ...) -> None: ...

class CascadeSettings(_message.Message):
    __slots__ = ("k", "lenience", "max_gram_tokens")
    K_FIELD_NUMBER: _ClassVar[int]
    LENIENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_GRAM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    k: _containers.RepeatedCompositeFieldContainer[CascadeRow]
    lenience: float
    max_gram_tokens: int
    def __init__(self, k: _Optional[_Iterable[_Union[CascadeRow, _Mapping]]] = ..., lenience: _Optional[float] = ..., max_gram_tokens: _Optional[int] = ...) -> None: ...

class CascadeRow(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, tokens: _Optional[_Iterable[int]] = ...) -> None: ...

class DraftLength(_message.Message):
    __slots__ = ("fixed", "confidence", "learned", "entropy", "named")
    FIXED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_FIELD_NUMBER: _ClassVar[int]
    NAMED_FIELD_NUMBER: _ClassVar[int]
    fixed: int
    confidence: float
    learned: LearnedStop
    entropy: float
    named: NamedStop
    def __init__(self, fixed: _Optional[int] = ..., confidence: _Optional[float] = ..., learned: _Optional[_Union[LearnedStop, _Mapping]] = ..., entropy: _Optional[float] = ..., named: _Optional[_Union[NamedStop, _Mapping]] = ...) -> None: ...

class LearnedStop(_message.Message):
    __slots__ = ("threshold", "min_tokens")
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    threshold: float
    min_tokens: int
    def __init__(self, threshold: _Optional[float] = ..., min_tokens: _Optional[int] = ...) -> None: ...

class NamedStop(_message.Message):
    __slots__ = ("name", "threshold", "min_tokens")
    NAME_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    name: str
    threshold: float
    min_tokens: int
    def __init__(self, name: _Optional[str] = ..., threshold: _Optional[float] = ..., min_tokens: _Optional[int] = ...) -> None: ...

class TreeShape(_message.Message):
    __slots__ = ("comb", "alternates")
    COMB_FIELD_NUMBER: _ClassVar[int]
    ALTERNATES_FIELD_NUMBER: _ClassVar[int]
    comb: int
    alternates: int
    def __init__(self, comb: _Optional[int] = ..., alternates: _Optional[int] = ...) -> None: ...

class DraftBlock(_message.Message):
    __slots__ = ("offset", "tree", "proposals", "bonus", "last", "stop_cause", "timing", "forwards")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    PROPOSALS_FIELD_NUMBER: _ClassVar[int]
    BONUS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    STOP_CAUSE_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    FORWARDS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    tree: _common_pb2.TokenTree
    proposals: _containers.RepeatedCompositeFieldContainer[_common_pb2.Proposal]
    bonus: _common_pb2.Proposal
    last: bool
    stop_cause: StopCause
    timing: _common_pb2.Timing
    forwards: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, offset: _Optional[int] = ..., tree: _Optional[_Union[_common_pb2.TokenTree, _Mapping]] = ..., proposals: _Optional[_Iterable[_Union[_common_pb2.Proposal, _Mapping]]] = ..., bonus: _Optional[_Union[_common_pb2.Proposal, _Mapping]] = ..., last: bool = ..., stop_cause: _Optional[_Union[StopCause, str]] = ..., timing: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ..., forwards: _Optional[_Iterable[int]] = ...) -> None: ...

class VerifyRound(_message.Message):
    __slots__ = ("drafts", "proposals", "bonus_q", "layers", "slices", "horizon", "stopped")
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    PROPOSALS_FIELD_NUMBER: _ClassVar[int]
    BONUS_Q_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    HORIZON_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    drafts: _common_pb2.TokenTree
    proposals: _containers.RepeatedCompositeFieldContainer[_common_pb2.Proposal]
    bonus_q: _common_pb2.Proposal
    layers: _containers.RepeatedCompositeFieldContainer[ResidualLayer]
    slices: SliceRequest
    horizon: int
    stopped: bool
    def __init__(self, drafts: _Optional[_Union[_common_pb2.TokenTree, _Mapping]] = ..., proposals: _Optional[_Iterable[_Union[_common_pb2.Proposal, _Mapping]]] = ..., bonus_q: _Optional[_Union[_common_pb2.Proposal, _Mapping]] = ..., layers: _Optional[_Iterable[_Union[ResidualLayer, _Mapping]]] = ..., slices: _Optional[_Union[SliceRequest, _Mapping]] = ..., horizon: _Optional[int] = ..., stopped: bool = ...) -> None: ...

class ResidualLayer(_message.Message):
    __slots__ = ("log_rho", "remaining")
    LOG_RHO_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    log_rho: float
    remaining: int
    def __init__(self, log_rho: _Optional[float] = ..., remaining: _Optional[int] = ...) -> None: ...

class SliceRequest(_message.Message):
    __slots__ = ("top", "unscaled", "confidences")
    TOP_FIELD_NUMBER: _ClassVar[int]
    UNSCALED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCES_FIELD_NUMBER: _ClassVar[int]
    top: int
    unscaled: bool
    confidences: bool
    def __init__(self, top: _Optional[int] = ..., unscaled: bool = ..., confidences: bool = ...) -> None: ...

class DecodeRound(_message.Message):
    __slots__ = ("max_tokens", "until", "drafts", "timing_every")
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    TIMING_EVERY_FIELD_NUMBER: _ClassVar[int]
    max_tokens: int
    until: int
    drafts: bool
    timing_every: int
    def __init__(self, max_tokens: _Optional[int] = ..., until: _Optional[int] = ..., drafts: bool = ..., timing_every: _Optional[int] = ...) -> None: ...

class ScoreRound(_message.Message):
    __slots__ = ("until",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    until: int
    def __init__(self, until: _Optional[int] = ..., **kwargs) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("emitted", "path", "accepted_len", "last", "logprobs", "layers", "deferral", "timing")
    EMITTED_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LEN_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    DEFERRAL_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    emitted: _containers.RepeatedScalarFieldContainer[int]
    path: _containers.RepeatedScalarFieldContainer[int]
    accepted_len: int
    last: LastToken
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprobs]
    layers: _containers.RepeatedCompositeFieldContainer[ResidualLayer]
    deferral: _containers.RepeatedScalarFieldContainer[float]
    timing: _common_pb2.Timing
    def __init__(self, emitted: _Optional[_Iterable[int]] = ..., path: _Optional[_Iterable[int]] = ..., accepted_len: _Optional[int] = ..., last: _Optional[_Union[LastToken, str]] = ..., logprobs: _Optional[_Iterable[_Union[TokenLogprobs, _Mapping]]] = ..., layers: _Optional[_Iterable[_Union[ResidualLayer, _Mapping]]] = ..., deferral: _Optional[_Iterable[float]] = ..., timing: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ...) -> None: ...

class TokenLogprobs(_message.Message):
    __slots__ = ("logprob", "top", "log_normaliser")
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    LOG_NORMALISER_FIELD_NUMBER: _ClassVar[int]
    logprob: float
    top: _containers.RepeatedCompositeFieldContainer[TopLogprob]
    log_normaliser: float
    def __init__(self, logprob: _Optional[float] = ..., top: _Optional[_Iterable[_Union[TopLogprob, _Mapping]]] = ..., log_normaliser: _Optional[float] = ...) -> None: ...

class TopLogprob(_message.Message):
    __slots__ = ("token_id", "logprob")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    token_id: int
    logprob: float
    def __init__(self, token_id: _Optional[int] = ..., logprob: _Optional[float] = ...) -> None: ...

class Slice(_message.Message):
    __slots__ = ("node", "support", "dense", "max_probability", "entropy", "unscaled", "last", "timing")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_FIELD_NUMBER: _ClassVar[int]
    DENSE_FIELD_NUMBER: _ClassVar[int]
    MAX_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_FIELD_NUMBER: _ClassVar[int]
    UNSCALED_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    node: int
    support: SupportDistribution
    dense: _common_pb2.DenseDistribution
    max_probability: float
    entropy: float
    unscaled: _common_pb2.DenseDistribution
    last: bool
    timing: _common_pb2.Timing
    def __init__(self, node: _Optional[int] = ..., support: _Optional[_Union[SupportDistribution, _Mapping]] = ..., dense: _Optional[_Union[_common_pb2.DenseDistribution, _Mapping]] = ..., max_probability: _Optional[float] = ..., entropy: _Optional[float] = ..., unscaled: _Optional[_Union[_common_pb2.DenseDistribution, _Mapping]] = ..., last: bool = ..., timing: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ...) -> None: ...

class SupportDistribution(_message.Message):
    __slots__ = ("token_ids", "probabilities")
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    probabilities: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., probabilities: _Optional[_Iterable[float]] = ...) -> None: ...

class Decoded(_message.Message):
    __slots__ = ("token_ids", "logprobs", "last", "timing", "drafts")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprobs]
    last: bool
    timing: _common_pb2.Timing
    drafts: ForwardDrafts
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[_Union[TokenLogprobs, _Mapping]]] = ..., last: bool = ..., timing: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ..., drafts: _Optional[_Union[ForwardDrafts, _Mapping]] = ..., **kwargs) -> None: ...

class ForwardDrafts(_message.Message):
    __slots__ = ("offered", "scored", "accepted", "last", "price", "room", "stale", "without_room", "malformed")
    OFFERED_FIELD_NUMBER: _ClassVar[int]
    SCORED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_ROOM_FIELD_NUMBER: _ClassVar[int]
    MALFORMED_FIELD_NUMBER: _ClassVar[int]
    offered: int
    scored: int
    accepted: int
    last: LastToken
    price: float
    room: int
    stale: int
    without_room: int
    malformed: int
    def __init__(self, offered: _Optional[int] = ..., scored: _Optional[int] = ..., accepted: _Optional[int] = ..., last: _Optional[_Union[LastToken, str]] = ..., price: _Optional[float] = ..., room: _Optional[int] = ..., stale: _Optional[int] = ..., without_room: _Optional[int] = ..., malformed: _Optional[int] = ...) -> None: ...

class Scored(_message.Message):
    __slots__ = ("logprobs", "last", "timing")
    FROM_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprobs]
    last: bool
    timing: _common_pb2.Timing
    def __init__(self, logprobs: _Optional[_Iterable[_Union[TokenLogprobs, _Mapping]]] = ..., last: bool = ..., timing: _Optional[_Union[_common_pb2.Timing, _Mapping]] = ..., **kwargs) -> None: ...
