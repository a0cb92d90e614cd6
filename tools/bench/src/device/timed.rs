//! Times of one model in one format.

use std::time::{Duration, Instant};

use anyhow::ensure;
use model::{Checkpoint, Computation, Model, NumberFormat, SequenceCache};
use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

use super::{DeviceArgs, synthetic::Size};
use crate::report::{self, number, only_json, text};
use crate::timing::in_turn;

/// Sequences of the batch that is measured.
pub(super) const TOGETHER: usize = 32;

/// Positions scored in a forward of one sequence; the first is a decoding step.
const POSITIONS: [usize; 3] = [1, 5, 16];

/// What is measured in a turn.
#[derive(Clone, Copy, Debug)]
enum DeviceCase {
    /// So many positions of so many sequences, every row scored.
    Forward { sequences: usize, positions: usize },
    /// A prompt, of which the last row is scored.
    Prefill,
}

/// What was measured.
pub(super) struct DeviceTimes {
    size: Size,
    format: NumberFormat,
    /// Bytes of the weights as they are stored.
    bytes: u64,
    load: Duration,
    /// In microseconds, in the order of the cases.
    us: Vec<f64>,
    prompt: usize,
}

impl DeviceTimes {
    /// Loads the model and measures it.
    ///
    /// # Errors
    /// If it does not fit onto the device, or `args` do not fit it.
    pub(super) fn measure(
        args: &DeviceArgs,
        size: Size,
        format: NumberFormat,
    ) -> anyhow::Result<Self> {
        let config = size.config();
        let most = config.context_len - POSITIONS[2];
        for (flag, value) in [("context", args.context), ("prompt", args.prompt)] {
            ensure!(
                value <= most,
                "--{flag}: {value} is out of range, expected 1 to {most}"
            );
        }
        let checkpoint = Checkpoint::synthetic(config, 1, format)?;
        let bytes = checkpoint.stored_bytes().values().sum::<u64>();
        let began = Instant::now();
        let model = checkpoint.load(Computation::Device(args.device, format))?;
        let load = began.elapsed();
        drop(checkpoint);
        let mut sequences = Sequences::filled(model, args.context)?;
        let one = |positions| DeviceCase::Forward {
            sequences: 1,
            positions,
        };
        let mut cases: Vec<DeviceCase> = POSITIONS.into_iter().map(one).collect();
        cases.push(DeviceCase::Forward {
            sequences: TOGETHER,
            positions: 1,
        });
        cases.push(DeviceCase::Prefill);
        let times = in_turn(args.repeats, &cases, |case| match *case {
            DeviceCase::Forward {
                sequences: count,
                positions,
            } => sequences.forward(count, positions),
            DeviceCase::Prefill => sequences.prefill(args.prompt),
        })?;
        Ok(Self {
            size,
            format,
            bytes,
            load,
            us: times.into_iter().map(|figures| figures.us).collect(),
            prompt: args.prompt,
        })
    }

    /// A row of the report.
    pub(super) fn fields(&self) -> report::Row {
        let [decode, five, sixteen, batch, prefill] = self.us[..] else {
            unreachable!("there are as many figures as cases")
        };
        let ms = |us: f64| us / 1e3;
        let per_second = |tokens: usize, us: f64| tokens as f64 / us * 1e6;
        vec![
            text("model", self.size.name()),
            text("format", self.format.name()),
            number("mb", self.bytes as f64 / 1e6, 0).called("weights, MB"),
            number("load_s", self.load.as_secs_f64(), 1).called("load, s"),
            number("decode_ms", ms(decode), 3).called("1 position, ms"),
            number("gb_per_second", self.bytes as f64 / decode / 1e3, 0).called("GB/s"),
            number("five_ms", ms(five), 3).called("5, ms"),
            number("five_ratio", five / decode, 2).called("5 / 1"),
            number("sixteen_ms", ms(sixteen), 3).called("16, ms"),
            number("sixteen_ratio", sixteen / decode, 2).called("16 / 1"),
            only_json("batch_ms", ms(batch)),
            number("batch_tokens_per_second", per_second(TOGETHER, batch), 0)
                .called("32 sequences, tokens/s"),
            number(
                "prefill_tokens_per_second",
                per_second(self.prompt, prefill),
                0,
            )
            .called("prefill, tokens/s"),
        ]
    }
}

/// Sequences of one length.
struct Sequences {
    model: Model,
    caches: Vec<SequenceCache>,
    rows: Rows,
    held: usize,
}

impl Sequences {
    fn filled(model: Model, held: usize) -> anyhow::Result<Self> {
        let caches = (0..TOGETHER).map(|_| model.new_cache()).collect();
        let mut filled = Self {
            model,
            caches,
            rows: Rows::default(),
            held,
        };
        let tokens = filled.tokens(held);
        for cache in &mut filled.caches {
            forward(&mut filled.model, cache, &tokens, held, &mut filled.rows)?;
        }
        Ok(filled)
    }

    /// `count` tokens of no meaning.
    fn tokens(&self, count: usize) -> Vec<TokenId> {
        let vocab = self.model.shape().vocab_size;
        (0..count)
            .map(|i| ((i * i * 31 + i * 7 + 3) % vocab) as TokenId)
            .collect()
    }

    /// The time in which `positions` positions of the first `count` sequences are scored.
    fn forward(&mut self, count: usize, positions: usize) -> anyhow::Result<Duration> {
        let tokens = self.tokens(positions);
        let segment = |cache| Segment {
            cache,
            tokens: &tokens,
            parents: &[],
            scored_from: 0,
        };
        let mut batch: Vec<_> = self.caches[..count].iter_mut().map(segment).collect();
        let began = Instant::now();
        self.model.forward(&mut batch, &mut self.rows)?;
        let time = began.elapsed();
        for cache in &mut self.caches[..count] {
            cache.truncate(self.held);
        }
        Ok(time)
    }

    /// The time of a prompt of `count` tokens.
    fn prefill(&mut self, count: usize) -> anyhow::Result<Duration> {
        let tokens = self.tokens(count);
        let mut cache = self.model.new_cache();
        let began = Instant::now();
        forward(
            &mut self.model,
            &mut cache,
            &tokens,
            count - 1,
            &mut self.rows,
        )?;
        Ok(began.elapsed())
    }
}

fn forward(
    model: &mut Model,
    cache: &mut SequenceCache,
    tokens: &[TokenId],
    scored_from: usize,
    rows: &mut Rows,
) -> anyhow::Result<()> {
    let segment = Segment {
        cache,
        tokens,
        parents: &[],
        scored_from,
    };
    Ok(model.forward(&mut [segment], rows)?)
}
