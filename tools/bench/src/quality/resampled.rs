//! A metric over any choice of outputs, without reading them again.

use super::bleu::Counts;
use super::{Metric, Score};

/// What a metric comes to is computed from.
#[derive(Clone, Debug)]
pub(crate) struct Resampled(Parts);

#[derive(Clone, Debug)]
enum Parts {
    /// A score of each output, of a metric that is their mean.
    Mean(Vec<f64>),
    /// What BLEU counts in each output.
    Bleu(Vec<Counts>),
}

impl Resampled {
    /// Reads outputs, each with its references; none where the metric asks the target model.
    pub(crate) fn of(metric: Metric, outputs: &[(&str, &[String])]) -> Option<Self> {
        if metric == Metric::Bleu {
            let counts = outputs
                .iter()
                .map(|(output, known)| Counts::of(output, known));
            return Some(Self(Parts::Bleu(counts.collect())));
        }
        let scores = outputs
            .iter()
            .map(|output| metric.score(std::slice::from_ref(output)));
        let scores: Option<Vec<Score>> = scores.collect();
        let values = scores?.into_iter().map(|score| score.value).collect();
        Some(Self(Parts::Mean(values)))
    }

    /// Returns the metric over the outputs at `picks`, in which one may come several times.
    pub(crate) fn value(&self, picks: &[usize]) -> f64 {
        match &self.0 {
            Parts::Mean(scores) => {
                let sum: f64 = picks.iter().map(|&pick| scores[pick]).sum();
                sum / picks.len().max(1) as f64
            }
            Parts::Bleu(counts) => Counts::sum(picks.iter().map(|&pick| counts[pick])).bleu(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_outputs_scores_as_if_they_were_all() {
        let references = ["the cat sat on the mat today", "a dog ran to the park then"]
            .map(|text| vec![text.to_owned()]);
        let outputs: [(&str, &[String]); 3] = [
            ("the cat sat on a mat today", &references[0]),
            ("a dog ran to the park then", &references[1]),
            ("a dog sat on the mat now", &references[1]),
        ];
        for metric in [Metric::Bleu, Metric::Rouge2, Metric::Exact] {
            let resampled = Resampled::of(metric, &outputs).expect("no model is asked");
            for picks in [&[0, 1, 2][..], &[1, 1], &[2, 0, 2]] {
                let chosen: Vec<_> = picks.iter().map(|&pick| outputs[pick]).collect();
                let expected = metric.score(&chosen).expect("a score").value;
                let found = resampled.value(picks);
                assert!((found - expected).abs() < 1e-15, "{metric:?} {picks:?}");
            }
        }
        assert!(Resampled::of(Metric::Likelihood, &outputs).is_none());
    }
}
