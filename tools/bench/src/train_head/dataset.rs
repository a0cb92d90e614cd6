//! Responses with drafts and labels, and the file that keeps them.
//!
//! The file's name is a digest of all that its contents depend on. Responses are appended one by one; what
//! an interruption cut off is dropped, so sampling goes on where it stopped.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use speculation::TokenId;
use speculation::verification::AcceptanceLabel;

/// Version of the file's layout, and of how responses are drawn.
const FORMAT: u32 = 2;

/// A response of the target model, what the draft model would have drafted at each of its positions, and
/// how likely that was to be accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrainingSample {
    /// X, (positions).
    pub(super) response: Vec<TokenId>,
    /// What is drafted for coupling: from the whole draft distribution.
    pub(super) coupled: Drafts,
    /// Tokens drafted for rejection, from the draft distribution as it is sent.
    pub(super) rejection: Drafts,
}

/// What would have been drafted along a response under one kind of verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drafts {
    /// Y, each drawn after the X before it, (positions).
    pub(super) tokens: Vec<TokenId>,
    /// Probability that Y is accepted, (positions).
    pub(super) labels: Vec<f32>,
}

/// What the samples depend on.
#[derive(Serialize)]
pub(super) struct Key<'a> {
    pub(super) draft: &'a str,
    pub(super) target: &'a str,
    pub(super) temperature: f32,
    /// Top-k, top-p and min-p, where any of them cuts: samples of before there were cuts go on being used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cuts: Option<(u32, f32, f32)>,
    pub(super) max_tokens: u32,
    /// Tokens kept of a draft distribution that is sent.
    pub(super) proposal_top: u32,
    pub(super) seed: u64,
    pub(super) end_tokens: &'a [TokenId],
    pub(super) prompts: &'a [Vec<TokenId>],
}

/// The file, open for more.
#[derive(Debug)]
pub(super) struct Dataset {
    file: File,
    path: PathBuf,
    pub(super) samples: Vec<TrainingSample>,
}

impl TrainingSample {
    /// What a head for `label` learns.
    pub(super) fn drafts(&self, label: AcceptanceLabel) -> &Drafts {
        match label {
            AcceptanceLabel::Coupled => &self.coupled,
            AcceptanceLabel::Rejection => &self.rejection,
        }
    }

    fn is_whole(&self) -> bool {
        let positions = self.response.len();
        let whole =
            |drafts: &Drafts| drafts.tokens.len() == positions && drafts.labels.len() == positions;
        positions > 0 && whole(&self.coupled) && whole(&self.rejection)
    }
}

impl Key<'_> {
    /// Name of the file.
    fn file_name(&self) -> anyhow::Result<String> {
        let key = serde_json::to_vec(&(FORMAT, self))?;
        let mut name = "samples-".to_owned();
        for byte in &Sha256::digest(key)[..8] {
            write!(name, "{byte:02x}")?;
        }
        Ok(name + ".jsonl")
    }
}

impl Dataset {
    /// Opens the file for `key` in `folder`, with the samples it has; makes both if they are not there.
    ///
    /// # Errors
    /// If the file cannot be read or written, or another process is writing it.
    pub(super) fn open(folder: &Path, key: &Key<'_>) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("--cache: {} cannot be made", folder.display()))?;
        let path = folder.join(key.file_name()?);
        let unusable = || format!("--cache: {} cannot be used", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).with_context(unusable)?;
        if file.try_lock().is_err() {
            bail!("--cache: another train-head is writing {}", path.display());
        }
        let bytes = fs::read(&path).with_context(unusable)?;
        let (mut samples, mut whole) = (Vec::new(), 0);
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            match serde_json::from_slice::<TrainingSample>(line) {
                Ok(sample) if line.ends_with(b"\n") && sample.is_whole() => samples.push(sample),
                _ => break,
            }
            whole += line.len();
        }
        file.set_len(whole as u64).with_context(unusable)?;
        file.seek(SeekFrom::End(0)).with_context(unusable)?;
        Ok(Self {
            file,
            path,
            samples,
        })
    }

    /// Adds a sample, in the file too.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn push(&mut self, sample: TrainingSample) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(&sample)?;
        line.push(b'\n');
        (self.file.write_all(&line))
            .with_context(|| format!("--cache: {} cannot be written", self.path.display()))?;
        self.samples.push(sample);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(prompts: &[Vec<TokenId>]) -> Key<'_> {
        Key {
            draft: "d",
            target: "t",
            temperature: 1.0,
            cuts: None,
            max_tokens: 4,
            proposal_top: 32,
            seed: 0,
            end_tokens: &[2],
            prompts,
        }
    }

    fn sample(token: TokenId) -> TrainingSample {
        TrainingSample {
            response: vec![token, 3],
            coupled: Drafts {
                tokens: vec![token, 4],
                labels: vec![0.1, 1.0 / 3.0],
            },
            rejection: Drafts {
                tokens: vec![token, 5],
                labels: vec![0.7, 1.0],
            },
        }
    }

    #[test]
    fn what_was_sampled_is_found_again_and_a_torn_line_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let prompts = [vec![1, 2]];
        let open = || Dataset::open(folder.path(), &key(&prompts));
        let mut dataset = open().expect("opened");
        dataset.push(sample(7)).expect("pushed");
        dataset.push(sample(8)).expect("pushed");
        let error = open().expect_err("locked").to_string();
        assert!(error.contains("another train-head is writing"), "{error}");
        let path = dataset.path.clone();
        drop(dataset);
        // As an interruption leaves it.
        let bytes = fs::read(&path).expect("read");
        fs::write(&path, &bytes[..bytes.len() - 5]).expect("written");
        let mut dataset = open().expect("opened");
        assert_eq!(dataset.samples, [sample(7)]);
        dataset.push(sample(9)).expect("pushed");
        drop(dataset);
        assert_eq!(open().expect("opened").samples, [sample(7), sample(9)]);
    }

    #[test]
    fn a_head_learns_from_the_drafts_of_its_label() {
        let sample = sample(7);
        let of = |label| sample.drafts(label);
        assert_eq!(of(AcceptanceLabel::Coupled), &sample.coupled);
        assert_eq!(of(AcceptanceLabel::Rejection), &sample.rejection);
        assert_ne!(sample.coupled, sample.rejection);
    }

    #[test]
    fn every_setting_has_a_file_of_its_own() {
        let (prompts, others) = ([vec![1, 2]], [vec![1, 3]]);
        let name = |key: Key<'_>| key.file_name().expect("a name");
        let changes: [fn(&mut Key<'_>); 8] = [
            |key| key.draft = "e",
            |key| key.target = "e",
            |key| key.temperature = 0.5,
            |key| key.cuts = Some((0, 0.9, 0.0)),
            |key| key.max_tokens = 5,
            |key| key.proposal_top = 33,
            |key| key.seed = 1,
            |key| key.end_tokens = &[],
        ];
        let mut names = vec![name(key(&prompts)), name(key(&others))];
        names.extend(changes.map(|change| {
            let mut key = key(&prompts);
            change(&mut key);
            name(key)
        }));
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(names[0], name(key(&prompts)));
    }
}
