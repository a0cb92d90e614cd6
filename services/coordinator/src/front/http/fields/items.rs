//! Lists and maps of bounded length, counted while they are read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A list of at most `MOST` items.
#[derive(Debug)]
pub(in crate::front::http) struct Items<T, const MOST: usize>(pub(in crate::front::http) Vec<T>);

/// An object of at most `MOST` fields, in order.
#[derive(Debug)]
pub(in crate::front::http) struct Pairs<T, const MOST: usize>(
    pub(in crate::front::http) Vec<(String, T)>,
);

/// A text, or a list of at most `MOST` items, which are still to be read.
#[derive(Debug)]
pub(in crate::front::http) enum TextOr<'a, const MOST: usize> {
    Text(String),
    List(Vec<&'a RawValue>),
}

/// Reads a list; one that is too long is counted to its end, so that the error tells its length.
fn list<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
    mut list: A,
    most: usize,
) -> Result<Vec<T>, A::Error> {
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

fn within<E: Error>(found: usize, most: usize, items: &str) -> Result<(), E> {
    if found <= most {
        return Ok(());
    }
    Err(E::custom(format!(
        "{found} {items}, expected at most {most}"
    )))
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Items<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T, const MOST: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Reader<T, MOST> {
            type Value = Items<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                list(items, MOST).map(Items)
            }
        }

        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Pairs<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T, const MOST: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Reader<T, MOST> {
            type Value = Pairs<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while pairs.len() < MOST {
                    match map.next_entry()? {
                        Some(pair) => pairs.push(pair),
                        None => return Ok(Pairs(pairs)),
                    }
                }
                let mut found = MOST;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    found += 1;
                }
                within(found, MOST, "entries").map(|()| Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Reader(PhantomData))
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for TextOr<'de, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<const MOST: usize>;

        impl<'de, const MOST: usize> Visitor<'de> for Reader<MOST> {
            type Value = TextOr<'de, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                list(items, MOST).map(TextOr::List)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_maps_are_counted_while_they_are_read() {
        let read = |json: &str| {
            let items = serde_json::from_str::<Items<u32, 3>>(json);
            items
                .map(|Items(items)| items)
                .map_err(|error| error.to_string())
        };
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
        let pairs = serde_json::from_str::<Pairs<u32, 2>>("{\"a\": 1, \"b\": 2}");
        assert_eq!(pairs.expect("two").0.len(), 2);
        let pairs = serde_json::from_str::<Pairs<u32, 1>>("{\"a\": 1, \"b\": []}");
        let refused = pairs.expect_err("two").to_string();
        assert!(
            refused.starts_with("2 entries, expected at most 1"),
            "{refused}"
        );
    }

    #[test]
    fn a_text_or_a_list_is_told_apart() {
        let read = serde_json::from_str::<TextOr<'_, 2>>;
        assert!(matches!(read("\"a\""), Ok(TextOr::Text(text)) if text == "a"));
        assert!(
            matches!(read("[1, {\"a\": []}]"), Ok(TextOr::List(items)) if items[1].get() == "{\"a\": []}")
        );
        let refused = read("3").expect_err("a number").to_string();
        assert!(refused.contains("expected a text or a list"), "{refused}");
        assert!(read("[1, 2, 3]").is_err());
    }
}
