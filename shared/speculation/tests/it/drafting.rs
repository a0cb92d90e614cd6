//! Draft lengths and draft trees, against recorded vectors and against the target alone.

mod stopping;
mod walks;
