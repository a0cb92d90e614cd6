//! Which rows a replay computes, from the flags.

use anyhow::{Result, bail};
use clap::Args;
use speculation::methods::names;
use speculation::methods::table::{TARGET, VERIFICATION};
use speculation::methods::{Choice, MethodSpec, SettingValue, Setup};
use speculation::session::Plan;
use speculation::target::{TargetDistribution, rules};
use speculation::verification::Verification;
use wire::v1;

/// A method, and what overrides its presets; lists are evaluated in every combination.
#[derive(Debug, Args)]
#[command(next_help_heading = "Method")]
pub(super) struct ChoiceArgs {
    /// Method to evaluate: see `outrider methods`. Not those that draft blocks of their own or none.
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// Deferral rules.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rule: Vec<String>,
    /// Trade-offs between the two models: range and default depend on the rule.
    #[arg(
        long,
        value_name = "AS",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    alpha: Vec<f64>,
    /// Residual parameter of lossy sampling, a number or `tuned`.
    #[arg(long, value_name = "B", allow_hyphen_values = true)]
    beta: Option<String>,
    /// Budgets of divergence of lossy sampling, in nats, in place of alpha and beta.
    #[arg(long, value_name = "NATS", value_delimiter = ',')]
    kl_budget: Vec<f64>,
    /// Overrides how the models take turns.
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// Overrides the distribution aimed at: `exact`, `lossy`, or a deferral rule.
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Overrides how draft blocks are verified.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    verification: Vec<String>,
}

/// What is evaluated in one row.
#[derive(Clone, Debug)]
pub(super) struct ReplayRow {
    /// Name of the method, or of the target distribution where no method was asked for.
    pub(super) name: &'static str,
    /// Parameters and their values.
    pub(super) parameters: Vec<(&'static str, String)>,
    pub(super) target: TargetDistribution,
    /// None for plans that verify no blocks.
    pub(super) verification: Option<Verification>,
    /// For those, target forwards a token: one, or those that the rule asks for.
    pub(super) calls: TargetCalls,
}

/// How often a plan calls the target model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetCalls {
    /// Once a block.
    Block,
    /// Where the rule defers.
    Deferred,
    /// At every token.
    Always,
}

impl ReplayRow {
    /// Name of the verification; a dash if there is none.
    pub(super) fn verification(&self) -> &'static str {
        self.verification
            .map_or("-", |verification| verification.name)
    }
}

impl ChoiceArgs {
    /// The rows, in the order of the flags.
    ///
    /// # Errors
    /// Names the flag that is unknown, out of range or does not go with another, or the method that
    /// cannot be evaluated on recorded blocks.
    pub(super) fn rows(&self, sampling: &v1::SamplingParams) -> Result<Vec<ReplayRow>> {
        let flags = [
            ("--rule", !self.rule.is_empty()),
            ("--alpha", !self.alpha.is_empty()),
            ("--beta", self.beta.is_some()),
            ("--kl-budget", !self.kl_budget.is_empty()),
        ];
        let methods = match &self.method {
            Some(method) => vec![(method.as_str(), None)],
            None if self.plan.is_some() || self.target.is_some() => vec![("", None)],
            None => {
                if let Some((flag, _)) = flags.iter().find(|(_, given)| *given) {
                    bail!("{flag}: of which method? Add --method, such as spec-cascade or lossy");
                }
                let targets = TARGET.forms();
                targets.into_iter().map(|name| ("", Some(name))).collect()
            }
        };
        let every = || VERIFICATION.forms().into_iter().map(Some).collect();
        let verifications: Vec<Option<&str>> = match (&self.verification[..], &self.method) {
            ([], None) if self.plan.is_none() => every(),
            ([], _) => vec![None],
            (given, _) => given.iter().map(|name| Some(name.as_str())).collect(),
        };
        let rules = or_preset(self.rule.iter().map(String::as_str));
        let alphas = or_preset(self.alpha.iter().copied());
        let budgets = or_preset(self.kl_budget.iter().copied());
        let trade_offs: Vec<_> = alphas
            .iter()
            .flat_map(|&alpha| budgets.iter().map(move |&budget| (alpha, budget)))
            .collect();
        let mut rows = Vec::new();
        for (method, target) in methods {
            for &rule in &rules {
                for &trade_off in &trade_offs {
                    for &verification in &verifications {
                        let target = target.or(self.target.as_deref());
                        let axes = RowAxes {
                            method,
                            target,
                            verification,
                        };
                        rows.push(self.row(&axes, rule, trade_off, sampling)?);
                    }
                }
            }
        }
        Ok(rows)
    }

    fn row(
        &self,
        axes: &RowAxes<'_>,
        rule: Option<&str>,
        (alpha, kl_budget): (Option<f64>, Option<f64>),
        sampling: &v1::SamplingParams,
    ) -> Result<ReplayRow> {
        let number = |number: Option<f64>| number.map(SettingValue::Number);
        let text = |text: Option<&str>| text.map(SettingValue::from);
        let mut spec = MethodSpec::new(axes.method);
        for (name, value) in [
            ("plan", text(self.plan.as_deref())),
            ("target", text(axes.target)),
            ("verification", text(axes.verification)),
            ("rule", text(rule)),
            ("alpha", number(alpha)),
            ("beta", self.beta.as_deref().map(SettingValue::read)),
            ("kl_budget", number(kl_budget)),
        ] {
            if let Some(value) = value {
                spec.set(name, value)?;
            }
        }
        // Whether the distributions were cut is of no matter: nothing is sent.
        let setup = Setup::at(sampling.temperature.unwrap_or(1.0));
        let choice = Choice::resolve(&spec, setup)?;
        ReplayRow::of(&choice, axes.method.is_empty())
    }
}

/// The axes one row is asked for with.
struct RowAxes<'a> {
    method: &'a str,
    target: Option<&'a str>,
    verification: Option<&'a str>,
}

/// The values given, or one that leaves the preset.
fn or_preset<T>(given: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let given: Vec<Option<T>> = given.map(Some).collect();
    if given.is_empty() { vec![None] } else { given }
}

impl ReplayRow {
    fn of(choice: &Choice, by_target: bool) -> Result<Self> {
        let (verification, calls) = match choice.plan {
            Plan::Speculative => (Some(choice.verification), TargetCalls::Block),
            Plan::OracleCascade => (None, TargetCalls::Always),
            Plan::TokenCascade { .. } => (None, TargetCalls::Deferred),
            Plan::TargetOnly | Plan::DraftOnly => bail!(
                "'{}' has nothing to evaluate, one of the models speaks alone",
                choice.effective_name()
            ),
            Plan::SequenceCascade { .. } | Plan::Bild { .. } => bail!(
                "'{}' cannot be evaluated on recorded blocks, it decides on blocks that it drafts by \
                 its own rule",
                choice.effective_name()
            ),
        };
        // A run of draft tokens is not among what is recorded, so its limit is left out.
        let settings = choice.settings().iter();
        let settings = settings
            .filter(|setting| setting.name != "max_run" && setting.value != SettingValue::NONE);
        let parameters = settings.map(|setting| (setting.name, setting.value.to_string()));
        let axes = choice.effective_axes();
        let target_name = axes.iter().find(|(axis, _)| *axis == "target");
        let parameters: Vec<_> = match target_name {
            // The rule's name is the row's.
            Some((_, target)) if by_target => {
                parameters.filter(|(_, value)| value != target).collect()
            }
            _ => parameters.collect(),
        };
        let name = match (by_target, target_name) {
            (true, Some((_, target))) => names::target(target)?.name(),
            _ => choice.name(),
        };
        Ok(Self {
            name,
            parameters,
            target: aim(choice),
            verification,
            calls,
        })
    }
}

/// What is aimed at, with the rule that acts through the plan, if one does.
fn aim(choice: &Choice) -> TargetDistribution {
    if !matches!(choice.plan, Plan::TokenCascade { .. }) {
        return choice.target;
    }
    let (mut rule, mut alpha) = (rules::CHOW, rules::CHOW.alpha.default);
    for setting in choice.settings() {
        match setting.name {
            "rule" => rule = setting.value.rule().unwrap_or(rule),
            "alpha" => alpha = setting.value.number().unwrap_or(alpha),
            _ => {}
        }
    }
    TargetDistribution::Deferral { rule, alpha }
}
