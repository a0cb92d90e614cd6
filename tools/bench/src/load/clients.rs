//! Clients that ask one request after another, and what reaches them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use client::{Client, GenerationEvent};
use outrider::measure::request;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::v1::{Grammar, RoundReport, SpeculationStatistics, Timing};

use crate::spec::MeasuredMethod;
use crate::timing::quantile;

/// The requests that the clients of one measurement make.
#[derive(Clone, Debug)]
pub(crate) struct ClientTraffic {
    pub(crate) client: Client,
    pub(crate) method: MeasuredMethod,
    pub(crate) prompts: Arc<[String]>,
    pub(crate) temperature: f32,
    pub(crate) max_tokens: u32,
    /// Whether rounds are reported, which costs a message each.
    pub(crate) reports: bool,
    /// Whether outputs go on to `max_tokens`.
    pub(crate) ignores_end: bool,
    /// What outputs follow.
    pub(crate) grammar: Option<Grammar>,
}

/// The tokens that a client received, and when.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) arrivals: Vec<TokenArrival>,
    pub(super) rounds: Vec<RoundReport>,
    /// The statistics of the requests that ended.
    pub(super) ended: Vec<SpeculationStatistics>,
}

/// Tokens that reached a client at once, and how long they took.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenArrival {
    pub(super) at: Instant,
    pub(super) tokens: u32,
    /// The time since the request's arrival before; none for its first.
    pub(super) after: Option<Duration>,
}

/// The tokens that all clients received in a window of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowSample {
    pub(crate) tokens_per_second: f64,
    /// The 99th percentile of the time that a token took after the one before, in milliseconds.
    pub(super) token_ms_p99: f64,
    pub(super) rounds: Rounds,
    pub(super) lengths: Lengths,
}

/// The statistics of draft lengths that ended requests report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lengths {
    /// Share of the target's forwards in which it decoded alone because drafting did not pay.
    pub(super) rested: Option<f64>,
    /// Means over requests: the gain predicted for the last round, and the gain measured.
    pub(super) predicted_gain: Option<f64>,
    pub(super) measured_gain: Option<f64>,
}

impl Lengths {
    fn of(ended: &[SpeculationStatistics]) -> Self {
        let sum = |of: fn(&SpeculationStatistics) -> u32| ended.iter().map(of).sum::<u32>();
        let forwards = sum(|it| it.target_forwards);
        let rested = sum(|it| it.rested_tokens);
        let mean = |of: fn(&SpeculationStatistics) -> Option<f64>| {
            let known: Vec<f64> = ended.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        Self {
            rested: (forwards > 0).then(|| f64::from(rested) / f64::from(forwards)),
            predicted_gain: mean(|it| it.predicted_gain),
            measured_gain: mean(|it| it.measured_gain),
        }
    }
}

/// Where the time of rounds with drafts went, means in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    pub(super) count: usize,
    pub(super) drafted: f64,
    pub(super) accepted: f64,
    /// The shares of drafter and verifier.
    pub(super) peers: [PeerShare; 2],
}

/// What one peer took of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerShare {
    /// From the request to its answer.
    pub(super) whole_ms: f64,
    pub(super) queue_ms: f64,
    pub(super) forward_ms: f64,
    /// Sequences in a forward.
    pub(super) batch: f64,
}

impl Rounds {
    fn of(reports: &[RoundReport]) -> Self {
        let drafted: Vec<_> = reports.iter().filter(|round| round.drafted > 0).collect();
        let mean = |of: &dyn Fn(&RoundReport) -> f64| {
            let sum = drafted.iter().fold(0.0, |sum, round| sum + of(round));
            sum / drafted.len().max(1) as f64
        };
        let share = |whole: fn(&RoundReport) -> u32, peer: fn(&RoundReport) -> Timing| PeerShare {
            whole_ms: mean(&|round| f64::from(whole(round)) / 1e3),
            queue_ms: mean(&|round| f64::from(peer(round).queue_us) / 1e3),
            forward_ms: mean(&|round| f64::from(peer(round).forward_us) / 1e3),
            batch: mean(&|round| f64::from(peer(round).batch)),
        };
        Self {
            count: drafted.len(),
            drafted: mean(&|round| round.drafted.into()),
            accepted: mean(&|round| round.accepted.into()),
            peers: [
                share(
                    |round| round.draft_us,
                    |round| round.drafter.unwrap_or_default(),
                ),
                share(
                    |round| round.verify_us,
                    |round| round.verifier.unwrap_or_default(),
                ),
            ],
        }
    }
}

/// Clients under way.
#[derive(Debug)]
pub(super) struct Clients {
    tasks: JoinSet<anyhow::Result<Received>>,
    stop: CancellationToken,
}

impl Clients {
    /// Starts `count` clients. Each start sends the same requests in the same order.
    pub(super) fn start(traffic: &Arc<ClientTraffic>, count: usize) -> Self {
        let stop = CancellationToken::new();
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let (traffic, next, stop) = (Arc::clone(traffic), Arc::clone(&next), stop.clone());
            tasks.spawn(async move {
                let mut received = Received::default();
                let asking = async {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        traffic.ask(index, &mut received).await?;
                    }
                };
                let failed: anyhow::Result<()> = tokio::select! {
                    failed = asking => failed,
                    () = stop.cancelled() => Ok(()),
                };
                failed.map(|()| received)
            });
        }
        Self { tasks, stop }
    }

    /// Ends the clients, in the middle of their requests, and returns what reached them.
    ///
    /// # Errors
    /// If a request was refused or failed.
    pub(super) async fn stop(mut self) -> anyhow::Result<Received> {
        self.stop.cancel();
        let mut all = Received::default();
        while let Some(ended) = self.tasks.join_next().await {
            let received = ended??;
            all.arrivals.extend(received.arrivals);
            all.rounds.extend(received.rounds);
            all.ended.extend(received.ended);
        }
        Ok(all)
    }
}

impl ClientTraffic {
    /// Measures what `count` clients receive in `window`, once they have been under way for `settle`.
    ///
    /// # Errors
    /// If a request was refused or failed.
    pub(crate) async fn sample(
        self: &Arc<Self>,
        count: usize,
        settle: Duration,
        window: Duration,
    ) -> anyhow::Result<WindowSample> {
        let clients = Clients::start(self, count);
        tokio::time::sleep(settle).await;
        let begin = Instant::now();
        tokio::time::sleep(window).await;
        let received = clients.stop().await?;
        Ok(WindowSample::of(&received, begin, window))
    }

    /// Makes the request of number `index`.
    async fn ask(&self, index: usize, received: &mut Received) -> anyhow::Result<()> {
        let prompt = &self.prompts[index % self.prompts.len()];
        let mut request = request(prompt, self.max_tokens, self.temperature, index as u64);
        self.method.apply(&mut request);
        request.report_rounds = self.reports;
        request.ignore_eos = self.ignores_end;
        let sampling = request.sampling.get_or_insert_default();
        sampling.grammar.clone_from(&self.grammar);
        let failed = |error| anyhow!("{}: {error}", self.method);
        let mut generation = self.client.generate(request).await.map_err(failed)?;
        let mut before = None;
        while let Some(event) = generation.event().await.map_err(failed)? {
            match event {
                GenerationEvent::Chunk(chunk) if !chunk.token_ids.is_empty() => {
                    let at = Instant::now();
                    let after = before.replace(at).map(|before| at - before);
                    let tokens = chunk.token_ids.len() as u32;
                    received.arrivals.push(TokenArrival { at, tokens, after });
                }
                GenerationEvent::Finished(finished) => received.ended.extend(finished.speculation),
                GenerationEvent::Round(round) => received.rounds.push(*round),
                _ => {}
            }
        }
        Ok(())
    }
}

impl WindowSample {
    /// What of `arrivals` fell into `window` from `begin` on.
    pub(super) fn of(received: &Received, begin: Instant, window: Duration) -> Self {
        let within = |arrival: &&TokenArrival| (begin..begin + window).contains(&arrival.at);
        let mut tokens = 0;
        let mut times: Vec<f64> = Vec::new();
        for arrival in received.arrivals.iter().filter(within) {
            tokens += arrival.tokens;
            if let Some(after) = arrival.after {
                let each = after.as_secs_f64() * 1e3 / f64::from(arrival.tokens);
                times.extend(std::iter::repeat_n(each, arrival.tokens as usize));
            }
        }
        times.sort_by(f64::total_cmp);
        Self {
            tokens_per_second: f64::from(tokens) / window.as_secs_f64(),
            token_ms_p99: quantile(&times, 0.99).unwrap_or_default(),
            rounds: Rounds::of(&received.rounds),
            lengths: Lengths::of(&received.ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_what_came_in_its_window() {
        let begin = Instant::now();
        let ms = Duration::from_millis;
        let arrival = |at, tokens, after: Option<u64>| TokenArrival {
            at: begin + ms(at),
            tokens,
            after: after.map(ms),
        };
        let arrivals = [
            arrival(0, 1, None),
            arrival(40, 4, Some(40)),
            arrival(70, 1, Some(30)),
            arrival(100, 50, Some(30)),
        ];
        let received = Received {
            arrivals: arrivals.into(),
            ..Received::default()
        };
        let sample = WindowSample::of(&received, begin, ms(100));
        assert!((sample.tokens_per_second - 60.0).abs() < 1e-9, "{sample:?}");
        // Four tokens at 10 ms, one at 30: .96 of the way from the fourth to the fifth.
        assert!((sample.token_ms_p99 - 29.2).abs() < 1e-9, "{sample:?}");
        assert!(
            WindowSample::of(&Received::default(), begin, ms(100))
                .token_ms_p99
                .abs()
                < 1e-9
        );
    }
}
