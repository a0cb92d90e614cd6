//! Top-k, top-p and min-p: the cuts between the softmax and the sampling law.

use std::sync::Arc;

use super::{Pipeline, normalise};
use crate::real::{Real, argmax};

impl Pipeline {
    /// Whether top-k, top-p or min-p is set.
    pub(super) fn cuts(&self) -> bool {
        self.params.top_k > 0 || self.params.top_p < 1.0 || self.params.min_p > 0.0
    }

    /// Top-k, then top-p over what is left, then min-p, each followed by renormalisation.
    pub(super) fn cut<F: Real>(&mut self, law: &mut [F]) {
        let params = Arc::clone(&self.params);
        let k = params.top_k as usize;
        let by_law = |law: &[F], a: u32, b: u32| {
            let order = law[b as usize].partial_cmp(&law[a as usize]);
            order.unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(&b))
        };
        if k > 0 && k < law.len() {
            self.order.clear();
            self.order.extend(0..law.len() as u32);
            self.order
                .select_nth_unstable_by(k - 1, |&a, &b| by_law(law, a, b));
            for &token in &self.order[k..] {
                law[token as usize] = F::zero();
            }
            normalise(law);
        }
        if params.top_p < 1.0 {
            let top_p = F::from_f32(params.top_p);
            self.order.clear();
            self.order
                .extend((0..law.len() as u32).filter(|&v| law[v as usize] > F::zero()));
            self.order.sort_unstable_by(|&a, &b| by_law(law, a, b));
            let mut mass = F::zero();
            let kept = self.order.iter().position(|&token| {
                mass += law[token as usize];
                mass >= top_p
            });
            for &token in &self.order[kept.map_or(self.order.len(), |last| last + 1)..] {
                law[token as usize] = F::zero();
            }
            normalise(law);
        }
        if params.min_p > 0.0 {
            let floor = law[argmax(law)] * F::from_f32(params.min_p);
            for value in law.iter_mut() {
                if *value < floor {
                    *value = F::zero();
                }
            }
            normalise(law);
        }
    }
}
