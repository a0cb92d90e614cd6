//! Which methods take a stream of messages, as the descriptors of their services say.

use std::collections::BTreeSet;

/// Fields of `google.protobuf.FileDescriptorSet` and the messages within.
const FILE: u64 = 1;
const PACKAGE: u64 = 2;
const SERVICE: u64 = 6;
const NAME: u64 = 1;
const METHOD: u64 = 2;
const CLIENT_STREAMING: u64 = 5;

/// The paths of all methods of an encoded `FileDescriptorSet` whose requests are streams of messages. Of bytes that
/// are no such set, none.
pub(crate) fn client_streaming(descriptors: &[u8]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for file in Fields(descriptors).texts(FILE) {
        let package = Fields(file).text(PACKAGE);
        for service in Fields(file).texts(SERVICE) {
            let name = Fields(service).text(NAME);
            for method in Fields(service).texts(METHOD) {
                let is_streaming = Fields(method)
                    .any(|(number, value)| number == CLIENT_STREAMING && value == Value::Number(1));
                if is_streaming {
                    let method = Fields(method).text(NAME);
                    let dot = if package.is_empty() { "" } else { "." };
                    paths.insert(format!("/{package}{dot}{name}/{method}"));
                }
            }
        }
    }
    paths
}

#[derive(Debug, PartialEq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first that has no place in a descriptor.
#[derive(Clone)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn texts(self, wanted: u64) -> impl Iterator<Item = &'a [u8]> {
        self.filter_map(move |(number, value)| match value {
            Value::Bytes(bytes) if number == wanted => Some(bytes),
            _ => None,
        })
    }

    fn text(self, wanted: u64) -> String {
        let text = self.texts(wanted).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.number()?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_take_streams_are_found() {
        let health = tonic_health::pb::FILE_DESCRIPTOR_SET;
        assert!(
            client_streaming(health).is_empty(),
            "requests of one message"
        );
        let reflection = tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET;
        let expected = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert_eq!(client_streaming(reflection), [expected.to_owned()].into());
        for cut in 0..reflection.len() {
            client_streaming(&reflection[..cut]);
        }
    }
}
