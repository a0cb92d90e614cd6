//! What more positions cost on engine candle: of each of its families a model of random weights.

use anyhow::{Context, ensure};
use model::candle::{CandleConfig, CandleModel, random};
use model::weights::Weights;
use model::{ComputeDevice, Model, NumberFormat};
use serde_json::json;

use super::subject::DecodeSubject;
use super::{DecodeArgs, POSITIONS};
use crate::models::{self, millions};
use crate::report::{BenchReport, number, only_json, text};
use crate::timing::in_turn;
use outrider::progress;

/// Families, each with what it has beside the sizes that are flags. Of 16 experts 4 compute a token, and together they
/// have as many weights as 4 feed-forward networks of the others.
const FAMILIES: [(&str, &str); 3] = [
    (
        "qwen3_moe",
        r#"{"num_experts": 16, "num_experts_per_tok": 4, "norm_topk_prob": true}"#,
    ),
    ("glm4", r#"{"partial_rotary_factor": 0.5}"#),
    ("smollm3", "{}"),
];

/// Measures all families.
///
/// # Errors
/// If a size is out of range.
pub(super) fn run(args: &DecodeArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    for (family, own) in FAMILIES {
        progress::show(&format!("{family}, by candle"))?;
        let model = model(args, family, own)?;
        let on = format!("{family}, {}", millions(model.weights_per_token() as usize));
        let most = POSITIONS[POSITIONS.len() - 1];
        let limit = model.config().shape().context_len - most;
        ensure!(
            (1..=limit).contains(&args.context),
            "--context: {} is out of range, expected 1 to {limit}",
            args.context
        );
        let mut subject = DecodeSubject::of(Model::Candle(model));
        subject.fill(args.context)?;
        let count = subject.enough()?;
        let times = in_turn(args.repeats, &POSITIONS, |&positions| {
            subject.forwards(positions, count)
        })?;
        for (positions, of) in POSITIONS.into_iter().zip(times) {
            report.row(
                "positions",
                vec![
                    text("on", on.clone()),
                    text("format", "f32"),
                    text("positions", positions).across(),
                    only_json("ms", of.us / 1e3),
                    number("ratio", of.ratio, 2).cell(),
                ],
            )?;
        }
    }
    report.note("engine candle; millions: weights that a token reads; positions: a forward of several over one of one");
    Ok(())
}

fn model(args: &DecodeArgs, family: &str, own: &str) -> anyhow::Result<CandleModel> {
    let sizes = models::random(args.models.hidden, args.models.layers, args.models.vocab)?;
    let mut config = json!({
        "model_type": family,
        "vocab_size": sizes.vocab_size,
        "hidden_size": sizes.hidden_size,
        "intermediate_size": sizes.intermediate_size,
        "moe_intermediate_size": sizes.intermediate_size / 4,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_dim,
        "max_position_embeddings": sizes.context_len,
        "tie_word_embeddings": true,
    });
    let own: serde_json::Map<_, _> = serde_json::from_str(own)?;
    for (key, value) in own {
        config[key] = value;
    }
    let config = CandleConfig::from_json(config.to_string().as_bytes())?;
    let weights = Weights::from_bytes(random(&config, 1)?)?;
    let (format, place) = (NumberFormat::F32, ComputeDevice::Cpu);
    CandleModel::load(&config, &weights, format, place).context("the random model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn every_family_is_measured() {
        let args: DecodeArgs = parsed(&[
            "--engine=candle",
            "--hidden=64",
            "--layers=1",
            "--vocab=64",
            "--repeats=1",
            "--context=7",
        ]);
        let mut report = BenchReport::quiet();
        super::super::run(&args, &mut report).expect("measured");
        let positions = report.objects("positions");
        assert_eq!(positions.len(), FAMILIES.len() * POSITIONS.len());
        let on = positions.iter().filter_map(|row| row["on"].as_str());
        assert!(on.clone().any(|on| on.starts_with("glm4")));
        assert!(report.rows("steps").is_empty());
    }
}
