//! Names and values of the axes of drafting: who proposes, how much, in which shape.

use strum::{EnumMessage, VariantArray};

use super::{BadValue, out_of_range, plain, ranged, unknown};
use crate::drafting::policies::{POLICIES, StopPolicy};
use crate::drafting::{DraftLen, Drafting, Schedule, StopRule, TreeShape};
use crate::methods::setting::AxisValue;

/// Most draft tokens of a round where a request does not say.
pub const DRAFT_CAP: u32 = 20;

/// Most draft tokens of a round.
pub const DRAFT_MOST: u32 = 64;

/// Fewest and most siblings of a comb, the lead among them.
pub const COMB: (u32, u32) = (2, 64);

/// Fewest and most alternates of a node.
pub const ALTERNATES: (u32, u32) = (1, 16);

/// Fewest draft tokens of a block that a policy ends, where it does not say.
const LEAST: u32 = 1;

/// Those who can propose, the default first.
pub fn draftings() -> Vec<AxisValue> {
    let described = |drafting: &Drafting| {
        let help = drafting.get_message().unwrap_or_default();
        plain(of_drafting(*drafting), help)
    };
    Drafting::VARIANTS.iter().map(described).collect()
}

/// The forms of draft lengths, the default first; K and the letters stand for numbers.
pub fn draft_lens() -> Vec<AxisValue> {
    let mut forms = vec![
        plain(
            "auto",
            "as many as pay, by measured acceptance, times and load; none where drafting does not pay",
        ),
        ranged("K", format!("1 to {DRAFT_MOST}"), "always this many"),
    ];
    forms.extend(POLICIES.iter().map(|policy| {
        let (least, most) = policy.range;
        ranged(policy.form, format!("{least} to {most}"), policy.summary)
    }));
    forms
}

/// The forms of blocks, the default first; N stands for a number.
pub fn trees() -> Vec<AxisValue> {
    vec![
        plain("chain", "one token after the other"),
        ranged(
            "comb:N",
            format!("{} to {}", COMB.0, COMB.1),
            "each token has N - 1 siblings beside it, the most likely other tokens",
        ),
        ranged(
            "alternates:N",
            format!("{} to {}", ALTERNATES.0, ALTERNATES.1),
            "each token has the N next choices under the shared noise beside it",
        ),
    ]
}

/// The schedules, the default first.
pub fn schedules() -> Vec<AxisValue> {
    let described = |schedule: &Schedule| {
        let help = schedule.get_message().unwrap_or_default();
        plain(of_schedule(*schedule), help)
    };
    let auto = plain(
        AUTO,
        "stream where there is no drafter, or drafters take no time from the target; else rounds",
    );
    let named = Schedule::VARIANTS.iter().map(described);
    std::iter::once(auto).chain(named).collect()
}

/// What leaves a schedule to the service.
pub const AUTO: &str = "auto";

/// The schedule called `text`; none of [`AUTO`].
///
/// # Errors
/// If there is none; the message lists them all.
pub fn schedule(text: &str) -> Result<Option<Schedule>, BadValue> {
    if text == AUTO {
        return Ok(None);
    }
    let named = text.parse().map(Some);
    named.map_err(|_| unknown("schedule", text, &schedules()))
}

/// The name of `schedule`.
pub fn of_schedule(schedule: Schedule) -> &'static str {
    schedule.into()
}

/// Who is called `text` proposes.
///
/// # Errors
/// If there is none; the message lists them all.
pub fn drafting(text: &str) -> Result<Drafting, BadValue> {
    text.parse()
        .map_err(|_| unknown("drafting", text, &draftings()))
}

/// The name of `drafting`.
pub fn of_drafting(drafting: Drafting) -> &'static str {
    drafting.into()
}

/// The draft length `text`: a number of tokens, which comes with it, `fixed` for the number given elsewhere, `auto`,
/// `confidence:0.4`, `entropy:2` or `specdec++:0.7`. A second number says how many tokens are drafted at least, if not
/// one: `specdec++:0.7:0`.
///
/// # Errors
/// If it is none of them, or its number is out of range.
pub fn draft_len(text: &str) -> Result<(DraftLen, Option<u32>), BadValue> {
    let bad = || unknown("draft_len", text, &draft_lens());
    match text.split_once(':') {
        None if text == "fixed" => Ok((DraftLen::Fixed, None)),
        None if text == "auto" => Ok((DraftLen::Auto, None)),
        None => {
            // A number that is too large for a u32 is out of range, too.
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number {
                return Err(bad());
            }
            let len = text.parse().ok();
            let len = len.filter(|len| (1..=DRAFT_MOST).contains(len));
            let range = format!("1 to {DRAFT_MOST}");
            let len = len.ok_or_else(|| out_of_range("draft_len", text, &range))?;
            Ok((DraftLen::Fixed, Some(len)))
        }
        Some((name, threshold)) => {
            let policy = StopPolicy::find(name).ok_or_else(bad)?;
            let (threshold, least) = match threshold.split_once(':') {
                Some((threshold, least)) => (threshold, least.parse().map_err(|_| bad())?),
                None => (threshold, LEAST),
            };
            let threshold = threshold.parse().map_err(|_| bad())?;
            let rule = StopRule::new(policy, threshold).with_least(least);
            check_stop_rule(rule, policy, threshold)?;
            Ok((DraftLen::Stop(rule), None))
        }
    }
}

/// The name of `len`; a fixed one's number stands elsewhere.
pub fn of_draft_len(len: DraftLen) -> String {
    match len {
        DraftLen::Fixed => "fixed".to_owned(),
        DraftLen::Stop(rule) => match rule.policy() {
            Some((policy, threshold)) if rule.least() == LEAST => {
                format!("{}:{threshold}", policy.name)
            }
            Some((policy, threshold)) => format!("{}:{threshold}:{}", policy.name, rule.least()),
            None => "fixed".to_owned(),
        },
        DraftLen::Auto => "auto".to_owned(),
    }
}

/// The shape of blocks `text`: `chain`, `comb:8` or `alternates:2`.
///
/// # Errors
/// If it is none of them, or its number is out of range.
pub fn tree(text: &str) -> Result<TreeShape, BadValue> {
    let bad = || unknown("tree", text, &trees());
    let numbered = |shape: fn(u32) -> TreeShape, number: &str, (least, most): (u32, u32)| {
        let number: u32 = number.parse().map_err(|_| bad())?;
        let fits = (least..=most).contains(&number);
        let shape = shape(number);
        let range = format!("{least} to {most}");
        let refused = || out_of_range("tree", &of_tree(shape), &range);
        fits.then_some(shape).ok_or_else(refused)
    };
    match text.split_once(':') {
        None if text == "chain" => Ok(TreeShape::Chain),
        Some(("comb", siblings)) => numbered(TreeShape::Comb, siblings, COMB),
        Some(("alternates", alternates)) => numbered(TreeShape::Alternates, alternates, ALTERNATES),
        _ => Err(bad()),
    }
}

/// The name of `shape`.
pub fn of_tree(shape: TreeShape) -> String {
    match shape {
        TreeShape::Chain => "chain".to_owned(),
        TreeShape::Comb(siblings) => format!("comb:{siblings}"),
        TreeShape::Alternates(alternates) => format!("alternates:{alternates}"),
    }
}

/// Checks that the numbers of `rule` lie in their ranges. NaN lies in none.
fn check_stop_rule(rule: StopRule, policy: &StopPolicy, threshold: f64) -> Result<(), BadValue> {
    if rule.least() > DRAFT_MOST {
        let least = format!("{} tokens at least", rule.least());
        let range = format!("0 to {DRAFT_MOST}");
        return Err(out_of_range("draft_len", &least, &range));
    }
    let (least, most) = policy.range;
    if (least..=most).contains(&threshold) {
        return Ok(());
    }
    let range = format!("{} of {least} to {most}", policy.threshold);
    let name = of_draft_len(DraftLen::Stop(rule));
    Err(out_of_range("draft_len", &name, &range))
}
