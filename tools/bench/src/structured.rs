//! `outrider-bench structured`: output under a grammar beside free output.

pub(crate) mod spelling;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use client::Client;
use model::source::serve;
use model::{Checkpoint, ModelConfig, WeightFormat};
use outrider::args::ServicesArgs;
use outrider::cluster::Cluster;
use outrider::config::Config;
use outrider::measure::BASELINE;
use outrider::{connect, progress, prompts};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wire::v1::Grammar;

use crate::load::clients::ClientTraffic;
use crate::models::random;
use crate::report::{BenchReport, Row, number, only_json, text};
use crate::spec::MeasuredMethod;
use crate::timing::median;
use crate::{pairs, ranges};

/// Width and layers of the target of random weights.
const HIDDEN: usize = 576;
const LAYERS: usize = 12;

/// Time in which requests get under way.
const SETTLE: Duration = Duration::from_millis(500);

/// Strings of the list, and properties of the object, that answers are: more than an answer has room for.
const PARTS: usize = 150;

/// Prompts of the target of random weights, which requests take in turn.
const PROMPTS: usize = 64;

/// The least speeds over that of free output: under a grammar, and of answers that a schema mostly forces.
const GOAL: f64 = 0.9;
const FORCED_GOAL: f64 = 1.2;

#[derive(Debug, Args)]
pub(crate) struct StructuredArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Size of the vocabulary of a target of random weights, which is measured in place of a model.
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,
    /// Numbers of clients.
    #[arg(long, value_name = "NS", value_delimiter = ',', default_value = "1,16")]
    clients: Vec<usize>,
    /// Temperature.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Times that all are measured, in turn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// Seconds in which tokens are counted.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    window: f64,
    /// Output tokens of each request.
    #[arg(long, value_name = "N", default_value_t = 128)]
    max_tokens: u32,
}

impl StructuredArgs {
    fn check(&self) -> anyhow::Result<()> {
        ranges::at_least_one([
            ("repeats", self.repeats),
            ("max-tokens", self.max_tokens as usize),
        ])?;
        ranges::clients(&self.clients)?;
        ranges::seconds([("window", self.window)])?;
        ranges::temperature("temperature", self.temperature)
    }
}

/// What answers follow.
struct AnswerKind {
    name: &'static str,
    /// Whether it is mostly forced.
    is_forced: bool,
    schema: Value,
}

/// Measures.
pub(crate) async fn run(
    args: StructuredArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    args.check()?;
    report.title("Output under a grammar beside free output");
    if let Some(vocab) = args.vocab {
        let cluster = of_random_weights(config, vocab).await?;
        let client = connect::within(&cluster.coordinator_url)?;
        let texts = (0..PROMPTS).map(spelling::prompt).collect();
        measure(&args, client, texts, report).await?;
        return cluster.stop().await;
    }
    let texts = prompts::load(None, usize::MAX)?;
    let texts = texts.into_iter().map(|prompt| prompt.text).collect();
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client, _: &str| measure(&args, client, texts, report).await;
    connect::ask(coordinator, config, ask).await
}

/// Starts services of a target of random weights whose tokens spell any text.
async fn of_random_weights(config: Config, vocab: usize) -> anyhow::Result<Cluster> {
    let tokenizer = spelling::tokenizer(vocab)?;
    let served = |layers, name: &str| {
        let config = ModelConfig {
            eos_token_ids: vec![vocab as u32 - 1],
            ..random(HIDDEN, layers, vocab)?
        };
        let checkpoint = Checkpoint::random(config, 1)?.with_tokenizer(tokenizer.clone());
        serve(&checkpoint, WeightFormat::Q8_0, name.to_owned(), name).context("random weights")
    };
    let (target, draft) = (served(LAYERS, "random-target")?, served(1, "random-draft")?);
    let config = pairs::without_extras(config).on_loopback();
    let starting = Cluster::start_with(config, draft, target, CancellationToken::new());
    Box::pin(starting).await
}

async fn measure(
    args: &StructuredArgs,
    client: Client,
    texts: Vec<String>,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let prompts: Arc<[String]> = texts.into();
    let target_only = MeasuredMethod::parse(BASELINE)?;
    let streamed = MeasuredMethod::parse("coupled:schedule=stream:drafting=max-gram")?;
    let traffic = |method: &MeasuredMethod, schema: Option<&Value>| {
        let json_schema = schema.map(Value::to_string);
        Arc::new(ClientTraffic {
            client: client.clone(),
            method: method.clone(),
            prompts: Arc::clone(&prompts),
            temperature: args.temperature,
            max_tokens: args.max_tokens,
            reports: false,
            // Under a grammar the end is what comes once nothing else may.
            ignores_end: schema.is_none(),
            grammar: json_schema.map(|json_schema| Grammar {
                json_schema,
                ..Default::default()
            }),
        })
    };
    let free = traffic(&target_only, None);
    for kind in [list_of_strings(), object_of_properties()] {
        let schema = Some(&kind.schema);
        let sides = [
            &free,
            &traffic(&target_only, schema),
            &traffic(&streamed, schema),
        ];
        for &clients in &args.clients {
            progress::show(&format!("{}: {clients} clients", kind.name))?;
            let speeds = turns(args, sides, clients).await?;
            report.row("structured", row(&kind, clients, &speeds))?;
        }
    }
    report.note(format!(
        "free: {BASELINE} without a grammar; masked: {BASELINE} under it (goal: {GOAL}); with drafts: streamed drafts, the \
         tokens that the grammar forces and copies of the text (goal where most is forced: {FORCED_GOAL}); ratios are \
         medians of {} turns",
        args.repeats
    ));
    Ok(())
}

/// Tokens a second of each side in each turn, once each has been measured for nothing. Who comes first changes.
async fn turns(
    args: &StructuredArgs,
    sides: [&Arc<ClientTraffic>; 3],
    clients: usize,
) -> anyhow::Result<Vec<[f64; 3]>> {
    let window = Duration::from_secs_f64(args.window);
    let mut turns = Vec::new();
    for turn in 0..=args.repeats {
        let mut speeds = [0.0; 3];
        for at in 0..sides.len() {
            let side = (turn + at) % sides.len();
            let sample = sides[side].sample(clients, SETTLE, window).await?;
            speeds[side] = sample.tokens_per_second;
        }
        turns.push(speeds);
    }
    Ok(turns.split_off(1))
}

fn row(kind: &AnswerKind, clients: usize, turns: &[[f64; 3]]) -> Row {
    let speed = |side: usize| median(turns.iter().map(|turn| turn[side]).collect());
    let ratios = |side: usize| -> Vec<f64> {
        let ratio = |turn: &[f64; 3]| turn[side] / turn[0].max(f64::MIN_POSITIVE);
        turns.iter().map(ratio).collect()
    };
    let (masked, drafted) = (median(ratios(1)), median(ratios(2)));
    let goal = if kind.is_forced { FORCED_GOAL } else { GOAL };
    vec![
        text("answers", kind.name),
        text("clients", clients),
        number("free_tokens_per_second", speed(0), 0).called("free tokens/s"),
        number("masked_tokens_per_second", speed(1), 0).called("masked tokens/s"),
        number("masked_ratio", masked, 2)
            .called("masked")
            .missed(masked < GOAL),
        number("drafted_tokens_per_second", speed(2), 0).called("tokens/s with drafts"),
        number("drafted_ratio", drafted, 2)
            .called("with drafts")
            .missed(drafted < goal),
        only_json("masked_ratios", ratios(1)),
        only_json("drafted_ratios", ratios(2)),
    ]
}

/// Answers that are mostly the model's own: a list of texts.
fn list_of_strings() -> AnswerKind {
    AnswerKind {
        name: "a list of strings",
        is_forced: false,
        schema: json!({
            "type": "array",
            "items": {"type": "string", "maxLength": 60},
            "minItems": PARTS,
        }),
    }
}

/// Answers that are mostly forced: an object whose properties have long names, each another, and short values.
fn object_of_properties() -> AnswerKind {
    let name = |at: usize| spelling::prompt(at).replace(' ', "_");
    let names: Vec<String> = (0..PARTS).map(name).collect();
    let properties = names.iter().enumerate().map(|(at, name)| {
        let value = match at % 3 {
            0 => json!({"type": "boolean"}),
            1 => json!({"type": "integer", "minimum": 0, "maximum": 99}),
            _ => json!({"enum": ["low", "high"]}),
        };
        (name.clone(), value)
    });
    let properties: serde_json::Map<String, Value> = properties.collect();
    AnswerKind {
        name: "an object of many properties",
        is_forced: true,
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": names,
            "additionalProperties": false,
        }),
    }
}
