//! The values that a field can hold. Errors say in words what is expected, never by the name of a type.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::Result as JsonResult;
use serde_json::value::RawValue;

/// A type that a field can be read as.
pub(in crate::front::http) trait Readable<'a>: Sized {
    /// Reads the JSON of a field.
    ///
    /// # Errors
    /// Says in words what is expected.
    fn of_json(json: &'a str) -> JsonResult<Self>;
}

impl Readable<'_> for String {
    fn of_json(json: &str) -> JsonResult<Self> {
        serde_json::from_str(json)
    }
}

impl Readable<'_> for bool {
    fn of_json(json: &str) -> JsonResult<Self> {
        serde_json::from_str(json)
    }
}

impl<T: Integer> Readable<'_> for T {
    fn of_json(json: &str) -> JsonResult<Self> {
        serde_json::from_str(json).map(|Whole(number)| number)
    }
}

impl Readable<'_> for f64 {
    fn of_json(json: &str) -> JsonResult<Self> {
        match json.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => serde_json::from_str(json),
            _ => Err(wrong_type(json, "a number")),
        }
    }
}

impl Readable<'_> for f32 {
    fn of_json(json: &str) -> JsonResult<Self> {
        f64::of_json(json).map(|number| number as Self)
    }
}

/// Token ids.
impl Readable<'_> for Vec<u32> {
    fn of_json(json: &str) -> JsonResult<Self> {
        let ids = list(json, usize::MAX)?;
        Ok(ids.into_iter().map(|Whole(id)| id).collect())
    }
}

/// Returns the error of a value that is not what is `expected`.
fn wrong_type(json: &str, expected: &'static str) -> serde_json::Error {
    struct Expecting(&'static str);

    impl Visitor<'_> for Expecting {
        type Value = Infallible;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    let mut value = serde_json::Deserializer::from_str(json);
    match value.deserialize_any(Expecting(expected)) {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

/// A type of whole numbers, and its range.
pub(in crate::front::http) trait Integer: TryFrom<i128> {
    const LEAST: i128;
    const MOST: i128;
}

impl Integer for u32 {
    const LEAST: i128 = 0;
    const MOST: i128 = u32::MAX as i128;
}

impl Integer for i64 {
    const LEAST: i128 = i64::MIN as i128;
    const MOST: i128 = i64::MAX as i128;
}

/// The key of all noise, a number of 64 bits. Clients send signed and unsigned ones, and either way what an answer tells
/// can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::front::http) struct Seed(pub(in crate::front::http) u64);

impl TryFrom<i128> for Seed {
    type Error = std::num::TryFromIntError;

    fn try_from(number: i128) -> Result<Self, Self::Error> {
        let signed = i64::try_from(number).map(i64::cast_unsigned);
        signed.or_else(|_| u64::try_from(number)).map(Self)
    }
}

impl Integer for Seed {
    const LEAST: i128 = i64::MIN as i128;
    const MOST: i128 = u64::MAX as i128;
}

/// A greater float may stand for another whole number than the one that was written.
const MOST_EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// A whole number, which may be written as clients without integers do: `5.0`.
#[derive(Clone, Copy, Debug)]
struct Whole<T>(T);

struct WholeVisitor<T>(PhantomData<T>);

impl<'de, T: Integer> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor(PhantomData))
    }
}

impl<T: Integer> WholeVisitor<T> {
    fn within<E: Error>(&self, number: i128, found: Unexpected<'_>) -> Result<Whole<T>, E> {
        let read = T::try_from(number).map(Whole);
        read.map_err(|_| E::invalid_value(found, self))
    }
}

impl<T: Integer> Visitor<'_> for WholeVisitor<T> {
    type Value = Whole<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", T::LEAST, T::MOST)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole<T>, E> {
        self.within(number.into(), Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole<T>, E> {
        self.within(number.into(), Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole<T>, E> {
        let found = Unexpected::Float(number);
        if number.fract() != 0.0 || number.abs() > MOST_EXACT {
            return Err(E::invalid_value(found, &self));
        }
        self.within(number as i128, found)
    }
}

/// Reads a list of at most `most` items; one that is too long is counted to its end, so that the error tells its length.
pub(in crate::front::http) fn list<'a, T: Deserialize<'a>>(
    json: &'a str,
    most: usize,
) -> JsonResult<Vec<T>> {
    struct ListVisitor<T>(usize, PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let Self(most, _) = self;
            let mut items = Vec::new();
            while items.len() < most {
                match list.next_element()? {
                    Some(item) => items.push(item),
                    None => return Ok(items),
                }
            }
            let mut found = most;
            while list.next_element::<IgnoredAny>()?.is_some() {
                found += 1;
            }
            within(found, most, "items").map(|()| items)
        }
    }

    serde_json::Deserializer::from_str(json).deserialize_seq(ListVisitor(most, PhantomData))
}

/// Reads an object of at most `most` fields, in order; one that has more is counted to its end.
pub(in crate::front::http) fn object(
    json: &str,
    most: usize,
) -> JsonResult<Vec<(String, &RawValue)>> {
    struct ObjectVisitor(usize);

    impl<'de> Visitor<'de> for ObjectVisitor {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let Self(most) = self;
            let mut pairs = Vec::new();
            while pairs.len() < most {
                match map.next_entry()? {
                    Some(pair) => pairs.push(pair),
                    None => return Ok(pairs),
                }
            }
            let mut found = most;
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                found += 1;
            }
            within(found, most, "entries").map(|()| pairs)
        }
    }

    serde_json::Deserializer::from_str(json).deserialize_map(ObjectVisitor(most))
}

fn within<E: Error>(found: usize, most: usize, items: &str) -> Result<(), E> {
    if found <= most {
        return Ok(());
    }
    let problem = format!("{found} {items}, expected at most {most}");
    Err(E::custom(problem))
}

/// A text, or a list of items, which are still to be read.
#[derive(Debug)]
pub(in crate::front::http) enum TextOrList<'a> {
    Text(String),
    List(Vec<&'a RawValue>),
}

impl<'a> TextOrList<'a> {
    /// Reads a text, or a list of at most `most` items.
    ///
    /// # Errors
    /// If it is of another type, or longer.
    pub(in crate::front::http) fn of_json(json: &'a str, most: usize) -> JsonResult<Self> {
        match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str(json).map(Self::Text),
            Some(b'[') => list(json, most).map(Self::List),
            _ => Err(wrong_type(json, "a text or a list")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        for (json, expected) in [
            ("5", 5),
            ("5.0", 5),
            ("5e2", 500),
            ("4294967295.0", u32::MAX),
        ] {
            assert_eq!(u32::of_json(json).expect(json), expected);
        }
        for json in [
            "5.5",
            "-1",
            "-1.0",
            "4294967296",
            "1e300",
            "\"5\"",
            "[]",
            "true",
        ] {
            let refused = u32::of_json(json).expect_err(json).to_string();
            let expected = "expected a whole number from 0 to 4294967295";
            assert!(refused.contains(expected), "{json}: {refused}");
        }
    }

    #[test]
    fn seeds_are_all_numbers_of_64_bits_signed_or_not() {
        for seed in [0, 7, 1 << 63, u64::MAX - 4, u64::MAX] {
            let unsigned = Seed::of_json(&seed.to_string()).expect("unsigned");
            let signed = Seed::of_json(&seed.cast_signed().to_string()).expect("signed");
            assert_eq!((unsigned, signed), (Seed(seed), Seed(seed)));
        }
        for json in ["18446744073709551616", "-9223372036854775809", "0.5"] {
            let refused = Seed::of_json(json).expect_err(json).to_string();
            assert!(refused.contains("to 18446744073709551615"), "{refused}");
        }
    }

    #[test]
    fn a_number_is_written_with_a_fraction_or_without() {
        for (json, expected) in [("5", 5.0), ("-5", -5.0), ("0.5", 0.5), ("5e2", 500.0)] {
            assert_eq!(f64::of_json(json).expect(json), expected);
        }
        for json in ["\"5\"", "[5]", "{}", "true", "null"] {
            let refused = f64::of_json(json).expect_err(json).to_string();
            assert!(refused.contains("expected a number"), "{json}: {refused}");
        }
    }

    #[test]
    fn lists_and_objects_are_counted_while_they_are_read() {
        let read = |json| list::<u32>(json, 3).map_err(|error| error.to_string());
        assert_eq!(read("[1, 2, 3]"), Ok(vec![1, 2, 3]));
        let refused = read("[1, 2, 3, {}, []]").expect_err("five");
        assert!(
            refused.starts_with("5 items, expected at most 3"),
            "{refused}"
        );
        assert!(
            read("\"x\"")
                .expect_err("a text")
                .contains("expected a list")
        );
        let pairs = object("{\"a\": 1, \"b\": 2}", 2);
        assert_eq!(pairs.expect("two").len(), 2);
        let refused = object("{\"a\": 1, \"b\": []}", 1).expect_err("two");
        let refused = refused.to_string();
        assert!(
            refused.starts_with("2 entries, expected at most 1"),
            "{refused}"
        );
    }

    #[test]
    fn a_text_or_a_list_is_told_apart() {
        let read = |json| TextOrList::of_json(json, 2);
        assert!(matches!(read("\"a\""), Ok(TextOrList::Text(text)) if text == "a"));
        assert!(
            matches!(read("[1, {\"a\": []}]"), Ok(TextOrList::List(items)) if items[1].get() == "{\"a\": []}")
        );
        let refused = read("3").expect_err("a number").to_string();
        assert!(refused.contains("expected a text or a list"), "{refused}");
        assert!(read("[1, 2, 3]").is_err());
    }
}
