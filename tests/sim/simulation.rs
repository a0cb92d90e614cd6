//! The loop: time jumps from event to event until nothing is under way any more.

use std::time::Duration;

use speculation::session::Peer;

use crate::case::Case;
use crate::client::{Client, Heard};
use crate::faults::{Faults, Trouble};
use crate::message::{Answer, Ask, Reply};
use crate::network::{Message, Network};
use crate::peer::SimPeer;
use crate::record::{Event, Record};

/// Time a peer takes for an answer, or for each token it streams.
pub(crate) const FORWARD: Duration = Duration::from_millis(3);

/// More events than any request takes; beyond it a simulation is taken for endless.
const EVENT_LIMIT: usize = 100_000;

/// Runs the request of `case` under `faults`, and on until the last stale message has arrived.
pub(crate) fn simulate(case: &Case, faults: &Faults) -> Record {
    let mut record = Record::new(case, faults);
    let mut client = Client::new(case);
    let mut network = Network::new(faults);
    let mut peers = [Peer::Drafter, Peer::Verifier].map(|peer| SimPeer::new(case, peer));
    let mut now = Duration::ZERO;
    loop {
        while let Some(action) = client.session.poll() {
            if let Some((peer, ask)) = client.carry_out(&action) {
                network.send(peer, Message::Ask(ask), now);
            }
            record.actions.push((now, action));
        }
        assert!(record.events.len() < EVENT_LIMIT, "the request never ends");
        let (timer, arrival) = (client.session.poll_timeout(), network.next_arrival());
        match (timer, arrival) {
            (None, None) => break,
            (Some(due), arrival) if arrival.is_none_or(|arrival| due <= arrival) => {
                assert!(due >= now, "a timer is set in the past");
                now = due;
                record.events.push((now, Event::Timeout));
                client.session.handle_timeout(now);
            }
            (_, Some(arrival)) => {
                now = arrival;
                match network.receive() {
                    Some((peer, Message::Ask(ask))) => {
                        serve(
                            &mut peers[peer as usize],
                            peer,
                            ask,
                            &mut network,
                            faults,
                            now,
                        );
                    }
                    Some((peer, Message::Reply(reply))) => match client.hear(peer, reply) {
                        Heard::Input(input) => {
                            record.events.push((now, Event::Input(input.clone())));
                            client.session.handle(input, now);
                        }
                        Heard::Again((peer, ask)) => network.send(peer, Message::Ask(ask), now),
                        Heard::Nothing => {}
                    },
                    None => {}
                }
            }
            (Some(_), None) => unreachable!("a timer with nothing before it is taken above"),
        }
    }
    let [drafter, verifier] = peers;
    record.needs = drafter.needs + verifier.needs;
    record.decisions = verifier.decisions;
    record.tally = network.tally;
    record.output = client.session.output().to_vec();
    record.statistics = client.session.statistics().clone();
    record
}

/// Lets a peer answer what arrived at `now`.
fn serve(
    sim_peer: &mut SimPeer<'_>,
    peer: Peer,
    ask: Ask,
    network: &mut Network<'_>,
    faults: &Faults,
    now: Duration,
) {
    let round = ask.round;
    let crashes = faults.crashes(peer, now);
    sim_peer.crashed(crashes);
    let trouble = faults
        .troubles(peer, now)
        .find_map(|trouble| match trouble {
            Trouble::Crash => Some(Answer::Refused {
                reason: "connection refused".to_owned(),
                retry: true,
            }),
            Trouble::Overload { retry_after } => Some(Answer::Overloaded { retry_after }),
            Trouble::CutOff | Trouble::CutOneWay(_) => None,
        });
    let answers = match trouble {
        Some(answer) => vec![answer],
        None => sim_peer.answer(ask),
    };
    let mut said_at = now;
    for answer in answers {
        said_at += FORWARD;
        // A crash takes with it what was not said yet.
        if faults.crashes(peer, said_at) == crashes {
            network.send(peer, Message::Reply(Reply { round, answer }), said_at);
        }
    }
}
