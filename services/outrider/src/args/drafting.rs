//! Flags that choose who drafts, how much and in which shape; shared by the commands that generate.

use anyhow::{Error, Result, anyhow};
use clap::Args;
use speculation::bad_value::BadValue;
use wire::named::NamedDrafting;
use wire::v1;

use super::Suggested;

/// The axes of drafting.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Drafting")]
pub struct DraftingArgs {
    /// Who proposes: `model` (the default), `max-gram` (what followed the longest earlier match of the
    /// text's end; no model), or `cascade` (several draft models).
    #[arg(
        long,
        value_name = "WHO",
        value_parser = Suggested::DRAFTING,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub drafting: Option<String>,
    /// Draft tokens a round: `auto`, 1 to 64, or a policy.
    ///
    /// `auto`, the default, drafts as many as pay, by measured acceptance, times and load, and none where drafting does not pay.
    /// `confidence:P` and `entropy:NATS` stop before a token the draft model is unsure of, `specdec++:H` where a
    /// trained head expects a refusal.
    #[arg(
        long,
        value_name = "K|POLICY",
        value_parser = Suggested::DRAFT_LEN,
        hide_possible_values = true
    )]
    pub draft_len: Option<String>,
    /// Most draft tokens a round where a policy or a cascade decides, 1 to 64; 20 if not given.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub draft_cap: Option<u32>,
    /// Shape of blocks: `chain` (the default), `comb:N` (each token with its N - 1 most likely siblings),
    /// or `alternates:N` (each with the N next choices under the shared noise). --draft-len is the depth.
    #[arg(
        long,
        value_name = "SHAPE",
        value_parser = Suggested::TREE,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub tree: Option<String>,
}

impl DraftingArgs {
    /// Writes the choice to `request`, in which a fixed number of draft tokens may stand already; what was
    /// not given is left to the coordinator.
    ///
    /// # Errors
    /// Names the flag whose value is unknown, and `--draft-cap` where a number is the length. Whether
    /// they go together, the coordinator checks.
    pub fn apply(&self, request: &mut v1::GenerateRequest) -> Result<()> {
        self.named().apply(request).map_err(as_flag)
    }

    /// The choice by names.
    pub(super) fn named(&self) -> NamedDrafting {
        NamedDrafting {
            drafting: self.drafting.clone(),
            draft_len: self.draft_len.clone(),
            draft_cap: self.draft_cap,
            tree: self.tree.clone(),
        }
    }
}

/// A fault in a value, by the name of its flag.
pub(super) fn as_flag(BadValue { field, problem }: BadValue) -> Error {
    match &*field {
        "target" => anyhow!("--target-distribution: {problem}"),
        field => anyhow!("--{}: {problem}", field.replace('_', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(args: &DraftingArgs) -> Result<v1::GenerateRequest> {
        let mut request = v1::GenerateRequest {
            draft_len: Some(5),
            ..Default::default()
        };
        args.apply(&mut request).map(|()| request)
    }

    fn len(text: &str, cap: Option<u32>) -> DraftingArgs {
        DraftingArgs {
            draft_len: Some(text.to_owned()),
            draft_cap: cap,
            ..Default::default()
        }
    }

    #[test]
    fn a_policy_has_a_cap_and_a_number_is_the_length() {
        use v1::draft_length::Policy;
        let reported = |args: &DraftingArgs| {
            let request = request(args).expect("flags");
            let policy = request.draft_length.and_then(|length| length.policy);
            (request.draft_len, policy)
        };
        assert_eq!(reported(&DraftingArgs::default()), (Some(5), None));
        assert_eq!(reported(&len("7", None)), (Some(7), None));
        // Not the number that stands there for fixed lengths.
        let goodput = Some(Policy::Goodput(true));
        assert_eq!(reported(&len("auto", None)), (None, goodput.clone()));
        assert_eq!(
            reported(&len("goodput", Some(9))),
            (Some(9), goodput.clone())
        );
        // `--draft-cap` alone limits `auto`. Without flags the request stays
        // empty.
        let mut open = v1::GenerateRequest::default();
        DraftingArgs::default().apply(&mut open).expect("flags");
        assert_eq!(open, v1::GenerateRequest::default());
        let capped = DraftingArgs {
            draft_cap: Some(9),
            ..Default::default()
        };
        capped.apply(&mut open).expect("flags");
        let policy = open.draft_length.and_then(|length| length.policy);
        assert_eq!((open.draft_len, policy), (Some(9), goodput));
        let unsure = Some(Policy::Confidence(0.4));
        assert_eq!(reported(&len("confidence:0.4", None)), (None, unsure));
        let cascade = DraftingArgs {
            drafting: Some("cascade".to_owned()),
            ..Default::default()
        };
        assert_eq!(reported(&cascade), (Some(20), None));
        let error = request(&len("7", Some(9))).expect_err("both").to_string();
        assert!(error.starts_with("--draft-cap: 9"), "{error}");
    }

    #[test]
    fn who_and_shape_reach_the_request() {
        let args = DraftingArgs {
            drafting: Some("max-gram".to_owned()),
            tree: Some("comb:8".to_owned()),
            ..Default::default()
        };
        let request = request(&args).expect("flags");
        assert_eq!(request.drafting(), v1::Drafting::MaxGram);
        let shape = request.tree.and_then(|tree| tree.shape);
        assert_eq!(shape, Some(v1::tree_shape::Shape::Comb(8)));
    }

    #[test]
    fn what_is_unknown_is_named() {
        let guess = DraftingArgs {
            drafting: Some("guess".to_owned()),
            ..Default::default()
        };
        let narrow = DraftingArgs {
            tree: Some("comb:1".to_owned()),
            ..Default::default()
        };
        for (args, words) in [
            (len("specdec++", None), "specdec++"),
            (len("confidence:2", None), "0 to 1"),
            (guess, "max-gram"),
            (narrow, "2 to 64"),
        ] {
            let error = request(&args).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
