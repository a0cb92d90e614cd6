//! What a forward is offered and told of its drafts, and what is waited for.

use tokio::sync::mpsc::{Sender, channel};
use wire::open::from_wire;
use wire::v1;

use super::*;
use speculation::pending::{ProposedTree, ROOM};

const END: TokenId = 7;

fn spec() -> SessionSpec {
    let description = v1::PeerDescription {
        vocab_size: 100,
        logits_size: 100,
        context_len: 64,
        ..wire::describe::capabilities()
    };
    let open = v1::Open {
        session_id: vec![1; 16],
        prompt_token_ids: vec![1],
        vocab_size: 100,
        epoch: 1,
        end_token_ids: vec![END],
        verification: v1::Verification::Coupled.into(),
        proposal_form: v1::ProposalForm::Point.into(),
        ..Default::default()
    };
    from_wire(open, &description).expect("a session")
}

/// Drafts of a session, and its output.
struct Session {
    spec: SessionSpec,
    drafts: PendingDrafts,
    proposing: Sender<(Instant, ProposedTree)>,
    output: Vec<TokenId>,
}

impl Session {
    fn new(output: &[TokenId]) -> Self {
        let (proposing, receiver) = channel(4);
        Self {
            spec: spec(),
            drafts: PendingDrafts::of(receiver.into()),
            proposing,
            output: output.to_vec(),
        }
    }

    /// Proposes a chain after the output, of which a source claims so much.
    fn propose(&self, source: u8, tokens: &[TokenId], survivals: &[f32]) {
        let claims = survivals.iter().map(|&survival| Claim { source, survival });
        let tokens = tokens.iter().copied().zip(claims);
        let proposed = ProposedTree::chain(self.output.len() as u32, &[], tokens);
        let sent = self.proposing.try_send((Instant::now(), proposed));
        sent.expect("room");
    }

    /// What the next forward is offered, where `most` drafts may be emitted in all and `levels` by it.
    fn offered(&mut self, most: u32, levels: u32) -> Vec<f32> {
        self.drafts.receive(&self.spec, (&self.output, None), most);
        self.drafts.offer(levels, false).collect()
    }

    /// A forward of the first `drafts` that chose `tokens`, the first of them `path` of its drafts.
    fn forward(&mut self, drafts: usize, tokens: &[TokenId], path: &[u32]) -> v1::ForwardDrafts {
        if drafts > 0 {
            self.drafts.prepare(drafts);
        }
        self.output.extend(tokens);
        self.drafts.follow(tokens, path)
    }
}

#[test]
fn a_forward_takes_the_best_and_the_rest_stays_as_far_as_it_fits() {
    let mut session = Session::new(&[5, 6]);
    session.propose(0, &[10, 11, 12, 13, 14], &[0.9, 0.8, 0.7, 0.6, 0.5]);
    session.propose(1, &[20, 21], &[0.95, 0.4]);
    assert_eq!(
        session.offered(30, 30),
        [0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    );
    assert_eq!(session.drafts.prepare(3).tokens(), [10, 11, 20]);
    assert_eq!(session.drafts.block().parents(), [None, Some(0), None]);
    let report = session.forward(3, &[10, 11, 12], &[0, 1]);
    // The other branch; and a draft without a row that was the target's own choice all the same.
    assert_eq!((report.offered, report.stale), (7, 2));
    assert_eq!(report.room as usize, ROOM - 2);
    assert!(session.drafts.block().is_empty());
    let left = session.offered(30, 30);
    assert_eq!(left.len(), 2);
    assert!((left[0] - 0.6 / 0.7).abs() < 0.1, "{left:?}");
    assert_eq!(session.drafts.prepare(2).tokens(), [13, 14]);
}

#[test]
fn what_may_not_be_emitted_yet_waits_and_what_never_may_falls_off() {
    let mut session = Session::new(&[5]);
    session.propose(0, &[10, 11, 12, 13, 14], &[1.0; 5]);
    // Four more tokens after the forward's own.
    assert_eq!(session.offered(4, 2), [1.0; 2]);
    let report = session.forward(2, &[10, 11, 12], &[0, 1]);
    assert_eq!((report.offered, report.malformed), (2, 1));
    assert_eq!(session.offered(1, 1), [1.0]);
    assert_eq!(session.drafts.prepare(9).tokens(), [13]);
}

#[test]
fn what_falls_off_is_told_once_whether_or_not_a_forward_asked() {
    let mut session = Session::new(&[5, 6]);
    session.propose(0, &[10, END, 12, 13], &[0.9, 0.8, 0.7, 0.6]);
    session.propose(0, &[200, 30], &[0.9, 0.8]);
    session.propose(0, &[40, 41], &[0.5, 0.6]);
    assert_eq!(session.offered(30, 30).len(), 3);
    let report = session.forward(0, &[9], &[]);
    assert_eq!(report.offered, 3);
    // Below the end, out of the vocabulary, more likely than what it follows; and what grows on these.
    assert_eq!(report.malformed, 3);
    assert_eq!(report.stale, 2 + 3);
    assert!(session.offered(30, 30).is_empty());
    let report = session.forward(0, &[9], &[]);
    assert_eq!((report.offered, report.room as usize), (0, ROOM));
    assert_eq!(
        (report.stale, report.without_room, report.malformed),
        (0, 0, 0)
    );
}

#[test]
fn a_source_that_is_always_wrong_is_offered_for_less() {
    let mut session = Session::new(&[5]);
    let mut worth = Vec::new();
    for _ in 0..30 {
        session.propose(0, &[10, 11], &[1.0, 1.0]);
        session.propose(1, &[20, 21], &[0.8, 0.7]);
        session.offered(30, 30);
        worth = session.drafts.ranked.clone();
        let block = session.drafts.prepare(4).clone();
        let right = [20, 21].map(|token| {
            let at = block.tokens().iter().position(|&it| it == token);
            at.expect("a row") as u32
        });
        session.forward(4, &[20, 21, 9], &right);
    }
    let best: Vec<f32> = worth.iter().map(|&(_, worth)| worth).collect();
    // What the other one claims is believed.
    assert_eq!(best[..2], [0.8, 0.7]);
    assert!(best[2] < 0.1, "{best:?}");
}

#[test]
fn a_forward_without_rows_for_drafts_says_nothing_of_their_source() {
    let mut session = Session::new(&[5]);
    for _ in 0..50 {
        session.propose(0, &[10], &[0.9]);
        assert_eq!(session.offered(30, 30), [0.9]);
        session.forward(0, &[9], &[]);
    }
}

const MS: Duration = Duration::from_millis(1);

/// Seconds of a forward.
const FORWARD: f32 = 0.1;

/// A refill after `turns` forwards, each of which left none; drafts came `after` that, if they came, and were right
/// or not. Returns the end of the last.
fn refilled(turns: u32, after: Option<Duration>, is_right: bool) -> (Refill, Instant) {
    let (mut refill, mut now) = (Refill::default(), Instant::now());
    for _ in 0..turns {
        refill.ended(now, after.is_some(), is_right && after.is_some(), true);
        if let Some(after) = after {
            refill.came(now + after);
        }
        now += 100 * MS;
    }
    refill.ended(now, after.is_some(), is_right && after.is_some(), true);
    (refill, now)
}

#[test]
fn drafts_that_come_soon_and_are_right_are_waited_for() {
    for after in [0, 1, 5, 16] {
        let (refill, end) = refilled(30, Some(after * MS), true);
        let Awaited::Until(until) = refill.awaited(FORWARD) else {
            panic!("no wait for drafts {after} ms later");
        };
        let wait = (until - end).as_secs_f32();
        assert!((wait - 1.5e-3 * after as f32).abs() < 1e-4, "{wait}");
    }
}

#[test]
fn nobody_waits_for_what_is_late_wrong_or_not_to_come() {
    let none = |refill: &Refill| refill.awaited(FORWARD) == Awaited::Nothing;
    assert!(none(&Refill::default()));
    assert!(none(&refilled(30, Some(20 * MS), true).0), "late");
    assert!(none(&refilled(30, Some(5 * MS), false).0), "wrong");
    assert!(none(&refilled(30, None, true).0), "none came");
    // Once is not enough to tell.
    assert!(none(&refilled(0, Some(MS), true).0));
    // They came, and then no more.
    let (mut refill, mut now) = refilled(30, Some(5 * MS), true);
    assert!(!none(&refill));
    let turns = (1..100).find(|_| {
        now += 100 * MS;
        refill.ended(now, false, false, true);
        none(&refill)
    });
    assert!(turns.is_some_and(|turns| turns < 20), "{turns:?}");
    // A forward that left some is begun at once.
    let (mut refill, now) = refilled(30, Some(5 * MS), true);
    refill.ended(now + 100 * MS, true, true, false);
    assert!(none(&refill));
}

/// Drafts may come before the forward has ended that was to be without them.
#[test]
fn drafts_are_late_by_the_last_end_before_them() {
    let (mut refill, now) = (Refill::default(), Instant::now());
    refill.ended(now, false, false, true);
    refill.ended(now + 100 * MS, false, false, true);
    refill.came(now + 60 * MS);
    assert_eq!(refill.after, Some(0.06));
}

#[test]
fn drafts_that_are_there_are_not_waited_for() {
    let mut session = Session::new(&[5]);
    let forward = Duration::from_millis(100);
    assert_eq!(session.drafts.awaited(forward), Awaited::Nothing);
    session.propose(0, &[10], &[0.9]);
    session.offered(30, 30);
    assert_eq!(session.drafts.awaited(forward), Awaited::Here);
    session.forward(1, &[9], &[]);
    assert_eq!(session.drafts.awaited(forward), Awaited::Nothing);
}
