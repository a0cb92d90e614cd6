//! Which method a request asks for, from what it chooses to a checked choice, and how long its draft blocks are.

use fleet::ServedModel;
use speculation::bad_value::BadValue;
use speculation::drafting::{DraftLen, Drafting};
use speculation::methods::names::{AUTO, of_drafting};
use speculation::methods::{Choice, METHODS, MethodSpec, Setting, Setup};
use speculation::sampling::SamplingParams;
use wire::settings::{FIELD, named};
use wire::status::BadField;

use crate::config::CoordinatorConfig;

/// Resolves `spec`, and checks it against the deployment and against the peers of `model`; `reports` tells whether
/// distributions are to be reported. `usual` are defaults that apply where `spec` does not give these settings.
///
/// # Errors
/// Names the field that is unknown, out of range, not taken, or not allowed here.
pub(super) fn choose(
    spec: &MethodSpec,
    reports: bool,
    sampling: &SamplingParams,
    model: &ServedModel,
    config: &CoordinatorConfig,
    usual: &UsualSettings,
) -> Result<Choice, BadField> {
    let setup = Setup {
        temperature: sampling.temperature,
        cuts: sampling.cuts(),
        draft_len: config.draft_len.fixed().map(|_| DraftLen::Fixed),
    };
    let choice = resolve(spec, usual, setup).map_err(named)?;
    if config.lossless_only && !choice.is_lossless() {
        let problem = format!(
            "'{}' as it is asked for is not lossless, and only lossless methods are allowed here; \
             choose one of {}",
            choice.name(),
            lossless_methods().join(", ")
        );
        return Err(BadField::new("method", problem));
    }
    if choice.depends_on_draft() && !model.has_drafters() {
        let problem = format!(
            "'{}' needs a drafter, {}",
            choice.name(),
            model.why_no_drafter()
        );
        return Err(BadField::new("method", problem));
    }
    if choice.accept_at_coordinator && !config.allow_accept_at_coordinator {
        let problem =
            "coordinator is not allowed here (coordinator.allow_accept_at_coordinator is false)";
        return Err(BadField::new(format!("{FIELD}.accept_at"), problem));
    }
    if reports && !config.allow_distribution_reports {
        let problem = "not allowed here (coordinator.allow_distribution_reports is false)";
        return Err(BadField::new("report_distributions", problem));
    }
    if reports && !choice.accept_at_coordinator {
        let problem =
            "distributions come to the coordinator only where it decides; set accept_at to it";
        return Err(BadField::new("report_distributions", problem));
    }
    if reports && choice.drafting != Drafting::Model {
        let problem = format!(
            "sends the unscaled distributions and confidences of a draft model, and drafting '{}' tells of its \
             tokens nothing but their distributions; leave it out, or choose drafting model",
            of_drafting(choice.drafting)
        );
        return Err(BadField::new("report_distributions", problem));
    }
    Ok(choice)
}

/// Settings that apply where a request does not give them.
pub(crate) type UsualSettings = Vec<(&'static Setting, &'static str)>;

/// Resolves `spec`. The defaults `usual` apply if `spec` does not give these settings, or leaves them open, if they are compatible with the rest, and
/// if the output does not depend on the draft model.
fn resolve(spec: &MethodSpec, usual: &UsualSettings, setup: Setup) -> Result<Choice, BadValue> {
    let is_open = |setting| spec.text(setting).is_none_or(|text| text == AUTO);
    let missing = usual.iter().filter(|(setting, _)| is_open(setting));
    if missing.clone().next().is_some() {
        let with = |spec: MethodSpec, (setting, value): &(&Setting, &'static str)| {
            spec.with(setting.name, *value)
        };
        let by_usual = missing.fold(spec.clone(), with);
        let choice = Choice::resolve(&by_usual, setup);
        if let Some(choice) = choice.ok().filter(|choice| !choice.depends_on_draft()) {
            return Ok(choice);
        }
    }
    Choice::resolve(spec, setup)
}

fn lossless_methods() -> Vec<&'static str> {
    let lossless = METHODS.iter().filter(|method| method.is_lossless());
    lossless.map(|method| method.name).collect()
}

/// Returns the most levels of a draft block of `method`, of which the verifier takes `most_nodes` nodes.
///
/// What the verifier takes is a matter of its configuration, and shorter drafts change nothing but
/// speed: so a chain is cut in silence. A tree that was asked for in these very sizes is not.
///
/// # Errors
/// Names the tree, its sizes and the limit.
pub(super) fn draft_levels(
    method: &Choice,
    most_nodes: u32,
    config: &CoordinatorConfig,
) -> Result<u32, BadField> {
    let fixed = config.draft_len.fixed();
    let is_fixed = method.draft_len() == DraftLen::Fixed && method.drafting != Drafting::Cascade;
    let fixed = fixed.filter(|_| is_fixed);
    let default = fixed.unwrap_or(config.draft_cap);
    let width = method.tree.width();
    let fit = most_nodes / width;
    let refused = |problem: String| Err(BadField::new("settings.tree", problem));
    if fit == 0 {
        return refused(format!(
            "a level has {width} nodes, the verifier takes {most_nodes} in a round"
        ));
    }
    match method.draft_most {
        Some(levels) if width > 1 && levels > fit => refused(format!(
            "{levels} levels of {width} nodes are {}, the verifier takes {most_nodes} in a round; \
             ask for a draft_len of at most {fit}, or for fewer nodes a level",
            levels * width
        )),
        most => Ok(most.unwrap_or(default.get()).min(fit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(spec: &MethodSpec, most_nodes: u32) -> Result<u32, BadField> {
        let method = Choice::resolve(spec, Setup::at(1.0)).expect("a method");
        draft_levels(&method, most_nodes, &CoordinatorConfig::default())
    }

    #[test]
    fn what_is_not_named_has_a_cap() {
        let plain = MethodSpec::default;
        assert_eq!(levels(&plain(), 64), Ok(20));
        let fixed = plain().with("draft_len", 7);
        assert_eq!(levels(&fixed, 64), Ok(7));
        let stops = plain().with("draft_len", "confidence:0.4");
        assert_eq!(levels(&stops, 64), Ok(20));
        assert_eq!(levels(&stops.with("draft_cap", 9), 64), Ok(9));
        assert_eq!(levels(&plain().with("draft_len", "auto"), 64), Ok(20));
        for drafting in ["cascade", "max-gram"] {
            assert_eq!(levels(&plain().with("drafting", drafting), 64), Ok(20));
        }
        // A chain is cut to what the verifier takes.
        assert_eq!(levels(&plain().with("draft_len", 9), 3), Ok(3));
    }

    #[test]
    fn a_tree_fits_into_a_round_or_is_refused() {
        let tree = |draft_len: Option<u32>, siblings: u32| {
            let spec = MethodSpec::default().with("tree", format!("comb:{siblings}"));
            match draft_len {
                Some(len) => spec.with("draft_len", len),
                None => spec,
            }
        };
        assert_eq!(levels(&tree(None, 8), 64), Ok(8));
        assert_eq!(levels(&tree(Some(8), 8), 64), Ok(8));
        assert_eq!(levels(&tree(None, 8), 24), Ok(3));
        let of_cascade = |siblings| tree(None, siblings).with("drafting", "cascade");
        assert_eq!(levels(&of_cascade(8), 64), Ok(8));
        assert_eq!(levels(&of_cascade(3), 64), Ok(20));
        for (draft_len, most, words) in [
            (Some(9), 64, "9 levels of 8 nodes are 72"),
            (Some(4), 31, "at most 3"),
            (None, 7, "takes 7 in a round"),
        ] {
            let bad = levels(&tree(draft_len, 8), most).expect_err("too large");
            assert_eq!(bad.field, "settings.tree");
            assert!(bad.problem.contains(words), "{bad}");
        }
    }
}
