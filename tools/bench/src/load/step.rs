//! A step in load: how long the method takes to reach the speed that it has in the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clients::{ClientTraffic, Clients, TokenArrival};

/// How long each load lasts.
const PHASE: Duration = Duration::from_secs(5);

/// The time over which the speed is taken, and the share of the speed of the phase's second half that it must reach.
const LOOK: Duration = Duration::from_millis(400);
const NEAR: f64 = 0.85;

/// One client, many, one again.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadStep {
    /// Seconds until the speed was reached after clients came, and after they left.
    pub(super) up: f64,
    pub(super) down: f64,
}

/// Measures a step from one client to `clients` and back to one.
///
/// # Errors
/// If a request fails.
pub(super) async fn step(traffic: &Arc<ClientTraffic>, clients: usize) -> anyhow::Result<LoadStep> {
    let first = Clients::start(traffic, 1);
    tokio::time::sleep(PHASE).await;
    let rises = Instant::now();
    let others = Clients::start(traffic, clients - 1);
    tokio::time::sleep(PHASE).await;
    let mut arrivals = others.stop().await?.arrivals;
    let falls = Instant::now();
    tokio::time::sleep(PHASE).await;
    arrivals.extend(first.stop().await?.arrivals);
    Ok(LoadStep {
        up: settled(&arrivals, rises),
        down: settled(&arrivals, falls),
    })
}

/// Seconds from `begin` until the speed of the phase's second half was reached first.
fn settled(arrivals: &[TokenArrival], begin: Instant) -> f64 {
    let speed = |from: Duration, over: Duration| {
        let range = begin + from..begin + from + over;
        let within = arrivals.iter().filter(|it| range.contains(&it.at));
        let tokens: u32 = within.map(|it| it.tokens).sum();
        f64::from(tokens) / over.as_secs_f64()
    };
    let last = speed(PHASE / 2, PHASE / 2);
    let mut from = Duration::ZERO;
    while from + LOOK < PHASE && speed(from, LOOK) < NEAR * last {
        from += LOOK / 4;
    }
    from.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_has_settled_once_it_is_as_fast_as_in_the_end() {
        let begin = Instant::now();
        let ms = Duration::from_millis;
        let every = |from: u64, to: u64, gap: usize| (from..to).step_by(gap);
        let arrivals = |times: Vec<u64>| -> Vec<TokenArrival> {
            let arrival = |at| TokenArrival {
                at: begin + ms(at),
                tokens: 1,
                after: None,
            };
            times.into_iter().map(arrival).collect()
        };
        let steady = arrivals(every(0, 5_000, 10).collect());
        assert!(settled(&steady, begin) < 1e-9);
        let late = arrivals(every(0, 1_000, 50).chain(every(1_000, 5_000, 10)).collect());
        let found = settled(&late, begin);
        assert!((0.6..=1.0).contains(&found), "{found}");
    }
}
