//! Flags that choose a method, its axes and its parameters; shared by the commands that generate.

use anyhow::Result;
use clap::Args;
use wire::named::NamedMethod;
use wire::v1;

use super::drafting::as_flag;
use super::{DraftingArgs, Suggested};

/// A method, and what overrides its presets.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Method")]
pub struct MethodArgs {
    /// How draft tokens become output, see `outrider methods`.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "coupled",
        value_parser = Suggested::METHOD,
        hide_possible_values = true
    )]
    pub method: String,
    /// Trade-off between the two models: range and default depend on the rule.
    #[arg(long, value_name = "A", hide_short_help = true)]
    pub alpha: Option<f64>,
    /// Deferral rule of a cascade: see `outrider methods`.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = Suggested::RULE,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub rule: Option<String>,
    /// Residual parameter of lossy sampling, a number or `tuned`.
    #[arg(
        long,
        value_name = "B",
        allow_negative_numbers = true,
        value_parser = Suggested::BETA,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub beta: Option<String>,
    /// Lossy sampling: largest divergence from the target at a position, in nats, in place of alpha and beta.
    #[arg(long, value_name = "NATS", hide_short_help = true)]
    pub kl_budget: Option<f64>,
    /// BiLD: the drafter hands over to the target where its confidence is below this.
    #[arg(long, value_name = "P", hide_short_help = true)]
    pub fallback: Option<f64>,
    /// BiLD: most draft tokens in a row before the verifier checks them.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub window: Option<u32>,
    /// BiLD: the verifier also checks the draft tokens that end the output.
    #[arg(long, hide_short_help = true)]
    pub verify_on_finish: bool,
    /// BiLD: runs as its authors' code does.
    #[arg(long, hide_short_help = true)]
    pub code_variant: bool,
    /// Token cascade: most draft tokens in a row before the target must add one; 0 is no limit.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub max_run: Option<u32>,
    /// Sequence cascade: whether an answer's score is the mean log probability of its tokens, as it is if not
    /// given, or their sum.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_short_help = true
    )]
    pub mean: Option<bool>,
    /// Overrides how the models take turns.
    #[arg(
        long,
        value_name = "PLAN",
        value_parser = Suggested::PLAN,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub plan: Option<String>,
    /// Overrides the distribution aimed at: `exact`, `lossy`, or a deferral rule.
    #[arg(
        long = "target-distribution",
        alias = "target",
        value_name = "NAME",
        value_parser = Suggested::TARGET,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub target: Option<String>,
    /// Overrides how draft blocks are verified.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = Suggested::VERIFICATION,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub verification: Option<String>,
    /// Overrides what is sent of the draft distribution: `none`, `point`, `sparse:K`, `dense`, `dense:f16`.
    #[arg(
        long,
        value_name = "FORM",
        value_parser = Suggested::PROPOSAL,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub proposal: Option<String>,
    /// Who decides acceptance: `verifier` (the default) or `coordinator`.
    #[arg(
        long,
        value_name = "WHO",
        value_parser = Suggested::ACCEPT_AT,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub accept_at: Option<String>,
    #[command(flatten)]
    /// Who drafts, how much and in which shape.
    pub drafting: DraftingArgs,
}

impl MethodArgs {
    /// Writes the choice to `request`; what was not given is left to the coordinator.
    ///
    /// # Errors
    /// Names the flag whose value is unknown. Whether they go together, the coordinator checks.
    pub fn apply(&self, request: &mut v1::GenerateRequest) -> Result<()> {
        self.named().apply(request).map_err(as_flag)
    }

    /// The choice by names.
    fn named(&self) -> NamedMethod {
        NamedMethod {
            method: self.method.clone(),
            alpha: self.alpha,
            rule: self.rule.clone(),
            beta: self.beta.clone(),
            kl_budget: self.kl_budget,
            fallback: self.fallback,
            window: self.window,
            verify_on_finish: self.verify_on_finish.then_some(true),
            code_variant: self.code_variant.then_some(true),
            max_run: self.max_run,
            mean: self.mean,
            plan: self.plan.clone(),
            target: self.target.clone(),
            verification: self.verification.clone(),
            proposal: self.proposal.clone(),
            accept_at: self.accept_at.clone(),
            drafting: self.drafting.named(),
        }
    }
}
