//! Tool calls and reasoning: how families of models write them, what templates are told of tools, and how an output is read.
//!
//! A model calls a tool by writing text, in the form that its family learned. Here a form is one entry of a table, its reader
//! and its grammar: the reader takes committed text token by token and gives out calls as they come; the grammar says what a
//! call may be, from the mark on that begins it. Nothing here knows of drafts, so what is read does not depend on them.
//!
//! | module | what it holds |
//! |---|---|
//! | `form` | the forms, and the signs by which a chat template shows its own |
//! | `tools` | the tools of a request, checked |
//! | `reader` | an output as it comes: content, reasoning, calls |
//! | `lark` | the grammar of an output with calls |
//! | `instructions` | what models are told whose templates know no tools |

mod form;
mod instructions;
mod lark;
mod reader;
mod tools;

pub use form::{CallForm, FORMS, GENERIC, ReasoningMarks};
pub use instructions::{instructed, instructions};
pub use lark::CallGrammar;
pub use reader::{OutputPiece, OutputReader, OutputReading};
pub use tools::{CalledTool, Tools, WhetherToCall};
