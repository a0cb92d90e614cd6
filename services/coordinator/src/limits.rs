//! The limits that are built into a coordinator and have no setting; `docs/reference/limits.md` lists all limits.

pub use speculation::methods::names::DRAFT_MOST as MAX_DRAFT_LEN;

pub use crate::driver::{ANSWER_BUFFER, ANSWER_BUFFER_BYTES};
pub use crate::front::http::{MAX_FIELDS, MAX_PARTS, MOST_OUTPUTS};
pub use crate::front::{MAX_LONG_BYTES, MAX_REQUEST_BYTES, MAX_SHORT_BYTES, MAX_SHORT_TEXT};
pub use crate::peer::pool::{MAX_TEMPLATE_BYTES, MAX_TOKENIZER_BYTES};
pub use crate::peer::{MAX_AHEAD_BYTES, PARTS_AHEAD};
pub use crate::request::limits::{
    MAX_BYTES_PER_TOKEN, MAX_NAME_BYTES, MAX_RENDERED_BYTES, MAX_STOP_BYTES, MAX_TOKENIZED,
};
pub use text::PIECE_FACTOR;
