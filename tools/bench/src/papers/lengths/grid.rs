//! A grid of acceptance heads: what each predicts, and what stopping by it comes to (paper B, Table 3).

use super::DRAFT_COST;
use crate::papers::claims::Claim;
use crate::timing::median;
use crate::train_head::Replayed;

/// A head of the grid.
#[derive(Clone, Debug)]
pub(super) struct GridHead {
    /// Residual blocks D.
    pub(super) depth: usize,
    /// Weight of refusals in the loss.
    pub(super) w_rej: f64,
    /// One for each seed of the training.
    pub(super) trained: Vec<Trained>,
}

/// What came of one training.
#[derive(Clone, Debug)]
pub(super) struct Trained {
    /// Mean divergence of predictions from labels in nats, on what was learnt from.
    pub(super) learnt_kl: f64,
    /// On held-out responses.
    pub(super) held_out_kl: f64,
    /// Rounds replayed on held-out responses, by threshold.
    pub(super) stops: Vec<Stop>,
}

/// A threshold, and what stopping by it comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stop {
    pub(super) threshold: f64,
    /// Draft tokens not emitted, by emitted token.
    pub(super) discard: f64,
    /// Target forwards, by emitted token.
    pub(super) verification: f64,
    /// Over the target alone where only forwards cost.
    pub(super) speedup: f64,
}

impl Stop {
    /// Returns what a replay says: of the tokens that a round emits, all but the target's own were drafted.
    pub(super) fn of(threshold: f64, replayed: Replayed) -> Self {
        let Replayed {
            draft_len, emitted, ..
        } = replayed;
        Self {
            threshold,
            discard: (draft_len - (emitted - 1.0)) / emitted,
            verification: 1.0 / emitted,
            speedup: emitted / (1.0 + DRAFT_COST * draft_len),
        }
    }
}

impl GridHead {
    /// Returns median, least and most of a figure over the trainings.
    pub(super) fn spread(&self, figure: impl Fn(&Trained) -> f64) -> [f64; 3] {
        let figures: Vec<f64> = self.trained.iter().map(figure).collect();
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        [median(figures), least, most]
    }

    /// Returns what each threshold comes to, the median over trainings.
    pub(super) fn stops(&self) -> Vec<Stop> {
        let thresholds = 0..self.trained[0].stops.len();
        let of = |index: usize, figure: fn(&Stop) -> f64| {
            self.spread(|trained| figure(&trained.stops[index]))[0]
        };
        let stop = |index: usize| Stop {
            threshold: self.trained[0].stops[index].threshold,
            discard: of(index, |stop| stop.discard),
            verification: of(index, |stop| stop.verification),
            speedup: of(index, |stop| stop.speedup),
        };
        thresholds.map(stop).collect()
    }

    /// Returns the quickest threshold, the lowest among equals.
    pub(super) fn best(&self) -> Stop {
        let stops = self.stops();
        let quicker = |a: Stop, b: Stop| if b.speedup > a.speedup { b } else { a };
        stops.iter().copied().fold(stops[0], quicker)
    }
}

/// Returns what became of the claims of Table 3.
pub(super) fn claims(heads: &[GridHead]) -> Vec<Claim> {
    vec![deeper(heads), warier(heads), alike(heads)]
}

/// Returns the heads with the same value of `key`, in order.
fn groups<K: PartialEq>(heads: &[GridHead], key: impl Fn(&GridHead) -> K) -> Vec<Vec<&GridHead>> {
    let mut groups: Vec<Vec<&GridHead>> = Vec::new();
    for head in heads {
        match groups.iter_mut().find(|group| key(group[0]) == key(head)) {
            Some(group) => group.push(head),
            None => groups.push(vec![head]),
        }
    }
    groups
}

fn deeper(heads: &[GridHead]) -> Claim {
    let (mut holds, mut words) = (Vec::new(), Vec::new());
    for group in groups(heads, |head| head.w_rej) {
        let (shallow, deep) = (group[0], group[group.len() - 1]);
        let [a, b] = [shallow, deep].map(|head| head.spread(|it| it.held_out_kl));
        words.push(format!(
            "weight {}: {:.3} at D={}, {:.3} at D={}",
            shallow.w_rej, a[0], shallow.depth, b[0], deep.depth
        ));
        // Every training of one is better than every training of the other.
        holds.push(b[2] < a[1]);
    }
    Claim {
        of: "B, Table 3",
        says: "deeper heads predict better: the divergence on held-out text falls from D=1 to 3, from .390 to .384 at weight 1, .461 to \
               .454 at 3, .596 to .582 at 6",
        found: words.join("; "),
        holds,
        but: "after so short a training a deeper head is no better than one block",
    }
}

fn warier(heads: &[GridHead]) -> Claim {
    let (mut holds, mut words) = (Vec::new(), Vec::new());
    for group in groups(heads, |head| head.depth) {
        let (light, heavy) = (group[0], group[group.len() - 1]);
        let [a, b] = [light, heavy].map(|head| head.best().threshold);
        words.push(format!(
            "D={}: h={a} at weight {}, {b} at {}",
            light.depth, light.w_rej, heavy.w_rej
        ));
        holds.push(b > a);
    }
    Claim {
        of: "B, Table 3",
        says: "the more refusals weigh, the higher is the best threshold: h=.3 at weight 1, .5 at 3, .7 at 6 in most columns",
        found: words.join("; "),
        holds,
        but: "the best thresholds lie so near one another in speed that noise decides between them",
    }
}

/// Part of the quickest by which heads may be slower and be as quick; between the paper's are 3.1 to 3.5%.
const AS_QUICK: f64 = 0.035;

fn alike(heads: &[GridHead]) -> Claim {
    let speeds: Vec<f64> = heads.iter().map(|head| head.best().speedup).collect();
    let least = speeds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = speeds.iter().copied().fold(0.0, f64::max);
    Claim {
        of: "B, Table 3",
        says: "with its own best threshold each head is about as quick: the slowest by 3.5% at most",
        found: format!(
            "speedups by forwards from {least:.3} to {most:.3}, {:.1}% apart",
            100.0 * (1.0 - least / most)
        ),
        holds: vec![1.0 - least / most <= AS_QUICK],
        but: "some heads are too wary at every threshold tried",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(depth: usize, w_rej: f64, kl: [f64; 3], speedups: [f64; 2]) -> GridHead {
        let stop = |threshold, speedup| Stop {
            threshold,
            discard: 0.5,
            verification: 0.4,
            speedup,
        };
        let trained = kl.map(|held_out_kl| Trained {
            learnt_kl: held_out_kl,
            held_out_kl,
            stops: vec![stop(0.3, speedups[0]), stop(0.7, speedups[1])],
        });
        GridHead {
            depth,
            w_rej,
            trained: trained.to_vec(),
        }
    }

    /// Of four drafted tokens 1.5 are emitted, and the target's own.
    #[test]
    fn rates_follow_from_a_replay() {
        let replayed = Replayed {
            draft_len: 4.0,
            emitted: 2.5,
            rate: 0.0,
        };
        let stop = Stop::of(0.3, replayed);
        assert!((stop.discard - 1.0).abs() < 1e-12);
        assert!((stop.verification - 0.4).abs() < 1e-12);
        // 2.5 / (1 + 4 · .21)
        assert!((stop.speedup - 2.5 / 1.84).abs() < 1e-12);
    }

    #[test]
    fn claims_are_counted_by_weight_and_by_depth() {
        let heads = [
            head(1, 1.0, [0.40, 0.41, 0.42], [1.50, 1.40]),
            head(1, 6.0, [0.60, 0.61, 0.62], [1.30, 1.52]),
            head(3, 1.0, [0.30, 0.31, 0.39], [1.50, 1.40]),
            head(3, 6.0, [0.59, 0.60, 0.63], [1.51, 1.50]),
        ];
        assert_eq!(heads[0].spread(|it| it.held_out_kl), [0.41, 0.40, 0.42]);
        assert_eq!(heads[1].best().threshold, 0.7);
        let claims = claims(&heads);
        assert_eq!(claims[0].holds, [true, false]);
        assert_eq!(claims[1].holds, [true, false]);
        assert_eq!(claims[2].holds, [true]);
        let slow = [heads[0].clone(), head(2, 1.0, [0.4; 3], [1.4, 1.3])];
        assert_eq!(alike(&slow).holds, [false]);
    }
}
