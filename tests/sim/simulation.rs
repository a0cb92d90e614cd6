//! The loop: time jumps from event to event until nothing is under way any more.

use std::time::Duration;

use speculation::session::{Input, Peer};

use crate::case::Case;
use crate::client::{Client, Heard};
use crate::faults::{Faults, Trouble};
use crate::message::{Answer, Ask, Reply};
use crate::network::{Message, Network};
use crate::peer::SimPeer;
use crate::prices::Liar;
use crate::record::{Event, Record};

/// Time a peer takes for an answer, or for each token it streams.
pub(crate) const FORWARD: Duration = Duration::from_millis(10);

/// More steps than any request takes; beyond it a simulation is taken for endless.
const STEP_LIMIT: usize = 100_000;

/// Runs the request of `case` under `faults`, and on until the last stale message has arrived.
pub(crate) fn simulate(case: &Case, faults: &Faults) -> Record {
    let mut simulation = Simulation {
        client: Client::new(case),
        peers: [Peer::Drafter, Peer::Verifier].map(|peer| SimPeer::new(case, peer)),
        network: Network::new(faults),
        faults,
        leaves: faults.client_leaves,
        claims: Liar::new(case),
        alone_forwards: case.alone_forwards,
        now: Duration::ZERO,
        record: Record::new(case, faults),
    };
    simulation.carry_out();
    let endless = (0..STEP_LIMIT).all(|_| simulation.step());
    assert!(!endless, "the request never ends");
    simulation.into_record()
}

struct Simulation<'a> {
    client: Client,
    /// Drafter and verifier.
    peers: [SimPeer<'a>; 2],
    network: Network<'a>,
    faults: &'a Faults,
    leaves: Option<Duration>,
    claims: Liar,
    alone_forwards: u32,
    now: Duration,
    record: Record,
}

impl Simulation<'_> {
    /// Lets the next event happen; false if there is none.
    fn step(&mut self) -> bool {
        let timer = self.client.session.poll_timeout();
        let events = [self.leaves, timer, self.network.next_arrival()];
        let Some(next) = events.into_iter().flatten().min() else {
            return false;
        };
        assert!(next >= self.now, "a timer is set in the past");
        self.now = next;
        if self.leaves.take_if(|leaves| *leaves == next).is_some() {
            self.tell(Event::Input(Input::Cancel));
        } else if timer == Some(next) {
            self.tell(Event::Timeout);
        } else if let Some((peer, message)) = self.network.receive() {
            match message {
                Message::Ask(ask) => self.serve(peer, ask),
                Message::Reply(reply) => match self.client.hear(peer, reply) {
                    Heard::Input(input, changed) => {
                        if changed {
                            self.tell(Event::Input(Input::Changed { peer }));
                        }
                        if let Some(claim) = self.claims.next(peer) {
                            self.tell(Event::Input(claim));
                        }
                        self.tell(Event::Input(input));
                    }
                    Heard::Again((peer, ask)) => {
                        self.network.send(peer, Message::Ask(ask), self.now);
                    }
                    Heard::Nothing => {}
                },
            }
        }
        true
    }

    /// Tells the session what happened.
    fn tell(&mut self, event: Event) {
        self.record.events.push((self.now, event.clone()));
        match event {
            Event::Timeout => self.client.session.handle_timeout(self.now),
            Event::Input(input) => self.client.session.handle(input, self.now),
        }
        self.carry_out();
    }

    /// Does what the session asks for.
    fn carry_out(&mut self) {
        while let Some(action) = self.client.session.poll(self.now) {
            if let Some((peer, ask)) = self.client.carry_out(&action) {
                self.network.send(peer, Message::Ask(ask), self.now);
            }
            self.record.actions.push((self.now, action));
        }
    }

    /// Lets `peer` answer what arrived.
    fn serve(&mut self, peer: Peer, ask: Ask) {
        let round = ask.round;
        let crashes = self.faults.crashes(peer, self.now);
        let mut troubles = self.faults.troubles(peer, self.now);
        let refusal = troubles.find_map(|trouble| match trouble {
            Trouble::Crash => Some(Answer::Refused {
                reason: "connection refused".to_owned(),
                retry: true,
            }),
            Trouble::Overload { retry_after } => Some(Answer::Overloaded { retry_after }),
            Trouble::CutOff | Trouble::CutOneWay(_) | Trouble::Replaced => None,
        });
        let (is_of_another, changes) = self.faults.replaced(peer, self.now);
        let sim_peer = &mut self.peers[peer as usize];
        sim_peer.note(crashes + changes, is_of_another);
        let answers = match refusal {
            Some(refusal) => vec![refusal],
            None => sim_peer.answer(ask),
        };
        let mut said_at = self.now;
        for answer in answers {
            said_at += match answer {
                Answer::Decoded { .. } => FORWARD * self.alone_forwards,
                _ => FORWARD,
            };
            // A peer that is gone takes with it what was not said yet.
            let stands = self.faults.replaced(peer, said_at).1 == changes;
            if stands && self.faults.crashes(peer, said_at) == crashes {
                let reply = Message::Reply(Reply {
                    round,
                    is_of_another,
                    answer,
                });
                self.network.send(peer, reply, said_at);
            }
        }
    }

    fn into_record(self) -> Record {
        let [drafter, verifier] = self.peers;
        let mut record = self.record;
        record.needs = drafter.needs + verifier.needs;
        record.decisions = verifier.decisions;
        record.tally = self.network.tally;
        record.output = self.client.session.output().to_vec();
        record.statistics = self.client.session.statistics().clone();
        record.is_exact = self.client.session.is_exact();
        record
    }
}
