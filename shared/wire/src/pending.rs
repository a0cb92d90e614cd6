//! Draft tokens proposed to a decode under way, and what became of them.

use speculation::pending::{
    Claim, MOST_PROPOSED, Parent, PathDigest, ProposedNode, ProposedTree, SOURCES,
};
use speculation::session::ScoredDrafts;
use speculation::verification::LastToken;

use crate::status::BadField;
use crate::{v1, verdict};

/// Steps of a survival's byte in which it falls by a factor e.
const STEPS: f32 = 16.0;

/// Writes a proposal.
pub fn to_wire(proposed: ProposedTree) -> v1::Append {
    let ProposedTree {
        after,
        mut roots,
        nodes,
    } = proposed;
    if roots == [PathDigest::EMPTY] {
        roots.clear();
    }
    let parents = nodes.iter().map(|node| match node.parent {
        Parent::Root(root) => -1 - root as i32,
        Parent::Node(node) => node as i32,
    });
    let is_chain = parents.clone().eq(-1..nodes.len() as i32 - 1);
    let has_sources = nodes.iter().any(|node| node.claim.source > 0);
    let sourced = nodes.iter().filter(|_| has_sources);
    v1::Append {
        after,
        roots: roots.iter().map(|root| root.0).collect(),
        token_ids: nodes.iter().map(|node| node.token).collect(),
        parents: parents.filter(|_| !is_chain).collect(),
        survivals: (nodes.iter().map(|node| to_byte(node.claim.survival))).collect(),
        sources: sourced.map(|node| node.claim.source).collect(),
    }
}

/// Reads a proposal. Whether it fits the output is checked by [`speculation::pending::PendingTree::receive`].
///
/// # Errors
/// Names the field that is too large, no tree, or not as long as the others.
pub fn from_wire(wire: v1::Append) -> Result<ProposedTree, BadField> {
    let nodes = wire.token_ids.len();
    BadField::at_most("append.roots", wire.roots.len(), MOST_PROPOSED, "roots")?;
    BadField::at_most("append.token_ids", nodes, MOST_PROPOSED, "tokens")?;
    let of_each = |field: &str, found: usize, what: &str| {
        if found == nodes {
            return Ok(());
        }
        let problem = format!("{found} {what} for {nodes} draft tokens");
        Err(BadField::new(format!("append.{field}"), problem))
    };
    of_each("survivals", wire.survivals.len(), "bytes")?;
    if !wire.sources.is_empty() {
        of_each("sources", wire.sources.len(), "bytes")?;
    }
    if let Some(&source) = wire.sources.iter().find(|&&it| usize::from(it) >= SOURCES) {
        BadField::in_range("append.sources", usize::from(source), 0..=SOURCES - 1)?;
    }
    let mut roots: Vec<_> = wire.roots.into_iter().map(PathDigest).collect();
    if roots.is_empty() {
        roots.push(PathDigest::EMPTY);
    }
    let parents = if wire.parents.is_empty() {
        (-1..nodes as i32 - 1).collect()
    } else {
        of_each("parents", wire.parents.len(), "parents")?;
        wire.parents
    };
    let sources = wire.sources.iter().copied().chain(std::iter::repeat(0));
    let claims = wire.survivals.iter().zip(sources);
    let claims = claims.map(|(&byte, source)| Claim {
        source,
        survival: from_byte(byte),
    });
    let told = wire.token_ids.into_iter().zip(parents).zip(claims);
    let nodes = told.zip(0_u32..).map(|(((token, parent), claim), at)| {
        Ok(ProposedNode {
            token,
            parent: parent_from_wire(parent, at, roots.len())?,
            claim,
        })
    });
    let nodes = nodes.collect::<Result<_, BadField>>()?;
    Ok(ProposedTree {
        after: wire.after,
        roots,
        nodes,
    })
}

/// Reads the parent of the node number `at`: a root, of which there are `roots`, or a node before it.
fn parent_from_wire(parent: i32, at: u32, roots: usize) -> Result<Parent, BadField> {
    let problem = match u32::try_from(parent) {
        Ok(node) if node < at => return Ok(Parent::Node(node)),
        Ok(_) => format!("token {at} stands before its parent, {parent}"),
        Err(_) => {
            let root = (-1 - i64::from(parent)) as u32;
            if (root as usize) < roots {
                return Ok(Parent::Root(root));
            }
            format!("token {at} follows root {root} of {roots}")
        }
    };
    Err(BadField::new("append.parents", problem))
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

    fn node(token: u32, parent: Parent, source: u8, survival: f32) -> ProposedNode {
        ProposedNode {
            token,
            parent,
            claim: Claim { source, survival },
        }
    }

    fn proposed() -> ProposedTree {
        ProposedTree {
            after: 7,
            roots: vec![PathDigest::of(&[3, 4]), PathDigest::EMPTY],
            nodes: vec![
                node(5, Parent::Root(0), 0, 1.0),
                node(6, Parent::Node(0), 2, 0.5),
                node(7, Parent::Root(1), 0, 1e-3),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read_with_probabilities_rounded_down() {
        let chain = [4, 9, 2].map(|token| (token, node(0, Parent::Root(0), 1, 0.5).claim));
        for expected in [proposed(), ProposedTree::chain(3, &[], chain)] {
            let read = from_wire(to_wire(expected.clone())).expect("in range");
            assert_eq!((read.after, &read.roots), (expected.after, &expected.roots));
            assert_eq!(read.nodes.len(), expected.nodes.len());
            for (read, expected) in read.nodes.iter().zip(&expected.nodes) {
                assert_eq!((read.token, read.parent), (expected.token, expected.parent));
                assert_eq!(read.claim.source, expected.claim.source);
                let share = read.claim.survival / expected.claim.survival;
                assert!((0.93..=1.0).contains(&share), "{read:?} {expected:?}");
            }
        }
        let wire = to_wire(ProposedTree::chain(3, &[], chain));
        assert!(wire.roots.is_empty() && wire.parents.is_empty(), "{wire:?}");
        // Rising survivals are never made of equal or falling ones.
        let bytes: Vec<u8> = (1..=1_000).map(|part| to_byte(part as f32 / 1e3)).collect();
        assert!(bytes.is_sorted_by(|one, next| one >= next));
        assert_eq!((to_byte(1.0), to_byte(1e-30), from_byte(0)), (0, 255, 1.0));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_its_field() {
        type Spoil = fn(&mut v1::Append);
        let cases: [(&str, Spoil); 8] = [
            ("append.roots: 129 roots", |it| it.roots = vec![1; 129]),
            ("append.token_ids: 200 tokens", |it| {
                it.token_ids = vec![1; 200];
            }),
            ("append.parents: token 1 stands before", |it| {
                it.parents = vec![-1, 1, 0];
            }),
            (
                "append.parents: token 2 follows root 2147483647 of 2",
                |it| {
                    it.parents = vec![-1, -2, i32::MIN];
                },
            ),
            ("append.parents: 2 parents for 3", |it| {
                it.parents = vec![-1, 0];
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

    /// Four drafts on two branches, or more, take 12 bytes each at most, and many hardly more than their tokens do.
    #[test]
    fn drafts_take_few_bytes() {
        for (count, most) in [(4, 12), (16, 8), (128, 6)] {
            let nodes = (0..count).map(|at| {
                let parent = match at % 3 {
                    0 => Parent::Root(at % 2),
                    beneath => Parent::Node(at - beneath),
                };
                node(48_000 + at, parent, 0, 0.5)
            });
            let proposed = ProposedTree {
                after: 300,
                roots: vec![PathDigest(u32::MAX), PathDigest(1 << 31)],
                nodes: nodes.collect(),
            };
            let header = v1::ReplyHeader {
                round: 1,
                ..Default::default()
            };
            let answer = v1::RoundAnswer {
                header: Some(header),
                part: Some(v1::round_answer::Part::Proposed(to_wire(proposed))),
            };
            let reply = v1::SessionReply::from(v1::session_reply::Reply::Answer(answer));
            let bytes = crate::encoded_bytes(&reply);
            assert!(bytes <= most * u64::from(count), "{bytes} of {count}");
        }
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
