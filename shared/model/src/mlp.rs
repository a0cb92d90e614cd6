//! Gated feed-forward networks (Shazeer 2020, equation 5): `y = down (activation(gate x) * up x)`.

use speculation::simd::{Kernel, Level};

use crate::{
    activation::{WithFunction, with_function},
    config::Activation,
    cpu::Cpu,
    linear::{Activations, ActivationsWriter, Computed, GROUP, Linear, LinearScratch},
};

/// The weights. Gate and up are one matrix in which they take turns: the thread that has computed 32 numbers of
/// both gates them at once, in the form that `down` takes.
#[derive(Clone, Debug)]
pub(crate) struct GatedMlp {
    /// `(2 * intermediate, hidden)`, [`crate::linear::OutputOrder::Paired`].
    gate_up: Linear,
    /// `(hidden, intermediate)`.
    down: Linear,
    activation: Activation,
}

/// Buffers of a network's forward, reused by the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct MlpScratch {
    gate_up: Vec<f32>,
    /// What `down` takes.
    gated: Activations,
}

impl GatedMlp {
    /// `gate_up` has its outputs in pairs, `down` as many inputs.
    pub(crate) fn new(gate_up: Linear, down: Linear, activation: Activation) -> Self {
        debug_assert_eq!(
            gate_up.outputs(),
            2 * down.inputs().next_multiple_of(GROUP),
            "gate and up are paired"
        );
        Self {
            gate_up,
            down,
            activation,
        }
    }

    /// The matrix of the first product: gate and up by turns.
    pub(crate) fn gate_up(&self) -> &Linear {
        &self.gate_up
    }

    /// The matrices, in the order of their products.
    pub(crate) fn matrices(&self) -> [&Linear; 2] {
        [&self.gate_up, &self.down]
    }

    /// Writes the network's results for `x`, `(rows, hidden)`, to `y`, of the same shape. The product with
    /// `next`, if it is known, comes afterwards.
    pub(crate) fn forward_before(
        &self,
        next: Option<&Linear>,
        cpu: &Cpu,
        x: &[f32],
        y: &mut [f32],
        scratch: &mut MlpScratch,
        linear: &mut LinearScratch,
    ) {
        let MlpScratch { gate_up, gated } = scratch;
        let rows = x.len() / self.gate_up.inputs();
        gate_up.resize(rows * self.gate_up.outputs(), 0.0);
        let writer = gated.writer(&self.down, rows);
        let gate = |computed: Computed<'_>| {
            cpu.level.run(Gated {
                level: cpu.level,
                activation: self.activation,
                computed,
                output: &writer,
            });
        };
        let down = Some(&self.down);
        self.gate_up
            .forward_then(down, cpu, x, gate_up, linear, gate);
        self.down.forward_activations(next, cpu, gated, y);
    }
}

/// Gates what was computed of some pairs of groups, which nobody else does.
struct Gated<'a> {
    /// What this is compiled for.
    level: Level,
    activation: Activation,
    computed: Computed<'a>,
    output: &'a ActivationsWriter<'a>,
}

impl WithFunction for Gated<'_> {
    #[inline(always)]
    fn with(self, function: impl Fn(f32) -> f32) {
        for row in 0..self.computed.rows() {
            let output = self.output.row(row);
            for group in self.computed.groups.clone().step_by(2) {
                let (gate, up) = self.computed.pair(row, group);
                let mut gated = [0.0; GROUP];
                for ((gated, gate), up) in gated.iter_mut().zip(gate).zip(up) {
                    *gated = function(*gate) * up;
                }
                // SAFETY: each pair is one call's.
                unsafe { output.write(self.level, group / 2, &gated) };
            }
        }
    }
}

impl Kernel for Gated<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        with_function(self.activation, self);
    }
}

#[cfg(test)]
mod tests;
