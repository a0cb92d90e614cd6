//! Names of spans, events and attributes.
//!
//! `gen_ai.*`, `error.type` and `server.*` are those of the OpenTelemetry semantic conventions, release
//! 1.37.0, whose generative part is experimental: a later release is taken over here and nowhere else. What
//! they have no name for is called `outrider.*`.

/// The release the conventional names are taken from, as scopes tell it.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";

/// The span of a request, once its model is known `chat {model}`; also the name of the operation.
pub const CHAT: &str = "chat";
/// Checking a request and turning its prompt into tokens.
pub const TOKENIZE: &str = "tokenize";
/// A draft and the verdict on it; also the event of a round that has no span.
pub const ROUND: &str = "round";
/// Asking a drafter; at the drafter, answering.
pub const DRAFT: &str = "draft";
/// Asking a verifier about a block; at the verifier, answering.
pub const VERIFY: &str = "verify";
/// Letting the target decode alone.
pub const DECODE: &str = "decode";
/// Asking a verifier for the log probabilities of the prompt; at the verifier, answering.
pub const SCORE: &str = "score";
/// At a drafter: drafting ahead of what the target chooses.
pub const AHEAD: &str = "ahead";
/// Waiting for the engine.
pub const QUEUE: &str = "queue";
/// Forwards of a model.
pub const FORWARD: &str = "forward";
/// Forwards that also bring a session up to date: its prompt, or output it had not seen.
pub const PREFILL: &str = "prefill";
/// Deciding a block from the rows of its forward.
pub const ACCEPT: &str = "accept";
/// Telling the client the end.
pub const FLUSH: &str = "flush";

/// Event: a peer did not give what it was asked, and is asked again.
pub const RETRY: &str = "retry";
/// Event: the request goes on without a peer.
pub const FALLBACK: &str = "fallback";
/// Event: the session went to another replica.
pub const MIGRATION: &str = "migration";

/// What is done: [`CHAT`].
pub const OPERATION: &str = "gen_ai.operation.name";
/// Who serves: `outrider`.
pub const PROVIDER: &str = "gen_ai.provider.name";
/// Model asked for.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// Most output tokens.
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// Seed used.
pub const REQUEST_SEED: &str = "gen_ai.request.seed";
/// Temperature.
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
/// Tokens that a distribution is cut to.
pub const REQUEST_TOP_K: &str = "gen_ai.request.top_k";
/// Mass that a distribution is cut to.
pub const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
/// The request as the client is told it.
pub const RESPONSE_ID: &str = "gen_ai.response.id";
/// Why it ended, a list of one.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Tokens of the prompt.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens of the output.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// The prompt, where text is captured.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The output, where text is captured.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// gRPC code of a failure.
pub const ERROR_TYPE: &str = "error.type";
/// Which replica was asked: its IP address.
pub const SERVER_ADDRESS: &str = "server.address";
/// And its port.
pub const SERVER_PORT: &str = "server.port";

/// Method asked for.
pub const METHOD: &str = "outrider.method";
/// Method that made the output.
pub const EFFECTIVE_METHOD: &str = "outrider.effective_method";
/// Whether the output is what the method promises.
pub const EXACT: &str = "outrider.exact";
/// Rounds begun.
pub const ROUNDS: &str = "outrider.rounds";
/// Time to the first token, in seconds.
pub const FIRST_TOKEN: &str = "outrider.time_to_first_token";
/// What the request waited for when its client left.
pub const STAGE: &str = "outrider.stage";

/// Number of the round, from 0.
pub const INDEX: &str = "outrider.round.index";
/// Output tokens before the round.
pub const BASE_LEN: &str = "outrider.round.base_length";
/// Draft tokens of the round, all nodes of a tree.
pub const DRAFT_LEN: &str = "outrider.round.draft_length";
/// Draft tokens accepted.
pub const ACCEPTED_LEN: &str = "outrider.round.accepted_length";
/// Tokens that went to the client.
pub const EMITTED_LEN: &str = "outrider.round.emitted_length";
/// Output position of the draft token that was refused.
pub const REJECTED_POSITION: &str = "outrider.round.rejected_position";
/// Why the round has its length, with draft length `auto`: unknown, pays, tries, compares or rests.
pub const LENGTH_DECISION: &str = "outrider.round.length_decision";
/// Predicted throughput of the best length over that of the target alone; the time that others wait is in the cost of
/// both.
pub const PREDICTED_GAIN: &str = "outrider.round.predicted_gain";
/// Seconds that all other sequences together wait for one more row at the verifier.
pub const ROW_PRICE: &str = "outrider.round.row_price";
/// Seconds that all other sequences together wait until one more token is drafted.
pub const TOKEN_PRICE: &str = "outrider.round.token_price";
/// Bytes exchanged with the peers since the round before that gave tokens.
pub const WIRE_BYTES: &str = "outrider.round.wire_bytes";
/// Why a span that was made after the fact is there: `failed` or `last`.
pub const REASON: &str = "outrider.round.reason";
/// How often a peer was asked before in the round.
pub const ATTEMPT: &str = "outrider.attempt";
/// Which peer.
pub const PEER: &str = "outrider.peer";
/// What went wrong with it.
pub const FAILURE: &str = "outrider.failure";
/// Why the request went on without a peer.
pub const FALLBACK_REASON: &str = "outrider.fallback_reason";
/// Sessions moved so far.
pub const MIGRATIONS: &str = "outrider.migrations";

/// Sequences in the forward.
pub const BATCH: &str = "outrider.batch";
/// Tokens of the session that were forwarded.
pub const FORWARDED_TOKENS: &str = "outrider.forwarded_tokens";
/// Tokens decoded.
pub const DECODED_TOKENS: &str = "outrider.decoded_tokens";
/// Drafts that could have been scored while the target decoded.
pub const OFFERED_DRAFTS: &str = "outrider.offered_drafts";
/// Drafts of them that had a row.
pub const SCORED_DRAFTS: &str = "outrider.scored_drafts";
/// Drafts of these that were accepted.
pub const ACCEPTED_DRAFTS: &str = "outrider.accepted_drafts";
/// Drafts that fell off: stale, without room, or malformed.
pub const FALLEN_DRAFTS: &str = "outrider.fallen_drafts";
/// Whether the answer was kept from an earlier copy of the request.
pub const REPLAYED: &str = "outrider.replayed";
/// Where the times come from if not from a clock at the place: `peer_figures`.
pub const MEASURED_BY: &str = "outrider.measured_by";
