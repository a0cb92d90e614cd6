//! The matrix products of a forward by themselves, to measure what else a forward does.

use model::{Cpu, Decoder, Linear, LinearScratch};

/// Inputs and results of the products of one forward, of no meaning.
#[derive(Debug)]
pub(crate) struct Products {
    rows: usize,
    cpu: Cpu,
    x: Vec<f32>,
    y: Vec<f32>,
    scratch: LinearScratch,
}

impl Products {
    /// Room for the products of a forward of `model` that scores `rows` positions.
    pub(super) fn new(model: &Decoder, rows: usize) -> Self {
        let most = |of: fn(&Linear) -> usize| model.matrices().map(of).max().unwrap_or_default();
        let (inputs, outputs) = (most(Linear::inputs), most(Linear::outputs));
        Self {
            rows,
            cpu: Cpu::detect(),
            x: (0..rows * inputs).map(|i| (i % 13) as f32 - 6.25).collect(),
            y: vec![0.0; rows * outputs],
            scratch: LinearScratch::default(),
        }
    }

    /// Computes every product of such a forward, in its order, as the forward does: the quantisation of
    /// its inputs and the work of several threads included. `model` is the one this was made for.
    pub(super) fn run(&mut self, model: &Decoder) {
        // As a forward does.
        let _running = self.cpu.threads.open();
        let mut matrices = model.matrices().peekable();
        while let Some(matrix) = matrices.next() {
            let next = matrices.peek().copied().or_else(|| model.matrices().next());
            matrix.forward_before(
                next,
                &self.cpu,
                &self.x[..self.rows * matrix.inputs()],
                &mut self.y[..self.rows * matrix.outputs()],
                &mut self.scratch,
            );
        }
    }
}
