//! Draft tokens proposed to a decode under way, and what became of them.

use speculation::draft_tree::DraftTree;
use speculation::pending::{Claim, MOST_PROPOSED, ProposedTree, SOURCES};
use speculation::session::ScoredDrafts;
use speculation::verification::LastToken;

use crate::status::BadField;
use crate::{drafting, v1, verdict};

/// Steps of a survival's byte in which it falls by a factor e.
const STEPS: f32 = 16.0;

/// Writes a proposal.
pub fn to_wire(proposed: ProposedTree) -> v1::Append {
    let claims = proposed.claims.iter();
    let has_sources = claims.clone().any(|it| it.source > 0);
    let sources = claims.clone().filter(|_| has_sources).map(|it| it.source);
    v1::Append {
        after: proposed.after,
        path: proposed.path,
        tree: Some(drafting::tree_to_wire(&proposed.tree)),
        sources: sources.collect(),
        survivals: claims.map(|it| to_byte(it.survival)).collect(),
    }
}

/// Reads a proposal. Whether it fits the output is checked by [`speculation::pending::PendingTree::receive`].
///
/// # Errors
/// Names the field that is too large, no tree, or not as long as the others.
pub fn from_wire(wire: v1::Append) -> Result<ProposedTree, BadField> {
    let tree = wire.tree.unwrap_or_default();
    let nodes = tree.token_ids.len();
    BadField::at_most("append.path", wire.path.len(), MOST_PROPOSED, "tokens")?;
    BadField::at_most("append.tree.token_ids", nodes, MOST_PROPOSED, "tokens")?;
    let parents = drafting::parents_from_wire("append.tree.parents", &tree.parents)?;
    let tree = DraftTree::new(tree.token_ids, parents)
        .map_err(|bad| BadField::new("append.tree", bad.to_string()))?;
    let of_each = |field: &str, bytes: usize| {
        let problem = format!("{bytes} bytes for {nodes} nodes");
        Err(BadField::new(format!("append.{field}"), problem))
    };
    if wire.survivals.len() != nodes {
        return of_each("survivals", wire.survivals.len());
    }
    if wire.sources.len() != nodes && !wire.sources.is_empty() {
        return of_each("sources", wire.sources.len());
    }
    if let Some(&source) = wire.sources.iter().find(|&&it| usize::from(it) >= SOURCES) {
        BadField::in_range("append.sources", usize::from(source), 0..=SOURCES - 1)?;
    }
    let sources = wire.sources.iter().copied().chain(std::iter::repeat(0));
    let told = wire.survivals.iter().zip(sources);
    let claims = told.map(|(&byte, source)| Claim {
        source,
        survival: from_byte(byte),
    });
    Ok(ProposedTree {
        after: wire.after,
        path: wire.path,
        tree,
        claims: claims.collect(),
    })
}

/// Returns the probability rounded down, so that it stays no larger than one that it is not larger than.
fn to_byte(survival: f32) -> u8 {
    // The cast saturates, and turns NaN into 0.
    (-survival.ln() * STEPS).ceil() as u8
}

fn from_byte(byte: u8) -> f32 {
    (-f32::from(byte) / STEPS).exp()
}

/// Returns the kind of the last token on the wire; unspecified if no draft was `scored`.
pub fn last_of(scored: u32, last: LastToken) -> v1::LastToken {
    if scored == 0 {
        return v1::LastToken::Unspecified;
    }
    verdict::last_to_wire(last)
}

/// Adds what became of the drafts of another forward.
pub fn add(total: &mut v1::ForwardDrafts, forward: &v1::ForwardDrafts) {
    let add = |sum: &mut u32, more: u32| *sum = sum.saturating_add(more);
    add(&mut total.offered, forward.offered);
    add(&mut total.scored, forward.scored);
    add(&mut total.accepted, forward.accepted);
    add(&mut total.stale, forward.stale);
    add(&mut total.without_room, forward.without_room);
    add(&mut total.malformed, forward.malformed);
}

/// Reads what became of the drafts of a forward; none if no draft was scored.
///
/// # Errors
/// If it does not say what the last token is.
pub fn scored_from_wire(wire: &v1::ForwardDrafts) -> Result<Option<ScoredDrafts>, BadField> {
    if wire.scored == 0 {
        return Ok(None);
    }
    Ok(Some(ScoredDrafts {
        scored: wire.scored,
        accepted: wire.accepted,
        last: verdict::last_from_wire(wire.last)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed() -> ProposedTree {
        let claim = |source, survival| Claim { source, survival };
        ProposedTree {
            after: 7,
            path: vec![3, 4],
            tree: DraftTree::new(vec![5, 6, 7], vec![None, Some(0), Some(0)]).expect("a tree"),
            claims: vec![claim(0, 1.0), claim(2, 0.5), claim(0, 1e-3)],
        }
    }

    #[test]
    fn what_is_written_is_read_with_probabilities_rounded_down() {
        let read = from_wire(to_wire(proposed())).expect("in range");
        let expected = proposed();
        assert_eq!((read.after, &read.path), (7, &vec![3, 4]));
        assert_eq!(read.tree, expected.tree);
        for (read, expected) in read.claims.iter().zip(&expected.claims) {
            assert_eq!(read.source, expected.source);
            let share = read.survival / expected.survival;
            assert!((0.93..=1.0).contains(&share), "{read:?} {expected:?}");
        }
        // Rising survivals are never made of equal or falling ones.
        let bytes: Vec<u8> = (1..=1_000).map(|part| to_byte(part as f32 / 1e3)).collect();
        assert!(bytes.is_sorted_by(|one, next| one >= next));
        assert_eq!((to_byte(1.0), to_byte(1e-30), from_byte(0)), (0, 255, 1.0));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_its_field() {
        type Spoil = fn(&mut v1::Append);
        let cases: [(&str, Spoil); 7] = [
            ("append.path: 129 tokens", |it| it.path = vec![1; 129]),
            ("append.tree.token_ids: 200 tokens", |it| {
                it.tree.as_mut().unwrap().token_ids = vec![1; 200];
            }),
            ("append.tree: node 1 stands before", |it| {
                it.tree.as_mut().unwrap().parents = vec![-1, 2, 0];
            }),
            ("append.tree: 2 parents for 3", |it| {
                it.tree.as_mut().unwrap().parents = vec![-1, 0];
            }),
            ("append.survivals: 2 bytes for 3", |it| {
                it.survivals = vec![0, 1];
            }),
            ("append.sources: 1 bytes for 3", |it| {
                it.sources = vec![0];
            }),
            ("append.sources: 8 is out of range", |it| {
                it.sources = vec![0, 8, 0];
            }),
        ];
        for (expected, spoil) in cases {
            let mut wire = to_wire(proposed());
            spoil(&mut wire);
            let bad = from_wire(wire).expect_err(expected).to_string();
            assert!(bad.starts_with(expected), "{bad}");
        }
        assert!(from_wire(v1::Append::default()).is_ok());
    }

    #[test]
    fn what_became_of_drafts_is_read_with_what_the_last_token_is() {
        let written = |scored, last| v1::ForwardDrafts {
            scored,
            accepted: scored / 2,
            last: last_of(scored, last).into(),
            ..Default::default()
        };
        let last = LastToken::Recovered;
        let scored = ScoredDrafts {
            scored: 4,
            accepted: 2,
            last,
        };
        assert_eq!(scored_from_wire(&written(4, last)), Ok(Some(scored)));
        assert_eq!(scored_from_wire(&written(0, last)), Ok(None));
        let silent = v1::ForwardDrafts {
            scored: 1,
            ..Default::default()
        };
        let bad = scored_from_wire(&silent).expect_err("no kind");
        assert_eq!(bad.field, "last");
    }
}
