//! Wrong tokens, and how long the answer to one is put off.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use smart_default::SmartDefault;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long the answer to a client's first wrong token is put off; twice as long for each that follows.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Longest time that the answer to a wrong token is put off.
pub const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Time after its last wrong token at which a client is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Most clients that are remembered; further ones get the longest delay.
const MAX_CLIENTS: usize = 4096;

/// Most answers that are delayed at a time. Further ones are not delayed, so that a flood of guesses uses up no memory.
pub const MAX_PUT_OFF: usize = 1024;

/// The clients that showed wrong tokens lately. Requests with a right token never come here, and are never delayed.
#[derive(Debug, SmartDefault)]
pub(super) struct Guesses {
    clients: Mutex<HashMap<IpAddr, Wrong>>,
    #[default(Arc::new(Semaphore::new(MAX_PUT_OFF)))]
    places: Arc<Semaphore>,
}

#[derive(Debug)]
struct Wrong {
    tokens: u32,
    latest: Instant,
}

impl Guesses {
    /// Counts a wrong token of `client`; returns the delay of its answer, if it is delayed.
    pub(super) fn pause(&self, client: Option<SocketAddr>) -> Option<Pause> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let length = self.counted(network(client?.ip()));
        Some(Pause {
            length,
            _place: place,
        })
    }

    fn counted(&self, client: IpAddr) -> Duration {
        let now = Instant::now();
        let mut clients = self.clients.lock();
        let is_recent = |wrong: &Wrong| now - wrong.latest < FORGOTTEN_AFTER;
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, wrong| is_recent(wrong));
            if clients.len() >= MAX_CLIENTS {
                return MAX_PAUSE;
            }
        }
        let wrong = clients.entry(client).or_insert(Wrong {
            tokens: 0,
            latest: now,
        });
        if !is_recent(wrong) {
            wrong.tokens = 0;
        }
        wrong.latest = now;
        let doubled = 1 << wrong.tokens.min(16);
        wrong.tokens = wrong.tokens.saturating_add(1);
        (FIRST_PAUSE * doubled).min(MAX_PAUSE)
    }
}

/// Returns the network that stands for a client: an IPv4 address, or the /64 of an IPv6 address, whose other half the
/// client chooses itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let first_half = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(first_half).into()
        }
        IpAddr::V4(address) => address.into(),
    }
}

/// The delay of an answer.
#[derive(Debug)]
pub(super) struct Pause {
    length: Duration,
    _place: OwnedSemaphorePermit,
}

impl Pause {
    /// Waits until the delay is over.
    pub(super) async fn end(self) {
        tokio::time::sleep(self.length).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 1)
    }

    #[tokio::test(start_paused = true)]
    async fn each_guess_of_a_client_waits_longer_up_to_a_bound_and_is_forgotten_in_time() {
        let guesses = Guesses::default();
        let length = |address: &str| {
            let pause = guesses.pause(Some(client(address))).unwrap();
            pause.length.as_millis()
        };
        let lengths: Vec<_> = (0..100).map(|_| length("10.0.0.1")).collect();
        assert_eq!(lengths[..8], [10, 20, 40, 80, 160, 320, 640, 1000]);
        assert_eq!(lengths[99], 1000);
        assert_eq!(length("10.0.0.2"), 10, "another client");
        assert_eq!(length("::ffff:10.0.0.2"), 20, "the same");
        assert_eq!(length("2001:db8::1"), 10);
        assert_eq!(length("2001:db8::ffff:2"), 20, "of one network");
        tokio::time::advance(FORGOTTEN_AFTER).await;
        assert_eq!(length("10.0.0.1"), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_and_answers_that_wait_are_bounded() {
        let guesses = Guesses::default();
        let of = |number: usize| {
            let address = Ipv6Addr::from((number as u128) << 64);
            guesses.pause(Some(SocketAddr::new(address.into(), 1)))
        };
        for number in 0..2 * MAX_CLIENTS {
            of(number).unwrap();
        }
        assert_eq!(guesses.clients.lock().len(), MAX_CLIENTS);
        assert_eq!(of(2 * MAX_CLIENTS).unwrap().length, MAX_PAUSE);
        let waiting: Vec<_> = (0..MAX_PUT_OFF).map(|_| of(0).unwrap()).collect();
        assert!(of(0).is_none(), "answered at once");
        drop(waiting);
        assert!(of(0).is_some());
    }
}
