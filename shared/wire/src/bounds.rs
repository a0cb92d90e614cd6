//! How large messages are: their bytes, and how many items the lists of a request may have, counted in its encoded form,
//! before memory is spent.
//!
//! An empty item takes two or three bytes on the wire and fifty and more once decoded: a message within its limit
//! of bytes could take thirty times as much. Lists of numbers grow little, but are counted too where they have a
//! limit at all.

use std::any::TypeId;
use std::marker::PhantomData;

use crate::failure::Failure;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{DecodeError, Message};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::grammar::{self, MAX_GRAMMAR_BYTES};
use crate::sampling::{MAX_ALLOWED, MAX_BANNED, MAX_LOGIT_BIAS};
use crate::status::BadField;
use crate::v1;

/// Most turns of a conversation.
pub const MAX_MESSAGES: usize = 1_024;
/// Most stop strings.
pub const MAX_STOPS: usize = 16;
/// Most stop tokens.
pub const MAX_STOP_TOKENS: usize = 62;

/// Most settings of a method, and most bytes that they take.
pub const MAX_SETTINGS: usize = 64;
/// See [`MAX_SETTINGS`].
pub const MAX_SETTINGS_BYTES: usize = 4 << 10;

/// Most tools of a request, and most bytes that they take.
pub const MAX_TOOLS: usize = 128;
/// See [`MAX_TOOLS`].
pub const MAX_TOOLS_BYTES: usize = 256 << 10;
/// Most calls in all turns of a conversation.
pub const MAX_CALLS: usize = 1_024;

/// Numbers of fields of a request that hold messages.
const SAMPLING: u32 = 5;
const MESSAGES: u32 = 28;
const SETTINGS: u32 = 32;
const TOOLS: u32 = 33;
const TEMPLATE_ARGUMENTS: u32 = 37;

/// A list in a message, and how long it may be.
#[derive(Clone, Copy, Debug)]
pub struct ListBound {
    /// The list, as errors name it.
    pub field: &'static str,
    /// What its items are called.
    pub items: &'static str,
    /// Most items.
    pub most: usize,
    /// The field of the message that holds the message it is in; none if it is in the message itself.
    within: Option<u32>,
    /// Its number there.
    tag: u32,
    counted: ListMeasure,
}

/// What of a field is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListMeasure {
    /// Each time that it comes.
    Items,
    /// The numbers in it, many of which can come as one field.
    Numbers,
    /// Its bytes.
    Bytes,
}

impl ListBound {
    const fn of(field: &'static str, tag: u32, items: &'static str, most: usize) -> Self {
        Self {
            field,
            items,
            most,
            within: None,
            tag,
            counted: ListMeasure::Items,
        }
    }

    const fn within(self, tag: u32) -> Self {
        Self {
            within: Some(tag),
            ..self
        }
    }

    const fn packed(self) -> Self {
        let counted = ListMeasure::Numbers;
        Self { counted, ..self }
    }

    const fn in_bytes(self) -> Self {
        let counted = ListMeasure::Bytes;
        Self { counted, ..self }
    }
}

/// The lists of a `GenerateRequest`. The token ids of a prompt are not among them: they take four times their bytes
/// at most, and are as many as the message has room for.
pub const OF_GENERATE_REQUEST: [ListBound; 14] = [
    ListBound::of("messages", MESSAGES, "turns", MAX_MESSAGES),
    ListBound::of("messages", 4, "calls", MAX_CALLS).within(MESSAGES),
    ListBound::of("tools", TOOLS, "tools", MAX_TOOLS),
    ListBound::of("tools", TOOLS, "bytes", MAX_TOOLS_BYTES).in_bytes(),
    ListBound::of("stop", 10, "texts", MAX_STOPS),
    ListBound::of("stop_token_ids", 11, "tokens", MAX_STOP_TOKENS).packed(),
    ListBound::of("logit_bias", 8, "entries", MAX_LOGIT_BIAS).within(SAMPLING),
    ListBound::of("banned_token_ids", 9, "entries", MAX_BANNED)
        .within(SAMPLING)
        .packed(),
    ListBound::of("allowed_token_ids", 10, "entries", MAX_ALLOWED)
        .within(SAMPLING)
        .packed(),
    // Twice the grammar's own limit: its texts have tags and lengths on the wire.
    ListBound::of(grammar::FIELD, 12, "bytes", 2 * MAX_GRAMMAR_BYTES)
        .within(SAMPLING)
        .in_bytes(),
    ListBound::of("settings", SETTINGS, "bytes", MAX_SETTINGS_BYTES).in_bytes(),
    ListBound::of("settings", 1, "entries", MAX_SETTINGS).within(SETTINGS),
    ListBound::of(
        "template_arguments",
        TEMPLATE_ARGUMENTS,
        "bytes",
        MAX_SETTINGS_BYTES,
    )
    .in_bytes(),
    ListBound::of("template_arguments", 1, "entries", MAX_SETTINGS).within(TEMPLATE_ARGUMENTS),
];

/// Returns the bytes that `message` takes on the wire, without gRPC's frame of five bytes and without compression.
pub fn encoded_bytes(message: &impl prost::Message) -> u64 {
    message.encoded_len() as u64
}

/// The bounds of messages of type `M`; most have none, being read by those who know their peers.
fn of_type<M: 'static>() -> &'static [ListBound] {
    if TypeId::of::<M>() == TypeId::of::<v1::GenerateRequest>() {
        &OF_GENERATE_REQUEST
    } else {
        &[]
    }
}

/// Checks an encoded message against `bounds`.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the first list that is too long, `INTERNAL` if the bytes are no message, as decoding
/// them would say.
fn check(message: &[u8], bounds: &[ListBound]) -> Result<(), Status> {
    let mut counts = vec![0; bounds.len()];
    count(message, None, bounds, &mut counts)
        .map_err(|error| Failure::Internal.status(error.to_string()))?;
    for (bound, found) in bounds.iter().zip(counts) {
        BadField::at_most(bound.field, found, bound.most, bound.items)?;
    }
    Ok(())
}

/// Adds the items of each list to `counts`. A message may come in several pieces, which are one when decoded: those of
/// all are counted. `within` is the field that `message` is in. Reads fields with the functions that decoding
/// itself uses, so both see the same.
fn count(
    mut message: &[u8],
    within: Option<u32>,
    bounds: &[ListBound],
    counts: &mut [usize],
) -> Result<(), DecodeError> {
    while !message.is_empty() {
        let (tag, wire_type) = decode_key(&mut message)?;
        let mut field = message;
        skip_field(wire_type, tag, &mut message, DecodeContext::default())?;
        let is_delimited = wire_type == WireType::LengthDelimited;
        if is_delimited {
            let length = decode_varint(&mut field)?;
            field = &field[..length as usize];
        }
        let here = |bound: &ListBound| bound.within == within && bound.tag == tag;
        for (bound, count) in bounds.iter().zip(&mut *counts) {
            if here(bound) {
                *count += match bound.counted {
                    ListMeasure::Numbers if is_delimited => numbers(field),
                    ListMeasure::Bytes if is_delimited => field.len(),
                    ListMeasure::Items | ListMeasure::Numbers | ListMeasure::Bytes => 1,
                };
            }
        }
        if within.is_none() && is_delimited && bounds.iter().any(|bound| bound.within == Some(tag))
        {
            count(field, Some(tag), bounds, counts)?;
        }
    }
    Ok(())
}

/// How many numbers a packed field has: the last byte of each has its highest bit clear.
fn numbers(packed: &[u8]) -> usize {
    packed.iter().filter(|&&byte| byte & 0x80 == 0).count()
}

/// The codec of all services: that of prost, with lists counted before they are decoded.
#[derive(Debug, Default)]
pub struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> ProstEncoder<T> {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> BoundedDecoder<U> {
        BoundedDecoder {
            decoding: ProstDecoder::default(),
            bounds: of_type::<U>(),
        }
    }
}

/// Decodes messages whose lists are not too long.
#[derive(Debug)]
pub struct BoundedDecoder<U> {
    decoding: ProstDecoder<U>,
    bounds: &'static [ListBound],
}

impl<U: Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if !self.bounds.is_empty() {
            // A message is decoded once all of it is there, in one piece.
            if message.chunk().len() != message.remaining() {
                return Err(Failure::Internal.status("a message in several pieces"));
            }
            check(message.chunk(), self.bounds)?;
        }
        self.decoding.decode(message)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.decoding.buffer_settings()
    }
}

#[cfg(test)]
mod tests;
