//! Outputs judged: by metrics, and by a user's own program.

use client::Client;
use outrider::prompts::Example;

use super::likelihood::TargetScorer;
use super::scorer::Scorer;
use crate::quality::{LogLikelihood, Metric, Scale, Score};
use crate::report::{ReportField, number, only_json, percent};
use crate::request::RequestForm;

/// What a scorer's scores are called.
const SCORER: &str = "score";

/// What outputs are judged by, in the order of columns.
#[derive(Debug)]
pub(super) struct Criteria {
    pub(super) metrics: Vec<Metric>,
    /// Behind the metrics.
    pub(super) scorer: Option<Scorer>,
}

/// An output, and which of the task's items it belongs to.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) item: usize,
    pub(super) text: String,
    /// Shape `(tokens,)`.
    pub(super) token_ids: Vec<u32>,
}

impl Criteria {
    /// Returns what is told of them: the name and the scale of each, in order.
    fn columns(&self) -> Vec<(&'static str, Scale)> {
        let metrics = self.metrics.iter();
        let metrics = metrics.map(|metric| (metric.name(), metric.scale()));
        let scorer = self.scorer.iter().map(|_| (SCORER, Scale::Number));
        metrics.chain(scorer).collect()
    }

    /// Whether any of them compares with references.
    pub(super) fn need_references(&self) -> bool {
        self.metrics.iter().any(|metric| metric.needs_reference())
    }

    /// Returns what stands beside the axis of a plot of the first.
    pub(super) fn axis(&self) -> String {
        match self.columns().first() {
            Some((_, Scale::Right)) | None => "right answers, percent".to_owned(),
            Some((name, Scale::Share)) => format!("{name}, percent"),
            Some((name, Scale::Nats)) => format!("{name}, ln a token"),
            Some((name, Scale::Number)) => (*name).to_owned(),
        }
    }

    /// Returns the names, in words.
    pub(super) fn names(&self) -> String {
        let names = self.columns().into_iter().map(|(name, _)| name);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the columns of `scores`, one score for each criterion; that of the first is called `quality` in JSON.
    pub(super) fn fields(&self, scores: &[Score]) -> Vec<ReportField> {
        let mut fields = Vec::new();
        for (index, ((name, scale), score)) in self.columns().into_iter().zip(scores).enumerate() {
            let suffix = match index {
                0 => String::new(),
                _ => format!("_{}", name.replace('-', "_")),
            };
            let key = format!("quality{suffix}");
            let field = match scale {
                Scale::Right | Scale::Share => percent(key, score.value, 1),
                Scale::Nats | Scale::Number => number(key, score.value, 3),
            };
            let heading = match (index, scale) {
                (0, Scale::Right) => "right",
                _ => name,
            };
            fields.push(field.called(heading).said(words(scale, *score)));
            let error = format!("standard_error{suffix}");
            fields.push(only_json(error, score.standard_error));
        }
        fields
    }

    /// Returns the first of `scores` in words.
    pub(super) fn summary(&self, scores: &[Score]) -> String {
        match (self.columns().first(), scores.first()) {
            (Some((name, scale)), Some(score)) => format!("{} {name}", words(*scale, *score)),
            _ => String::new(),
        }
    }
}

/// Returns a score with its error.
fn words(scale: Scale, score: Score) -> String {
    let (factor, decimals, unit) = match scale {
        Scale::Right | Scale::Share => (100.0, 1, "%"),
        Scale::Nats | Scale::Number => (1.0, 3, ""),
    };
    let value = factor * score.value;
    match score.standard_error {
        Some(error) => format!("{value:.decimals$} +- {:.decimals$}{unit}", factor * error),
        None => format!("{value:.decimals$}{unit}"),
    }
}

/// Judges outputs of one task.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    criteria: &'a Criteria,
    items: &'a [Example],
    /// Where a metric asks the target model.
    target: Option<TargetScorer<'a>>,
    /// The likelihood of the references, which is the same for all methods.
    references: Option<Score>,
}

impl<'a> Judge<'a> {
    /// Returns the judge, who asks the coordinator of `client` for likelihoods.
    ///
    /// # Errors
    /// If a likelihood is asked for and cannot be had.
    pub(super) async fn new(
        criteria: &'a Criteria,
        items: &'a [Example],
        client: &'a Client,
        form: &'a RequestForm,
    ) -> anyhow::Result<Self> {
        let has = |metric| criteria.metrics.contains(&metric);
        let of_references = has(Metric::ReferenceLikelihood);
        let mut target = None;
        if of_references || has(Metric::Likelihood) {
            target = Some(TargetScorer::new(client, form).await?);
        }
        let mut references = None;
        if let Some(target) = target.as_mut().filter(|_| of_references) {
            let mut parts = Vec::new();
            for item in items {
                parts.push(target.reference(item).await?);
            }
            references = Some(LogLikelihood::score(&parts));
        }
        Ok(Self {
            criteria,
            items,
            target,
            references,
        })
    }

    /// Returns the scores of `outputs`, one for each criterion.
    ///
    /// # Errors
    /// If the coordinator or the program that is asked fails.
    pub(super) async fn scores(&mut self, outputs: &[Output]) -> anyhow::Result<Vec<Score>> {
        let items = self.items;
        let compared: Vec<_> = outputs
            .iter()
            .map(|output| (&output.text[..], &items[output.item].references[..]))
            .collect();
        let mut scores = Vec::new();
        for metric in &self.criteria.metrics {
            scores.push(match metric.score(&compared) {
                Some(score) => score,
                None => self.likelihood(*metric, outputs).await?,
            });
        }
        if let Some(scorer) = &self.criteria.scorer {
            let outputs: Vec<_> = outputs
                .iter()
                .map(|output| (&items[output.item], &output.text[..]))
                .collect();
            scores.push(Score::mean(&scorer.scores(&outputs).await?));
        }
        Ok(scores)
    }

    async fn likelihood(&mut self, metric: Metric, outputs: &[Output]) -> anyhow::Result<Score> {
        let mut parts = Vec::new();
        match (metric, self.references, &mut self.target) {
            (Metric::ReferenceLikelihood, Some(known), _) => return Ok(known),
            (_, _, Some(target)) => {
                for output in outputs {
                    let item = &self.items[output.item];
                    parts.push(target.output(item, &output.token_ids).await?);
                }
            }
            (_, _, None) => anyhow::bail!("--metric: {} was not prepared", metric.name()),
        }
        Ok(LogLikelihood::score(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BenchReport;

    fn criteria(metrics: &[Metric], scorer: Option<&str>) -> Criteria {
        Criteria {
            metrics: metrics.to_vec(),
            scorer: scorer.map(|line| Scorer::parse(line).expect("a program")),
        }
    }

    #[test]
    fn each_criterion_has_its_column_with_its_error() {
        let criteria = criteria(
            &[Metric::Exact, Metric::Bleu, Metric::Likelihood],
            Some("judge"),
        );
        let scores = [
            Score::mean(&[1.0, 1.0, 0.0, 1.0]),
            Score::whole(0.352),
            Score::mean(&[-0.5, -0.25]),
            Score::mean(&[2.0]),
        ];
        let mut report = BenchReport::quiet();
        let row = criteria.fields(&scores);
        report.row("points", row).expect("nothing is printed");
        let text = report.text();
        for words in [
            "| right",
            "| bleu",
            "| likelihood",
            "| score",
            "75.0 +- 21.7%",
            "35.2%",
            "-0.375 +- 0.088",
            "2.000 +- 0.000",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let keys: Vec<_> = criteria.fields(&scores);
        assert_eq!(keys.len(), 8);
        assert_eq!(criteria.summary(&scores), "75.0 +- 21.7% exact");
        assert_eq!(criteria.names(), "exact, bleu, likelihood, score");
    }

    #[test]
    fn a_plot_is_of_the_first_criterion() {
        for (metrics, scorer, axis) in [
            (
                &[Metric::LastNumber, Metric::F1][..],
                None,
                "right answers, percent",
            ),
            (&[Metric::RougeL], None, "rouge-l, percent"),
            (&[Metric::Likelihood], None, "likelihood, ln a token"),
            (&[], Some("judge"), "score"),
        ] {
            assert_eq!(criteria(metrics, scorer).axis(), axis);
        }
        assert!(!criteria(&[Metric::Likelihood], Some("judge")).need_references());
        assert!(criteria(&[Metric::Likelihood, Metric::Exact], None).need_references());
    }
}
