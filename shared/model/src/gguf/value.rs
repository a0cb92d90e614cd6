//! Metadata of a GGUF file: typed values by name, as they stand there.

use std::collections::BTreeMap;

use super::GgufError;

/// A string: its length in eight bytes, and its text.
pub(super) const STRING: u32 = 8;
/// An array: the type of its items, their number, and the items.
pub(super) const ARRAY: u32 = 9;
/// Most items of an array that are read one by one: some times the tokens, or the merges, of any tokenizer.
pub(super) const MOST_ITEMS: usize = 1 << 21;
/// Most characters of a string in a message.
const SHOWN: usize = 80;

/// One item or an array of items of one type, in the bytes that they take in the file. A file may consist of arrays
/// that nobody asks for, of a byte an item: as values of their own they would take a hundred times its size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetadataValue {
    kind: u32,
    is_array: bool,
    /// Number of items.
    len: usize,
    bytes: Box<[u8]>,
}

/// An item of a value.
#[derive(Clone, Copy, Debug, PartialEq, strum::EnumTryAs)]
pub(super) enum MetadataItem<'a> {
    /// Wide enough for every type of whole numbers.
    Whole(i128),
    Real(f64),
    Bool(bool),
    String(&'a str),
}

impl MetadataValue {
    /// The item of type `kind` that is all of `bytes`.
    pub(super) fn one(kind: u32, bytes: &[u8]) -> Self {
        Self {
            is_array: false,
            ..Self::array(kind, 1, bytes)
        }
    }

    /// `len` items of type `kind`, which are all of `bytes`. What is no UTF-8 in strings is replaced: some
    /// tokens of some published files are none.
    pub(super) fn array(kind: u32, len: usize, bytes: &[u8]) -> Self {
        let is_text = |text: &[u8]| str::from_utf8(text).is_ok();
        let bytes = if kind != STRING || texts(bytes).all(is_text) {
            bytes.into()
        } else {
            replaced(bytes)
        };
        Self {
            kind,
            is_array: true,
            len,
            bytes,
        }
    }

    /// The items; none of an array of arrays, which no model has.
    pub(super) fn items(&self) -> Option<impl Iterator<Item = MetadataItem<'_>>> {
        let is_read = self.len == 0 || self.kind == STRING || width(self.kind).is_some();
        let width = width(self.kind).unwrap_or(1);
        let (numbers, strings): (&[u8], &[u8]) = match self.kind {
            STRING => (&[], &self.bytes),
            _ => (&self.bytes, &[]),
        };
        let numbers = numbers.chunks_exact(width);
        let numbers = numbers.filter_map(|bytes| number(self.kind, bytes));
        let strings =
            texts(strings).map(|text| MetadataItem::String(str::from_utf8(text).unwrap_or("")));
        is_read.then(|| numbers.chain(strings))
    }

    /// Returns the item, unless it is an array.
    fn item(&self) -> Option<MetadataItem<'_>> {
        self.items().filter(|_| !self.is_array)?.next()
    }

    /// A few words for messages.
    fn described(&self) -> String {
        match self.item() {
            None => format!("an array of {}", self.len),
            Some(MetadataItem::String(text)) => {
                let shown: String = text.chars().take(SHOWN).collect();
                format!("the string {shown:?}")
            }
            Some(MetadataItem::Whole(number)) => number.to_string(),
            Some(MetadataItem::Real(number)) => format!("{number:?}"),
            Some(MetadataItem::Bool(value)) => value.to_string(),
        }
    }
}

impl MetadataItem<'_> {
    fn whole(self) -> Option<u64> {
        u64::try_from(self.try_as_whole()?).ok()
    }
}

/// All metadata of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GgufMetadata(pub(crate) BTreeMap<String, MetadataValue>);

impl GgufMetadata {
    /// The value of `key` as `read` understands it, `None` without the key.
    fn read<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a MetadataValue) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| GgufError::Key {
            key: key.to_owned(),
            found: value.described(),
            expected,
        })
    }

    /// Whether the value of `key` is an array.
    pub(super) fn is_array(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| value.is_array)
    }

    /// The number of `key`; where it may differ from layer to layer, the number that all have.
    pub(crate) fn whole(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.read(key, "a whole number", |value| {
            let mut items = value.items()?;
            let first = items.next()?;
            let same = items.all(|item| item == first);
            same.then(|| first.whole()).flatten()
        })
    }

    pub(crate) fn real(&self, key: &str) -> Result<Option<f64>, GgufError> {
        self.read(key, "a number", |value| value.item()?.try_as_real())
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.read(key, "true or false", |value| value.item()?.try_as_bool())
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.read(key, "a string", |value| value.item()?.try_as_string())
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        self.array(key, "an array of strings", MetadataItem::try_as_string)
    }

    pub(crate) fn wholes(&self, key: &str) -> Result<Option<Vec<u64>>, GgufError> {
        self.array(key, "an array of whole numbers", MetadataItem::whole)
    }

    pub(crate) fn reals(&self, key: &str) -> Result<Option<Vec<f64>>, GgufError> {
        self.array(key, "an array of numbers", MetadataItem::try_as_real)
    }

    /// True or false for each layer.
    pub(crate) fn bools(&self, key: &str) -> Result<Option<Vec<bool>>, GgufError> {
        self.array(key, "an array of true and false", |item| match item {
            MetadataItem::Bool(value) => Some(value),
            other => other.whole().map(|number| number != 0),
        })
    }

    fn array<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(MetadataItem<'a>) -> Option<T>,
    ) -> Result<Option<Vec<T>>, GgufError> {
        let few = |value: &MetadataValue| (value.len <= MOST_ITEMS).then_some(());
        self.read(key, "an array of at most 2097152", few)?;
        self.read(key, expected, |value| {
            let items = value.items().filter(|_| value.is_array);
            items?.map(&read).collect()
        })
    }
}

/// Bytes of a number of type `kind`; none if it is no number.
pub(super) fn width(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// The number of type `kind` that `bytes` are; none if they are none.
pub(super) fn number(kind: u32, bytes: &[u8]) -> Option<MetadataItem<'static>> {
    fn exactly<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }
    Some(match kind {
        0 => MetadataItem::Whole(u8::from_le_bytes(exactly(bytes)?).into()),
        1 => MetadataItem::Whole(i8::from_le_bytes(exactly(bytes)?).into()),
        2 => MetadataItem::Whole(u16::from_le_bytes(exactly(bytes)?).into()),
        3 => MetadataItem::Whole(i16::from_le_bytes(exactly(bytes)?).into()),
        4 => MetadataItem::Whole(u32::from_le_bytes(exactly(bytes)?).into()),
        5 => MetadataItem::Whole(i32::from_le_bytes(exactly(bytes)?).into()),
        6 => MetadataItem::Real(f32::from_le_bytes(exactly(bytes)?).into()),
        7 => MetadataItem::Bool(exactly::<1>(bytes)? != [0]),
        10 => MetadataItem::Whole(u64::from_le_bytes(exactly(bytes)?).into()),
        11 => MetadataItem::Whole(i64::from_le_bytes(exactly(bytes)?).into()),
        12 => MetadataItem::Real(f64::from_le_bytes(exactly(bytes)?)),
        _ => return None,
    })
}

/// The texts of strings that stand one after the other.
fn texts(strings: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = strings;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (text, after) = after.split_at_checked(length)?;
        rest = after;
        Some(text)
    })
}

/// Strings with U+FFFD where they were no UTF-8.
fn replaced(strings: &[u8]) -> Box<[u8]> {
    let readable = || texts(strings).map(String::from_utf8_lossy);
    let size = readable().map(|text| size_of::<u64>() + text.len()).sum();
    let mut bytes = Vec::with_capacity(size);
    for text in readable() {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.into()
}
