//! Names and values of the axes of drafting: who proposes, how much, in which shape.

use super::{BadValue, unknown};
use crate::drafting::policies::{POLICIES, StopPolicy};
use crate::drafting::{DraftLen, Drafting, StopRule, TreeShape};

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

const DRAFTINGS: [(&str, Drafting); 3] = [
    ("model", Drafting::Model),
    ("max-gram", Drafting::MaxGram),
    ("cascade", Drafting::Cascade),
];

/// Other names of those who can propose, as other servers call them.
const OTHER_NAMES: [(&str, Drafting); 3] = [
    ("ngram", Drafting::MaxGram),
    ("lookup", Drafting::MaxGram),
    ("prompt-lookup", Drafting::MaxGram),
];

/// The names of those who can propose, the default first.
pub fn draftings() -> Vec<&'static str> {
    DRAFTINGS.iter().map(|&(name, _)| name).collect()
}

/// The forms of draft lengths, the default first; K and the letters stand for numbers.
pub fn draft_lens() -> Vec<&'static str> {
    let policies = POLICIES.iter().map(|policy| policy.form);
    ["auto", "K"].into_iter().chain(policies).collect()
}

/// The forms of blocks, the default first; N stands for a number.
pub fn trees() -> Vec<&'static str> {
    vec!["chain", "comb:N", "alternates:N"]
}

/// Who is called `text` proposes.
///
/// # Errors
/// If there is none; the message lists them all.
pub fn drafting(text: &str) -> Result<Drafting, BadValue> {
    let mut known = DRAFTINGS.iter().chain(&OTHER_NAMES);
    let known = known.find(|(name, _)| *name == text);
    known
        .map(|&(_, drafting)| drafting)
        .ok_or_else(|| unknown("drafting", text, &draftings()))
}

/// The name of `drafting`.
pub fn of_drafting(drafting: Drafting) -> &'static str {
    let known = DRAFTINGS.iter().find(|(_, known)| *known == drafting);
    known.map_or("model", |&(name, _)| name)
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
            let len = text
                .parse()
                .ok()
                .filter(|len| (1..=DRAFT_MOST).contains(len));
            let len =
                len.ok_or_else(|| out_of_range("draft_len", text, &format!("1 to {DRAFT_MOST}")))?;
            Ok((DraftLen::Fixed, Some(len)))
        }
        Some((name, threshold)) => {
            let policy = StopPolicy::find(name).ok_or_else(bad)?;
            let (threshold, least) = match threshold.split_once(':') {
                Some((threshold, least)) => (threshold, least.parse().map_err(|_| bad())?),
                None => (threshold, LEAST),
            };
            let threshold = threshold.parse().map_err(|_| bad())?;
            let len = DraftLen::Stop(StopRule::new(policy, threshold).with_least(least));
            check_draft_len(len)?;
            Ok((len, None))
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
    let number = |text: &str| text.parse().map_err(|_| bad());
    let shape = match text.split_once(':') {
        None if text == "chain" => TreeShape::Chain,
        Some(("comb", siblings)) => TreeShape::Comb(number(siblings)?),
        Some(("alternates", alternates)) => TreeShape::Alternates(number(alternates)?),
        _ => return Err(bad()),
    };
    check_tree(shape)?;
    Ok(shape)
}

/// The name of `shape`.
pub fn of_tree(shape: TreeShape) -> String {
    match shape {
        TreeShape::Chain => "chain".to_owned(),
        TreeShape::Comb(siblings) => format!("comb:{siblings}"),
        TreeShape::Alternates(alternates) => format!("alternates:{alternates}"),
    }
}

/// Whether the numbers of `len` lie in their ranges. NaN lies in none.
fn check_draft_len(len: DraftLen) -> Result<(), BadValue> {
    let DraftLen::Stop(rule) = len else {
        return Ok(());
    };
    let Some((policy, threshold)) = rule.policy() else {
        return Ok(());
    };
    if rule.least() > DRAFT_MOST {
        let least = format!("{} tokens at least", rule.least());
        return Err(out_of_range(
            "draft_len",
            &least,
            &format!("0 to {DRAFT_MOST}"),
        ));
    }
    let (least, most) = policy.range;
    if (least..=most).contains(&threshold) {
        return Ok(());
    }
    let range = format!("{} of {least} to {most}", policy.threshold);
    Err(out_of_range("draft_len", &of_draft_len(len), &range))
}

/// Whether the number of `shape` lies in its range.
fn check_tree(shape: TreeShape) -> Result<(), BadValue> {
    let (number, (least, most)) = match shape {
        TreeShape::Chain => return Ok(()),
        TreeShape::Comb(siblings) => (siblings, COMB),
        TreeShape::Alternates(alternates) => (alternates, ALTERNATES),
    };
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let range = format!("{least} to {most}");
    Err(out_of_range("tree", &of_tree(shape), &range))
}

fn out_of_range(field: &str, text: &str, expected: &str) -> BadValue {
    BadValue::new(
        field,
        format!("'{text}' is out of range, expected {expected}"),
    )
}
