//! The one registry of methods. Command line, API and documents read it; nothing else names one.
//!
//! A request picks a point on independent axes: which plan the session follows, which distribution it aims at, who
//! drafts, how much and in which shape, how a draft block is verified, what the verifier is told of the draft
//! distribution, and who decides. A [`Method`] is a named preset over them ([`METHODS`]); what a [`MethodSpec`]
//! sets replaces the preset. [`Choice::resolve`] turns the two into what is carried out, or
//! says which field does not fit and why. Whether the output is lossless or reproducible is computed from the axes,
//! so that it is right for every combination.
//!
//! | module | what it holds |
//! |---|---|
//! | `registry` | the methods |
//! | [`table`], `setting`, `values` | every setting: its name, range, default and one line |
//! | `spec` | what a request chooses: a method and settings by name |
//! | `resolve`, `parameters`, `axes`, `proposals` | from a [`MethodSpec`] to a [`Choice`] |
//! | `compatibility` | which options go together |
//! | `choice` | what a choice means for drafter, verifier and session |
//! | [`names`](mod@names) | names, values and forms of the axes, for command line and wire |

mod axes;
mod choice;
mod compatibility;
pub mod names;
mod parameters;
mod proposals;
mod registry;
mod resolve;
mod setting;
mod spec;
pub mod table;
mod values;

pub use axes::check_length;
pub use choice::Choice;
pub use compatibility::Options;
pub use names::{PlanKind, TargetKind};
pub use proposals::SPARSE_TOP;
pub use registry::{METHODS, Method, find, names};
pub use resolve::Setup;
pub use setting::{AxisValue, Setting, SettingKind};
pub use spec::MethodSpec;
pub use table::{OF_DRAFTING, SETTINGS};
pub use values::{EffectiveSetting, Range, SettingValue};

use crate::bad_value::BadValue;
