//! Slots for the connections of a port.
//!
//! There is a bounded number of them. Where all are taken, a new connection gets the slot of the one that has
//! waited for its client for the longest time: of one that has not said what it wants, or else of one that asks for
//! nothing now.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Whether a connection waits for the service, as it does while a request is being answered, or for its client.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<ActivityState>);

#[derive(Debug)]
struct ActivityState {
    /// Whether there was a request.
    has_asked: bool,
    /// Requests whose answers have not ended.
    under_way: usize,
    /// Those of them that wait for the service, and not for the client to read.
    awaited: usize,
    /// Time of the last request, answer or part of one.
    since: Instant,
}

impl Activity {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(ActivityState {
            has_asked: false,
            under_way: 0,
            awaited: 0,
            since: Instant::now(),
        })))
    }

    /// Returns the time since which the connection has waited for its client; none while it waits for the service.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        let state = self.0.lock();
        (state.awaited == 0).then_some(state.since)
    }

    /// Returns whether there was a request, and the time since which none has been under way; none while one is. The
    /// least of these is the connection that can best be done without: many that never ask push no other out.
    fn idle_since(&self) -> Option<(bool, Instant)> {
        let state = self.0.lock();
        (state.under_way == 0).then_some((state.has_asked, state.since))
    }

    /// Begins a request, which waits for the service at first.
    pub(crate) fn begin(self: &Arc<Self>) -> Working {
        let mut state = self.0.lock();
        state.has_asked = true;
        state.under_way += 1;
        state.awaited += 1;
        drop(state);
        Working {
            activity: Arc::clone(self),
            is_awaited: true,
        }
    }
}

/// A request under way on a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Working {
    activity: Arc<Activity>,
    is_awaited: bool,
}

impl Working {
    /// Records whether the request waits for the `service`, or for its client to read.
    pub(crate) fn awaits(&mut self, service: bool) {
        let mut state = self.activity.0.lock();
        match (self.is_awaited, service) {
            (true, true) => return,
            (true, false) => state.awaited -= 1,
            (false, true) => state.awaited += 1,
            (false, false) => {}
        }
        self.is_awaited = service;
        state.since = Instant::now();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.activity.0.lock();
        state.under_way -= 1;
        state.awaited -= usize::from(self.is_awaited);
        state.since = Instant::now();
    }
}

/// The slots of one port.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    most: usize,
    /// Cancelled when all connections are to be cut.
    severed: CancellationToken,
    next: u64,
    taken: Arc<Mutex<Taken>>,
}

type Taken = HashMap<u64, (Arc<Activity>, CancellationToken)>;

impl ConnectionSlots {
    /// Creates `most` slots; cancelling `severed` cuts all connections that hold one.
    pub(crate) fn new(most: usize, severed: CancellationToken) -> Self {
        Self {
            most,
            severed,
            next: 0,
            taken: Arc::default(),
        }
    }

    /// Takes a slot. If all are taken, cuts the connection that has been idle for the longest time, before others one
    /// that never asked for anything, and takes its slot; returns none if every connection has a request under way.
    pub(crate) fn take(&mut self) -> Option<ConnectionSlot> {
        let mut taken = self.taken.lock();
        if taken.len() >= self.most {
            let idle = taken.iter().filter_map(|(number, (activity, _))| {
                let since = activity.idle_since()?;
                Some((since, *number))
            });
            let (_, oldest) = idle.min()?;
            let (_, cut) = taken.remove(&oldest)?;
            cut.cancel();
        }
        let slot = ConnectionSlot {
            number: self.next,
            taken: Arc::clone(&self.taken),
            activity: Activity::new(),
            cut: self.severed.child_token(),
            kept: None,
        };
        self.next += 1;
        taken.insert(slot.number, (Arc::clone(&slot.activity), slot.cut.clone()));
        Some(slot)
    }
}

/// The slot of a connection, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    number: u64,
    taken: Arc<Mutex<Taken>>,
    /// What the connection waits for.
    pub(crate) activity: Arc<Activity>,
    /// Cancelled when the connection is to be cut.
    pub(crate) cut: CancellationToken,
    kept: Option<Working>,
}

impl ConnectionSlot {
    /// Exempts the connection from being cut for another one, idle or not.
    pub(crate) fn keep(&mut self) {
        self.kept = Some(self.activity.begin());
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_has_been_idle_for_the_longest_time_makes_room_and_who_works_does_not() {
        let mut slots = ConnectionSlots::new(3, CancellationToken::new());
        let mut of_three = Vec::new();
        for _ in 0..3 {
            of_three.push(slots.take().unwrap());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // The first was idle for the longest time, and works now; the second worked in between.
        let working = of_three[0].activity.begin();
        drop(of_three[1].activity.begin());
        let fourth = slots.take().unwrap();
        let is_cut = |slot: &ConnectionSlot| slot.cut.is_cancelled();
        let cut: Vec<_> = of_three.iter().map(is_cut).collect();
        assert_eq!(cut, [false, false, true]);
        let _all = [&of_three[1], &fourth].map(|slot| slot.activity.begin());
        assert!(slots.take().is_none(), "all work");
        drop(working);
        let mut fifth = slots.take().unwrap();
        assert!(of_three[0].cut.is_cancelled());
        // Whose slot went to another gives none back.
        drop(of_three);
        let _sixth = slots.take().unwrap();
        fifth.keep();
        assert!(slots.take().is_some() && slots.take().is_some());
        assert!(!is_cut(&fourth) && !is_cut(&fifth));
    }

    #[tokio::test(start_paused = true)]
    async fn many_that_never_ask_push_nobody_out_who_does() {
        let mut slots = ConnectionSlots::new(2, CancellationToken::new());
        let asks = slots.take().unwrap();
        drop(asks.activity.begin());
        let mut silent = Vec::new();
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(1)).await;
            silent.push(slots.take().unwrap());
        }
        assert!(!asks.cut.is_cancelled());
        let cut = silent.iter().filter(|slot| slot.cut.is_cancelled());
        assert_eq!(cut.count(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_the_service_or_for_its_client() {
        let slot = ConnectionSlots::new(1, CancellationToken::new())
            .take()
            .unwrap();
        let activity = &slot.activity;
        let second = Duration::from_secs(1);
        let accepted = Instant::now();
        tokio::time::advance(second).await;
        assert_eq!(activity.waiting_since(), Some(accepted));
        let (mut one, other) = (activity.begin(), activity.begin());
        one.awaits(false);
        assert_eq!(activity.waiting_since(), None, "the other waits");
        tokio::time::advance(second).await;
        drop(other);
        assert_eq!(activity.waiting_since(), Some(accepted + 2 * second));
        tokio::time::advance(second).await;
        one.awaits(false);
        assert_eq!(activity.waiting_since(), Some(accepted + 3 * second));
        assert_eq!(activity.idle_since(), None, "a request is under way");
        one.awaits(true);
        assert_eq!(activity.waiting_since(), None);
    }
}
