//! What happened in a simulation, and what must hold of it.

use std::time::Duration;

use speculation::TokenId;
use speculation::session::{Action, FinishReason, Input, Origin, Peer, Plan, Request, Statistics};

use crate::case::{Case, END_TOKEN};
use crate::decodes::StreamTally;
use crate::faults::Faults;
use crate::network::Tally;
use crate::peer::Decision;

/// What the session was told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Timeout,
    Input(Input),
}

/// A simulation from beginning to end. Whoever fails while holding it prints how to repeat it.
pub(crate) struct Record {
    case: Case,
    faults: Faults,
    /// What the session was told, and when.
    pub(crate) events: Vec<(Duration, Event)>,
    /// What the session asked for, and when.
    pub(crate) actions: Vec<(Duration, Action)>,
    /// What the session says its output is.
    pub(crate) output: Vec<TokenId>,
    pub(crate) statistics: Statistics,
    /// Whether the session says that the output is what its method promises.
    pub(crate) is_exact: bool,
    /// Blocks the verifier decided.
    pub(crate) decisions: Vec<Decision>,
    /// How often a peer held too little.
    pub(crate) needs: u32,
    pub(crate) tally: Tally,
    /// What happened to streamed decodes.
    pub(crate) streamed: StreamTally,
    /// How often drafts were offered again.
    pub(crate) offered_again: u32,
    /// Sessions opened at a drafter that drafts ahead.
    pub(crate) opened_ahead: u32,
}

impl Drop for Record {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{:#?}\n{:#?}", self.case, self.faults);
        }
    }
}

impl Record {
    pub(crate) fn new(case: &Case, faults: &Faults) -> Self {
        Self {
            case: case.clone(),
            faults: faults.clone(),
            events: Vec::new(),
            actions: Vec::new(),
            output: Vec::new(),
            statistics: Statistics::default(),
            is_exact: true,
            decisions: Vec::new(),
            needs: 0,
            tally: Tally::default(),
            streamed: StreamTally::default(),
            offered_again: 0,
            opened_ahead: 0,
        }
    }

    /// The tokens the client was given, and where each came from.
    pub(crate) fn emitted(&self) -> impl Iterator<Item = (TokenId, Origin)> {
        let emissions = self.actions.iter().filter_map(|(_, action)| match action {
            Action::Emit(tokens) => Some(tokens),
            _ => None,
        });
        emissions.flatten().copied()
    }

    /// The tokens the client was given.
    pub(crate) fn stream(&self) -> Vec<TokenId> {
        self.emitted().map(|(token, _)| token).collect()
    }

    /// How and when the request ended.
    pub(crate) fn end(&self) -> (Duration, &FinishReason) {
        match self.actions.last() {
            Some((at, Action::Finish(reason))) => (*at, reason),
            last => panic!("the last action is {last:?} and not a finish"),
        }
    }

    /// Whether the request came to the end of its output.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.end().1, FinishReason::Stop | FinishReason::Length)
    }

    pub(crate) fn failed_at(&self, failed: Peer) -> bool {
        matches!(self.end().1, FinishReason::Failed { peer, .. } if *peer == failed)
    }

    /// What holds of every request, whatever its method and its faults: it ends once and in time,
    /// says why, and frees both peers; every request to a peer builds on what was emitted before, and on
    /// no more unless the plan holds tokens back.
    pub(crate) fn assert_orderly(&self) {
        let (ended_at, reason) = self.end();
        let (mut scored, mut emitted) = (0, 0);
        let mut closed = Vec::new();
        for (_, action) in &self.actions[..self.actions.len() - 1] {
            match action {
                Action::Send {
                    base_len, request, ..
                } => {
                    let held = base_len.checked_sub(emitted);
                    // A window that is being filled is built on, and looked over from its beginning.
                    let may_hold = match self.case.plan {
                        Plan::SequenceCascade { .. } => true,
                        Plan::Bild { .. } => matches!(request, Request::Draft { .. }),
                        _ => false,
                    };
                    assert!(held == Some(0) || may_hold && held.is_some(), "{action:?}");
                }
                Action::Emit(tokens) => {
                    assert!(!tokens.is_empty(), "nothing was emitted");
                    emitted += tokens.len() as u32;
                }
                Action::EmitScores { from, count } => {
                    assert_eq!((*from, emitted), (scored, 0), "scores in order, and first");
                    scored += count;
                }
                Action::Close(peer) => closed.push(*peer),
                Action::Finish(_) => panic!("it ended twice"),
            }
        }
        assert_eq!(closed, [Peer::Drafter, Peer::Verifier]);
        let most = self.case.prompt_scores;
        assert!(
            scored == most || emitted == 0 && scored < most,
            "{scored} scores"
        );
        let late = self.case.deadline.is_some_and(|by| ended_at > by);
        assert!(!late, "it ended at {ended_at:?}");

        let counted = &self.statistics;
        let spent = counted.drafted + counted.target_forwards;
        let came_to = counted.emitted + counted.discarded + counted.withheld;
        assert_eq!(spent, came_to, "{counted:?}");

        let stream = self.stream();
        assert_eq!(self.output, stream, "the session counts what it emitted");
        let ends = stream.iter().position(|&token| token == END_TOKEN);
        let stopped = ends.is_some_and(|at| at + 1 == stream.len());
        let full = stream.len() == self.case.max_tokens as usize;
        assert!(ends.is_none() || stopped, "tokens follow the end token");
        assert_eq!(*reason == FinishReason::Stop, stopped);
        assert_eq!(*reason == FinishReason::Length, full && !stopped);
        assert!(stream.len() <= self.case.max_tokens as usize);

        let StreamTally {
            begun,
            ended,
            accepted,
            ..
        } = self.streamed;
        assert_eq!(begun, ended, "a decode is kept after the end");
        let kept = counted.num_accepted_draft_tokens();
        assert!(!self.case.streams || kept <= accepted, "{kept} {accepted}");
    }

    /// What holds of coupled verification besides: the client sees the beginning of the target's
    /// own output, and all of it if the request came to its end.
    pub(crate) fn assert_lossless(&self) {
        self.assert_orderly();
        let (stream, expected) = (self.stream(), self.case.target_alone());
        assert!(
            expected.starts_with(&stream),
            "{stream:?} is not how {expected:?} begins"
        );
        assert_eq!(self.is_complete(), stream == expected);
        let accepted = self.emitted().filter(|token| token.1 == Origin::Accepted);
        let counted = self.statistics.num_accepted_draft_tokens();
        assert_eq!(accepted.count(), counted as usize);
    }
}
