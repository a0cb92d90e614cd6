//! How llama.cpp computes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of llama.cpp, as a section of a model's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Threads of a forward, at most one for each core that this process may use; 0 is all but one of these cores, shared
    /// among the models of this process that llama.cpp computes.
    /// llama.cpp's threads wait for one another without sleeping, so one that is off its core stops all.
    pub threads: u32,
    /// Layers whose weights lie on GPUs, where the program was built for them. 999 is all of them.
    pub gpu_layers: u32,
    /// How a model is divided among several GPUs.
    pub split_mode: SplitMode,
    /// Whether attention is computed by fused kernels: faster on GPUs, at rows that differ more with the forwards
    /// their sequence was computed in.
    pub flash_attention: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threads: 0,
            gpu_layers: 999,
            split_mode: SplitMode::default(),
            flash_attention: false,
        }
    }
}

/// How a model is divided among several GPUs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SplitMode {
    /// It is not: all of it is on the first.
    None,
    /// Each GPU has some layers, with their keys and values.
    #[default]
    Layer,
    /// Each GPU has some rows of every matrix.
    Row,
}

/// Format of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum KvType {
    /// Four bytes a number; rows then depend the least on how their sequence was cut into forwards.
    F32,
    /// Two bytes a number.
    F16,
    /// 34 bytes for 32 numbers. llama.cpp has it with flash attention only.
    Q8_0,
}

impl KvType {
    /// Bytes of `numbers` numbers, whole blocks of 32.
    pub fn bytes(self, numbers: usize) -> usize {
        match self {
            Self::F32 => 4 * numbers,
            Self::F16 => 2 * numbers,
            Self::Q8_0 => 34 * numbers.div_ceil(32),
        }
    }
}

impl Settings {
    /// Shares `cores`, but one, among those of `all` whose `threads` is 0: threads of several models together must not
    /// be more than there are cores, since they wait for one another without sleeping. What others have set is theirs.
    pub fn share_threads<'a>(all: impl IntoIterator<Item = &'a mut Self>, cores: u32) {
        let mut left = cores.saturating_sub(1);
        let mut waiting = Vec::new();
        for settings in all {
            let threads = &mut settings.threads;
            left = left.saturating_sub(*threads);
            if *threads == 0 {
                waiting.push(threads);
            }
        }
        let each = left.checked_div(waiting.len() as u32).unwrap_or(0).max(1);
        for threads in waiting {
            *threads = each;
        }
    }

    /// Threads of a forward where `cores` can be used.
    ///
    /// # Errors
    /// If more are wanted than there are cores.
    pub fn threads_on(&self, cores: u32) -> Result<u32, TooManyThreads> {
        match self.threads {
            0 => Ok(cores.saturating_sub(1).max(1)),
            threads if threads <= cores => Ok(threads),
            threads => Err(TooManyThreads { threads, cores }),
        }
    }
}

/// More threads than cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "threads is {threads}, expected at most {cores}, the cores that this process may use: llama.cpp's threads wait \
     for one another without sleeping"
)]
pub struct TooManyThreads {
    threads: u32,
    cores: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_leave_one_core_free_and_never_exceed_them() {
        let threads = |wanted, cores| {
            let settings = Settings {
                threads: wanted,
                ..Settings::default()
            };
            settings
                .threads_on(cores)
                .map_err(|error| error.to_string())
        };
        assert_eq!((threads(0, 8), threads(0, 1)), (Ok(7), Ok(1)));
        assert_eq!(threads(8, 8), Ok(8));
        let refused = threads(9, 8).unwrap_err();
        assert!(
            refused.starts_with("threads is 9, expected at most 8"),
            "{refused}"
        );
    }

    #[test]
    fn several_models_take_no_more_than_the_cores_but_one() {
        let shared = |wanted: &[u32], cores| {
            let settings = |threads: &u32| Settings {
                threads: *threads,
                ..Settings::default()
            };
            let mut all: Vec<_> = wanted.iter().map(settings).collect();
            Settings::share_threads(&mut all, cores);
            all.iter().map(|own| own.threads).collect::<Vec<_>>()
        };
        assert_eq!(shared(&[0], 8), [7]);
        assert_eq!(shared(&[0, 0], 8), [3, 3]);
        assert_eq!(shared(&[0, 5, 0], 8), [1, 5, 1]);
        assert_eq!(shared(&[0, 8], 8), [1, 8]);
        assert_eq!(shared(&[0, 0], 1), [1, 1]);
        assert_eq!(shared(&[], 8), [0; 0]);
    }
}
