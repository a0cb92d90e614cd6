//! What the command is told.

use std::path::PathBuf;

use clap::Args;

use super::judge::Criteria;
use super::scorer::Scorer;
use super::task::CheckedTask;
use crate::quality::Metric;
use crate::request::{FORMS, RequestArgs};
use outrider::args::ServicesArgs;

/// The methods of the default sweep. Both ends first, then every trade-off from the target's side to
/// the draft model's.
const METHODS: &str = "target-only,draft-only,coupled,\
    lossy:alpha=0/0.2/0.4/0.6/0.8/0.9,\
    lossy:kl-budget=0/0.01/0.03/0.1/0.3/1,\
    rejection:draft-len=8,\
    rejection:tree=comb:2:draft-len=4,\
    rejection:tree=comb:4:draft-len=2,\
    spec-cascade:rule=chow:alpha=0/0.05/0.1/0.2/0.3/0.4/0.5/0.7/1,\
    spec-cascade:rule=diff:alpha=-1/0/0.05/0.1/0.2/0.3/0.5/1,\
    spec-cascade:rule=opt:alpha=0/0.1/0.25/0.5/1/2,\
    spec-cascade:rule=token-v3:alpha=-0.01/0/0.1/0.3/0.5/0.7/0.9,\
    token-cascade:rule=chow:alpha=0/0.05/0.1/0.2/0.3/0.4/0.5/0.7/1,\
    bild:alpha=0/0.5/1/2/3/5,\
    bild:alpha=2:fallback=0/0.2/0.4/0.6/0.8/0.95";

/// Arguments of `outrider-bench sweep`.
#[derive(Debug, Args)]
#[command(after_long_help = FORMS)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Prompts and answers: JSON lines {"prompt": ..., "answer": ...} or of another form, see below; without it 200
    /// sentences to be translated into German, which the default pair has learnt and was not trained on.
    ///
    /// Outputs of the built-in task end before a newline, unless --stop says otherwise; those of other tasks where the
    /// model ends them, and at --max-tokens.
    #[arg(long, value_name = "FILE")]
    pub(super) task: Option<PathBuf>,
    /// Field of JSON objects that holds the known answer, or a list of them.
    #[arg(long, value_name = "NAME", requires = "task")]
    pub(super) reference_field: Option<String>,
    /// What outputs are measured by, the first of them drawn by --svg. Without it by the form of the task: exact for ours,
    /// last-number for GSM8K, bleu for HumanEval, rouge-l for Spec-Bench and conversations, likelihood where no answers
    /// are known. Prompts without a known answer are left out where one is needed.
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    metric: Vec<Metric>,
    /// Your own program that scores outputs, with its arguments, as in 'python3 judge.py --strict'. For each method it is
    /// started once, gets a JSON line {"id", "prompt", "output", "references"} for each output on its standard input, and
    /// answers with a JSON line {"score": x} for each, in the same order.
    #[arg(long, value_name = "COMMAND")]
    scorer: Option<String>,
    /// Most prompts.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(super) prompts: usize,
    /// Methods; alternatives between slashes make a line of the plot:
    /// `lossy:alpha=0/0.2/0.5,target-only`. Without it both ends and every trade-off between them.
    #[arg(long, value_name = "METHODS", value_delimiter = ',', default_value = METHODS, hide_default_value = true)]
    pub(super) methods: Vec<String>,
    /// Temperature. At 0 an output does not depend on chance.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub(super) temperature: f32,
    /// Outputs of each prompt, each with a seed of its own; at temperature 0 one is made.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(super) seeds: usize,
    /// Draft tokens a round, of methods that do not say.
    #[arg(long, value_name = "K", default_value_t = 4)]
    pub(super) draft_len: u32,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) max_tokens: u32,
    #[command(flatten)]
    pub(super) request: RequestArgs,
    /// Draws quality against target calls per token, one line a series of methods.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

impl SweepArgs {
    /// Outputs of each prompt.
    pub(super) fn outputs(&self) -> usize {
        if self.temperature == 0.0 {
            1
        } else {
            self.seeds
        }
    }

    /// Returns what outputs of `task` are judged by.
    pub(super) fn criteria(&self, task: &CheckedTask) -> anyhow::Result<Criteria> {
        let scorer = self.scorer.as_deref().map(Scorer::parse).transpose()?;
        let metrics = match &self.metric[..] {
            [] if scorer.is_none() => vec![task.metric()],
            named => named.to_vec(),
        };
        Ok(Criteria { metrics, scorer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    #[test]
    fn the_default_methods_can_be_read() {
        let items: Vec<_> = METHODS
            .split(',')
            .map(|item| item.trim().to_owned())
            .collect();
        let series = spec::series(&items).expect("series");
        let count: usize = series.iter().map(|series| series.methods.len()).sum();
        assert_eq!((series.len(), count), (items.len(), 69));
    }
}
