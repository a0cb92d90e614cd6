//! The limits that are built into a coordinator and have no setting; `docs/reference/limits.md` lists all limits.

// Those of what peers send stand beside the code that keeps them.
pub use fleet::MAX_TEMPLATE_BYTES;
pub use speculation::methods::names::DRAFT_MOST as MAX_DRAFT_LEN;
pub use text::PIECE_FACTOR;
pub use wire::describe::MAX_TOKENIZER_BYTES;

pub use crate::peer::MAX_AHEAD_BYTES;

/// The largest request a client may send, in bytes; it is read before anyone is admitted.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Most fields of one JSON object of a request.
pub const MAX_FIELDS: usize = 128;

/// Most parts of the content of one turn of a conversation over HTTP.
pub const MAX_PARTS: usize = 1_024;

/// Most outputs of one request over HTTP, those of all its prompts together.
pub const MOST_OUTPUTS: u32 = 128;

/// Longest prediction, in bytes.
pub const MAX_PREDICTION_BYTES: usize = 128 << 10;

/// Longest stop string, in bytes.
pub const MAX_STOP_BYTES: usize = 256;

/// Longest name of a model, a method, a rule or a role, in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// Longest prompt that a chat template makes of a conversation, in bytes: several times what a client can send.
pub const MAX_RENDERED_BYTES: usize = 16 << 20;

/// More bytes than any token stands for on average.
pub const MAX_BYTES_PER_TOKEN: usize = 256;

/// Tokens that a call of `/tokenize` may come to and one of `/detokenize` may have, whatever the model's context.
pub const MAX_TOKENIZED: usize = 1 << 17;

/// Most bytes of memory for tokenising long texts, over all requests.
pub const MAX_LONG_BYTES: u64 = 128 << 20;

/// Most bytes of memory for tokenising all other texts, over all requests.
pub const MAX_SHORT_BYTES: u64 = 64 << 20;

/// Most bytes of memory that tokenising a short text takes; a longer one counts as long.
pub const MAX_SHORT_TEXT: u64 = 4 << 20;

/// Parts of an answer buffered for a slow client before its request is held up.
pub const ANSWER_BUFFER: usize = 16;

/// Bytes of them. A single part that is larger goes alone.
pub const ANSWER_BUFFER_BYTES: usize = 1 << 20;
