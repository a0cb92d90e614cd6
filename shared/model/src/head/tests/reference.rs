//! The head again, in double precision and in the plainest form, to hold the served one against.

/// Blocks (weight rows, bias), then the last layer's rows and bias.
pub(super) struct Reference {
    pub(super) blocks: Vec<(Vec<Vec<f64>>, Vec<f64>)>,
    pub(super) out_weight: Vec<Vec<f64>>,
    pub(super) out_bias: Vec<f64>,
    pub(super) depth: usize,
    pub(super) tied: bool,
}

impl Reference {
    /// The state after the blocks, and both logits.
    pub(super) fn logits(&self, hidden: &[f64]) -> (Vec<f64>, [f64; 2]) {
        let mut x = hidden.to_vec();
        for block in 0..self.depth {
            let (weight, bias) = &self.blocks[if self.tied { 0 } else { block }];
            let sums = linear(weight, bias, &x);
            for (x, sum) in x.iter_mut().zip(sums) {
                *x += sum / (1.0 + (-sum).exp());
            }
        }
        let logits = linear(&self.out_weight, &self.out_bias, &x);
        (x, [logits[0], logits[1]])
    }
}

fn linear(weight: &[Vec<f64>], bias: &[f64], x: &[f64]) -> Vec<f64> {
    let dot = |row: &Vec<f64>| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    weight
        .iter()
        .zip(bias)
        .map(|(row, bias)| dot(row) + bias)
        .collect()
}
