use super::*;
use crate::{
    activation::{gelu_tanh, relu, silu},
    linear::{
        OutputOrder, WeightFormat,
        tests::{bits, noise},
    },
};

/// A network, and its matrices one by one: gate, up and down.
struct Example {
    mlp: GatedMlp,
    parts: [Linear; 3],
    hidden: usize,
    activation: Activation,
}

impl Example {
    fn new(
        hidden: usize,
        intermediate: usize,
        activation: Activation,
        format: WeightFormat,
    ) -> Self {
        let [gate, up, down] = [1, 2, 3].map(|seed| noise(intermediate * hidden, seed));
        let [gate_bias, up_bias] = [4, 5].map(|seed| noise(intermediate, seed));
        let gate_up = Linear::in_order(
            OutputOrder::Paired,
            &[gate.clone(), up.clone()].concat(),
            Some([gate_bias.clone(), up_bias.clone()].concat()),
            hidden,
            format,
        );
        let down = Linear::new(&down, None, intermediate, format);
        let parts = [
            Linear::new(&gate, Some(gate_bias), hidden, format),
            Linear::new(&up, Some(up_bias), hidden, format),
            down.clone(),
        ];
        Self {
            mlp: GatedMlp::new(gate_up, down, activation),
            parts,
            hidden,
            activation,
        }
    }

    /// Each matrix by itself, and the formula.
    fn apart(&self, x: &[f32]) -> Vec<f32> {
        let cpu = Cpu::detect();
        let multiply = |linear: &Linear, x: &[f32]| {
            let mut y = vec![f32::NAN; x.len() / linear.inputs() * linear.outputs()];
            linear.forward(&cpu, x, &mut y, &mut LinearScratch::default());
            y
        };
        let formula = match self.activation {
            Activation::Silu => silu as fn(f32) -> f32,
            Activation::GeluTanh => gelu_tanh,
            Activation::Relu => relu,
        };
        let [gate, up, down] = &self.parts;
        let gated: Vec<f32> = (multiply(gate, x).iter().zip(multiply(up, x)))
            .map(|(gate, up)| formula(*gate) * up)
            .collect();
        multiply(down, &gated)
    }

    fn together(&self, cpu: &Cpu, x: &[f32], scratch: &mut MlpScratch) -> Vec<f32> {
        let mut y = vec![f32::NAN; x.len()];
        let linear = &mut LinearScratch::default();
        self.mlp
            .forward_before(None, cpu, x, &mut y, scratch, linear);
        y
    }
}

#[test]
fn a_network_has_the_bits_of_its_matrices_and_the_formula() {
    for format in WeightFormat::ALL {
        for (hidden, intermediate, activation) in [
            (64, 352, Activation::Silu),
            (256, 512, Activation::GeluTanh),
            (48, 100, Activation::Relu),
            (40, 1, Activation::Silu),
        ] {
            let example = Example::new(hidden, intermediate, activation, format);
            // Kept from one call to the next, larger before smaller: what is left over must not be seen.
            let mut scratch = MlpScratch::default();
            for rows in [70, 1, 7, 13, 5] {
                let x = noise(rows * example.hidden, 7 + rows as u32);
                let expected = bits(&example.apart(&x));
                for level in Level::all() {
                    let cpu = Cpu {
                        level,
                        ..Cpu::detect()
                    };
                    let found = bits(&example.together(&cpu, &x, &mut scratch));
                    assert_eq!(
                        found, expected,
                        "{format} {hidden}x{intermediate}, {rows} rows, {level:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_broken_does_not_come_out_as_numbers() {
    for format in WeightFormat::ALL {
        let example = Example::new(64, 100, Activation::Silu, format);
        let mut x = noise(2 * 64, 6);
        x[64 + 3] = f32::NAN;
        let y = example.together(&Cpu::detect(), &x, &mut MlpScratch::default());
        let (whole, broken) = y.split_at(64);
        assert!(whole.iter().all(|y| y.is_finite()), "{format}");
        assert!(broken.iter().all(|y| y.is_nan()), "{format}");
    }
}
