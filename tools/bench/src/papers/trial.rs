//! Methods measured in turn on the same prompts and seeds.

use anyhow::Context;
use client::Client;
use outrider::progress;
use outrider::prompts::Example;

use super::Extent;
use super::resampling::{Bootstrap, Ratio};
use crate::measure::{Measured, MeasuredAnswer, RequestSetting, measure};
use crate::quality::{Metric, Resampled};
use crate::request::RequestForm;
use crate::spec::MeasuredMethod;

/// A method under a name.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) name: String,
    pub(super) method: MeasuredMethod,
}

/// Returns the ways that are written so: each a name, and a method as `--methods` has it.
///
/// # Errors
/// If a method cannot be read, which is a slip of ours.
pub(super) fn ways<'a>(
    list: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> anyhow::Result<Vec<Way>> {
    let way = |(name, method): (&str, &str)| {
        Ok(Way {
            name: name.to_owned(),
            method: MeasuredMethod::parse(method)?,
        })
    };
    list.into_iter().map(way).collect()
}

/// What is asked, and how.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) client: &'a Client,
    pub(super) examples: &'a [Example],
    pub(super) form: RequestForm,
    pub(super) temperature: f32,
    pub(super) max_tokens: u32,
    /// Outputs of each prompt, each with a seed of its own.
    pub(super) repeats: usize,
    pub(super) extent: Extent,
}

/// What a way gave.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// One for each prompt of each repeat, the prompts of a repeat together.
    pub(super) answers: Vec<MeasuredAnswer>,
}

impl Trial<'_> {
    /// Measures `ways` in turn; who comes first changes from prompt to prompt.
    ///
    /// # Errors
    /// If a request fails.
    pub(super) async fn run(&self, ways: &[Way]) -> anyhow::Result<Vec<Outcome>> {
        let settings: Vec<_> = ways.iter().map(|way| self.setting(&way.method)).collect();
        for setting in &settings {
            measure(
                self.client,
                setting,
                &self.examples[0].text,
                self.extent.seed,
            )
            .await?;
        }
        let mut outcomes: Vec<Outcome> = ways.iter().map(|_| Outcome::default()).collect();
        let whole = self.repeats * self.examples.len();
        for index in 0..whole {
            let example = &self.examples[index % self.examples.len()];
            let temperature = self.temperature;
            progress::show(&format!(
                "T={temperature}: request {} of {whole}",
                index + 1
            ))?;
            for turn in 0..ways.len() {
                let way = (index + turn) % ways.len();
                let seed = self.extent.seed + index as u64 + 1;
                let answer = measure(self.client, &settings[way], &example.text, seed).await?;
                outcomes[way].answers.push(answer);
            }
        }
        Ok(outcomes)
    }

    fn setting(&self, method: &MeasuredMethod) -> RequestSetting {
        RequestSetting {
            method: method.clone(),
            form: self.form.clone(),
            temperature: self.temperature,
            draft_len: None,
            max_tokens: self.max_tokens,
        }
    }

    /// Returns how good the outputs are, by a metric that compares with the examples' references.
    pub(super) fn quality(&self, metric: Metric, outcome: &Outcome) -> anyhow::Result<Resampled> {
        let examples = self.examples.iter().cycle();
        let pairs = outcome.answers.iter().zip(examples);
        let outputs = pairs.map(|(answer, example)| (&*answer.text, &*example.references));
        let outputs: Vec<_> = outputs.collect();
        Resampled::of(metric, &outputs).context("the metric asks a model")
    }

    /// Returns samples of the requests of an outcome.
    pub(super) fn bootstrap(&self) -> Bootstrap {
        Bootstrap::new(self.examples.len(), self.repeats, self.extent.seed)
    }
}

impl Outcome {
    /// Returns what all requests took.
    pub(super) fn total(&self) -> Measured {
        let mut total = Measured::default();
        for answer in &self.answers {
            total.add(&answer.measured);
        }
        total
    }

    /// Returns a figure of each request, in order.
    pub(super) fn each(&self, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let answers = self.answers.iter();
        answers.map(|answer| figure(&answer.measured)).collect()
    }

    /// Returns a figure by emitted token.
    pub(super) fn by_token(&self, figure: impl Fn(&Measured) -> f64) -> Ratio {
        let answers = self.answers.iter().map(|answer| &answer.measured);
        let parts = answers.map(|measured| [figure(measured), measured.totals.tokens]);
        Ratio {
            parts: parts.collect(),
        }
    }

    /// Returns of each of the first `most` positions of blocks how often the draft token there was accepted.
    pub(super) fn survival(&self, most: usize) -> Vec<f64> {
        let positions = self.total().positions;
        let shares = positions.iter().take(most).map(|[had, kept]| kept / had);
        shares.collect()
    }
}

/// Returns milliseconds a token.
pub(super) fn ms_a_token(measured: &Measured) -> f64 {
    measured.totals.total_ms / measured.totals.tokens.max(1.0)
}
