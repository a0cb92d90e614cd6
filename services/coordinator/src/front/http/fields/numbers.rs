//! Numbers of a request. Errors say what is expected in words, never by the name of a type.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

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
pub(in crate::front::http) struct Whole<T>(pub(in crate::front::http) T);

impl<'de, T: Integer> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<T: Integer> Reader<T> {
            fn within<E: Error>(&self, number: i128, found: Unexpected<'_>) -> Result<Whole<T>, E> {
                let read = T::try_from(number).map(Whole);
                read.map_err(|_| E::invalid_value(found, self))
            }
        }

        impl<T: Integer> Visitor<'_> for Reader<T> {
            type Value = Whole<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {} to {}", T::LEAST, T::MOST)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                self.within(number.into(), Unexpected::Unsigned(number))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                self.within(number.into(), Unexpected::Signed(number))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                if number.fract() != 0.0 || number.abs() > MOST_EXACT {
                    return Err(E::invalid_value(Unexpected::Float(number), &self));
                }
                self.within(number as i128, Unexpected::Float(number))
            }
        }

        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// A number, with a fraction or without.
#[derive(Clone, Copy, Debug)]
pub(in crate::front::http) struct Real(pub(in crate::front::http) f64);

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Real;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Real(number as f64))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Real(number as f64))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Real(number))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        let read = |json: &str| serde_json::from_str::<Whole<u32>>(json).map(|Whole(it)| it);
        for (json, expected) in [
            ("5", 5),
            ("5.0", 5),
            ("5e2", 500),
            ("4294967295.0", u32::MAX),
        ] {
            assert_eq!(read(json).expect(json), expected);
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
            let refused = read(json).expect_err(json).to_string();
            let expected = "expected a whole number from 0 to 4294967295";
            assert!(refused.contains(expected), "{json}: {refused}");
        }
    }

    #[test]
    fn seeds_are_all_numbers_of_64_bits_signed_or_not() {
        let read = |json: &str| serde_json::from_str::<Whole<Seed>>(json);
        for seed in [0, 7, 1 << 63, u64::MAX - 4, u64::MAX] {
            let unsigned = read(&seed.to_string()).expect("unsigned").0;
            let signed = read(&seed.cast_signed().to_string()).expect("signed").0;
            assert_eq!((unsigned, signed), (Seed(seed), Seed(seed)));
        }
        for json in ["18446744073709551616", "-9223372036854775809", "0.5"] {
            let refused = read(json).expect_err(json).to_string();
            assert!(refused.contains("to 18446744073709551615"), "{refused}");
        }
    }
}
