//! The loop: time jumps from event to event until nothing is under way any more.

use std::time::Duration;

use speculation::session::{Action, Input, Peer, Request};

use crate::ahead::{AheadDrafter, AheadLink};
use crate::case::Case;
use crate::client::{Client, Heard};
use crate::faults::{Faults, Trouble};
use crate::message::{Answer, Ask, Reply};
use crate::network::{Message, Network};
use crate::peer::SimPeer;
use crate::prices::Liar;
use crate::record::{Event, Record};
use crate::source::Sources;

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
        sources: Sources::new(case),
        ahead: (case.drafts_ahead).then(|| (AheadLink::default(), AheadDrafter::new(case))),
        streams: case.streams,
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
    sources: Sources<'a>,
    /// The coordinator's link to a drafter that drafts ahead, and that drafter.
    ahead: Option<(AheadLink, AheadDrafter<'a>)>,
    /// See [`Case::streams`].
    streams: bool,
    faults: &'a Faults,
    leaves: Option<Duration>,
    claims: Liar,
    alone_forwards: u32,
    now: Duration,
    record: Record,
}

impl<'a> Simulation<'a> {
    /// Lets the next event happen; false if there is none.
    fn step(&mut self) -> bool {
        let timer = self.client.session.poll_timeout();
        let arrival = self.network.next_arrival();
        let forward = self.peers[Peer::Verifier as usize].decodes.next_event();
        let proposal = self.sources.next_event();
        let draft = self.ahead.as_ref().and_then(|(_, it)| it.next_event());
        let events = [self.leaves, timer, arrival, forward, proposal, draft];
        let Some(next) = events.into_iter().flatten().min() else {
            return false;
        };
        assert!(next >= self.now, "a timer is set in the past");
        self.now = next;
        if self.leaves.take_if(|leaves| *leaves == next).is_some() {
            self.tell(Event::Input(Input::Cancel));
        } else if timer == Some(next) {
            self.tell(Event::Timeout);
        } else if arrival == Some(next) {
            if let Some((peer, message)) = self.network.receive() {
                self.arrived(peer, message);
            }
        } else if forward == Some(next) {
            self.forwarded();
        } else if draft == Some(next) {
            self.drafted();
        } else {
            for proposed in self.sources.propose(self.client.session.output(), next) {
                self.send_aside(Message::Append(proposed));
            }
        }
        true
    }

    fn arrived(&mut self, peer: Peer, message: Message) {
        let now = self.now;
        match message {
            Message::Ask(ask) => self.serve(peer, ask),
            Message::Append(proposed) => self.verifier().decodes.receive(&proposed, now),
            Message::Grant(until) => self.verifier().decodes.grant(until, now),
            Message::Close if peer == Peer::Verifier => self.verifier().decodes.end(),
            Message::Close => {
                if let Some(drafter) = self.drafter() {
                    drafter.end();
                }
            }
            Message::Commit(commit) => {
                let is_down =
                    (self.faults.troubles(Peer::Drafter, now)).any(|it| it == Trouble::Crash);
                let drafter = self.drafter().filter(|_| !is_down);
                if let Some(said) = drafter.and_then(|drafter| drafter.receive(&commit, now)) {
                    self.network.send(Peer::Drafter, Message::Said(said), now);
                }
            }
            Message::Said(said) => {
                let link = self.ahead.as_mut();
                let output = self.client.session.output();
                if let Some(proposed) = link.and_then(|(link, _)| link.hear(said))
                    && self.sources.keep_new(&proposed, output)
                {
                    self.send_aside(Message::Append(proposed));
                }
            }
            Message::Reply(reply) => match self.client.hear(peer, reply) {
                Heard::Input(input, changed) => {
                    if changed {
                        self.tell(Event::Input(Input::Changed { peer }));
                    }
                    if let Some(claim) = self.claims.next(peer) {
                        self.tell(Event::Input(claim));
                    }
                    self.tell(Event::Input(input));
                    self.renew();
                }
                Heard::Again((peer, ask)) => self.network.send(peer, Message::Ask(ask), now),
                Heard::Nothing => {}
            },
        }
    }

    /// Returns the verifier as it is by now, with what it lost.
    fn verifier(&mut self) -> &mut SimPeer<'a> {
        noted(&mut self.peers, self.faults, Peer::Verifier, self.now)
    }

    /// Returns the drafter that drafts ahead as it is by now, if there is one.
    fn drafter(&mut self) -> Option<&mut AheadDrafter<'a>> {
        let (faults, now) = (self.faults, self.now);
        let (_, drafter) = self.ahead.as_mut()?;
        let changes = faults.replaced(Peer::Drafter, now).1;
        drafter.note(faults.crashes(Peer::Drafter, now) + changes);
        Some(drafter)
    }

    /// Ends the draft model's forward that is due.
    fn drafted(&mut self) {
        let now = self.now;
        if let Some(said) = self.drafter().and_then(|drafter| drafter.forward(now)) {
            self.network.send(Peer::Drafter, Message::Said(said), now);
        }
    }

    /// Tells the drafter that drafts ahead what the output is by now.
    fn commit(&mut self) {
        let (output, room) = (self.client.session.output(), self.sources.room());
        let link = self.ahead.as_mut().filter(|_| !self.sources.is_closed());
        if let Some(commit) = link.and_then(|(link, _)| link.tell(output, room)) {
            self.network
                .send(Peer::Drafter, Message::Commit(commit), self.now);
        }
    }

    /// Sends the verifier what goes beside requests.
    fn send_aside(&mut self, message: Message) {
        self.network.send(Peer::Verifier, message, self.now);
    }

    /// Grants the verifier more, if it is time for that.
    fn renew(&mut self) {
        if self.streams
            && let Some(until) = self.client.renew()
        {
            self.send_aside(Message::Grant(until));
        }
    }

    /// Ends the forward that is due.
    fn forwarded(&mut self) {
        let (now, faults) = (self.now, self.faults);
        let is_of_another = faults.replaced(Peer::Verifier, now).0;
        if let Some((round, answer)) = self.verifier().go_on(now) {
            let reply = Message::Reply(Reply {
                round,
                is_of_another,
                answer,
            });
            self.network.send(Peer::Verifier, reply, now);
        }
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
                if matches!(ask.request, Request::Decode { .. }) {
                    self.sources.begin(self.now);
                }
                self.network.send(peer, Message::Ask(ask), self.now);
            }
            if self.streams && action == Action::Close(Peer::Verifier) {
                self.sources.close();
                self.send_aside(Message::Close);
                if self.ahead.is_some() {
                    self.network.send(Peer::Drafter, Message::Close, self.now);
                }
            }
            self.record.actions.push((self.now, action));
        }
        self.commit();
    }

    /// Lets `peer` answer what arrived.
    fn serve(&mut self, peer: Peer, ask: Ask) {
        let round = ask.round;
        let mut troubles = self.faults.troubles(peer, self.now);
        let refusal = troubles.find_map(|trouble| match trouble {
            Trouble::Crash => Some(Answer::Refused {
                reason: "connection refused".to_owned(),
                retry: true,
            }),
            Trouble::Overload { retry_after } => Some(Answer::Overloaded { retry_after }),
            Trouble::CutOff | Trouble::CutOneWay(_) | Trouble::Replaced => None,
        });
        let (crashes, now) = (self.faults.crashes(peer, self.now), self.now);
        let (is_of_another, changes) = self.faults.replaced(peer, now);
        let sim_peer = noted(&mut self.peers, self.faults, peer, now);
        let answers = match refusal {
            Some(refusal) => vec![refusal],
            None => sim_peer.answer(ask, now),
        };
        let mut said_at = now;
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
        assert!(self.sources.is_closed(), "drafts are kept after the end");
        let [drafter, verifier] = self.peers;
        let mut record = self.record;
        record.needs = drafter.needs + verifier.needs;
        record.decisions = verifier.decisions;
        record.tally = self.network.tally;
        record.streamed = verifier.decodes.tally;
        record.offered_again = self.sources.offered_again;
        record.opened_ahead = self.ahead.map_or(0, |(link, _)| link.opened);
        record.output = self.client.session.output().to_vec();
        record.statistics = self.client.session.statistics().clone();
        record.is_exact = self.client.session.is_exact();
        record
    }
}

/// Returns `peer` as it is at `now`, with what it lost by then.
fn noted<'s, 'a>(
    peers: &'s mut [SimPeer<'a>; 2],
    faults: &Faults,
    peer: Peer,
    now: Duration,
) -> &'s mut SimPeer<'a> {
    let (is_another, changes) = faults.replaced(peer, now);
    let sim_peer = &mut peers[peer as usize];
    sim_peer.note(faults.crashes(peer, now) + changes, is_another);
    sim_peer
}
