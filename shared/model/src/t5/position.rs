//! Relative position bias (Raffel et al. 2020, section 2.1): a number for each head and distance between
//! query and key, learned for buckets of distances, added to the scores.

use crate::{attention::Bias, config::EncoderConfig};

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// All: the encoder's.
    Both,
    /// Its own and those before it: the decoder's.
    Back,
}

/// The bias of a stack, by head and distance.
#[derive(Clone, Debug)]
pub(super) struct RelativeBias {
    /// `(heads, distances)`: from the key `len - 1` before the query to the query itself, or as far behind
    /// it.
    table: Vec<f32>,
    distances: usize,
    /// Longest sequence.
    len: usize,
}

impl RelativeBias {
    /// Lays out `weights`, `(buckets, heads)`, for sequences of up to `len` tokens.
    pub(super) fn new(
        weights: &[f32],
        heads: usize,
        config: &EncoderConfig,
        direction: Direction,
        len: usize,
    ) -> Self {
        let distances = match direction {
            Direction::Both => 2 * len - 1,
            Direction::Back => len,
        };
        let mut table = vec![0.0; heads * distances];
        for index in 0..distances {
            let key_minus_query = index as i64 - (len as i64 - 1);
            let bucket = bucket(key_minus_query, config, direction);
            for head in 0..heads {
                table[head * distances + index] = weights[bucket * heads + head];
            }
        }
        Self {
            table,
            distances,
            len,
        }
    }

    /// Returns what is added to the scores of the query at `position`.
    pub(super) fn at(&self, position: usize) -> Bias<'_> {
        Bias {
            table: &self.table,
            stride: self.distances,
            offset: self.len - 1 - position,
        }
    }
}

/// The bucket of a key that stands `key_minus_query` positions after the query. The first half of a
/// direction's buckets hold one distance each, the others grow by equal factors, and the last takes all from
/// the largest distance on.
///
/// In single precision, as the models were trained: where a bucket begins must not depend on rounding that
/// differs.
fn bucket(key_minus_query: i64, config: &EncoderConfig, direction: Direction) -> usize {
    let (buckets, first) = match direction {
        Direction::Back => (config.relative_buckets, 0),
        Direction::Both => {
            let half = config.relative_buckets / 2;
            (half, if key_minus_query > 0 { half } else { 0 })
        }
    };
    let distance = match direction {
        Direction::Back => (-key_minus_query).max(0),
        Direction::Both => key_minus_query.abs(),
    } as usize;
    let exact = buckets / 2;
    if distance < exact {
        return first + distance;
    }
    let range = libm::log(config.relative_max_distance as f64 / exact as f64) as f32;
    let octaves = libm::logf(distance as f32 / exact as f32) / range;
    let further = (octaves * (buckets - exact) as f32) as usize;
    first + (exact + further).min(buckets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(relative_buckets: usize, relative_max_distance: usize) -> EncoderConfig {
        EncoderConfig {
            layers: 1,
            relative_buckets,
            relative_max_distance,
            decoder_start_token_id: 0,
        }
    }

    /// What transformers' `_relative_position_bucket` gives, at every distance where a bucket begins.
    #[test]
    fn buckets_begin_where_the_published_models_have_them() {
        let config = config(32, 128);
        let begins = |direction, sign: i64| -> Vec<i64> {
            let of = |distance| bucket(sign * distance, &config, direction);
            (1..2_000).filter(|&d| of(d) != of(d - 1)).collect()
        };
        // 8 e^(k ln(16) / 8) for the encoder, 16 e^(k ln(8) / 16) for the decoder, rounded up.
        let encoder = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91];
        assert_eq!(begins(Direction::Both, -1), encoder);
        assert_eq!(begins(Direction::Both, 1), encoder);
        let decoder = [
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31, 35, 40, 46,
            52, 59, 67, 77, 87, 99, 113,
        ];
        assert_eq!(begins(Direction::Back, -1), decoder);
        assert_eq!(bucket(-1_999, &config, Direction::Back), 31);
        assert_eq!(bucket(-1_999, &config, Direction::Both), 15);
        assert_eq!(bucket(1_999, &config, Direction::Both), 31);
        // A key behind the query is in the other half, the query's own in the first.
        assert_eq!(bucket(1, &config, Direction::Both), 17);
        assert_eq!(bucket(0, &config, Direction::Both), 0);
    }

    #[test]
    fn each_query_reads_its_own_distances() {
        let config = config(8, 16);
        let weights: Vec<f32> = (0..16).map(|i| i as f32).collect();
        for direction in [Direction::Both, Direction::Back] {
            let bias = RelativeBias::new(&weights, 2, &config, direction, 20);
            for query in 0..20 {
                let keys = if direction == Direction::Both {
                    20
                } else {
                    query + 1
                };
                let row = bias.at(query);
                for (head, key) in (0..2).flat_map(|head| (0..keys).map(move |key| (head, key))) {
                    let bucket = bucket(key as i64 - query as i64, &config, direction);
                    let found = row.table[head * row.stride + row.offset + key];
                    assert_eq!(
                        found,
                        weights[bucket * 2 + head],
                        "{query} {key} {direction:?}"
                    );
                }
            }
        }
    }
}
