//! The types that a field can be read as. They describe in words what they expect; other types would put the name of a
//! Rust type into the error.

use serde::de::{Deserialize, IgnoredAny};
use serde_json::Result;
use serde_json::value::RawValue;

use super::items::{Items, Pairs, TextOr};
use super::numbers::{Real, Seed, Whole};

/// A type that a field can be read as.
pub(in crate::front::http) trait Readable<'a>: Sized {
    /// Reads the JSON of a field.
    ///
    /// # Errors
    /// Says in words what is expected.
    fn of_json(json: &'a str) -> Result<Self>;
}

/// Implements [`Readable`] for types that say themselves what they expect.
macro_rules! read_as_they_are {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {
        $(impl<'a, $($generics)*> Readable<'a> for $type {
            fn of_json(json: &'a str) -> Result<Self> {
                serde_json::from_str(json)
            }
        })*
    };
}

read_as_they_are! {
    [] String,
    [] bool,
    [const MOST: usize] TextOr<'a, MOST>,
    [const MOST: usize] Items<String, MOST>,
    [const MOST: usize] Items<&'a RawValue, MOST>,
    [const MOST: usize] Items<IgnoredAny, MOST>,
    [const MOST: usize] Pairs<Real, MOST>,
}

/// Reads JSON as `Read`, and makes it what a field holds.
fn converted<'a, Read: Deserialize<'a>, T>(json: &'a str, of: impl FnOnce(Read) -> T) -> Result<T> {
    serde_json::from_str(json).map(of)
}

impl Readable<'_> for u32 {
    fn of_json(json: &str) -> Result<Self> {
        converted(json, |Whole(number)| number)
    }
}

impl Readable<'_> for i64 {
    fn of_json(json: &str) -> Result<Self> {
        converted(json, |Whole(number)| number)
    }
}

impl Readable<'_> for Seed {
    fn of_json(json: &str) -> Result<Self> {
        converted(json, |Whole(number)| number)
    }
}

impl Readable<'_> for f32 {
    fn of_json(json: &str) -> Result<Self> {
        converted(json, |Real(number)| number as f32)
    }
}

impl Readable<'_> for f64 {
    fn of_json(json: &str) -> Result<Self> {
        converted(json, |Real(number)| number)
    }
}

/// Token ids.
impl Readable<'_> for Vec<u32> {
    fn of_json(json: &str) -> Result<Self> {
        converted(json, |Items(ids): Items<_, { usize::MAX }>| {
            ids.into_iter().map(|Whole(id)| id).collect()
        })
    }
}
