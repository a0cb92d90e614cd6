//! `outrider bench`: methods against the target alone, on the same prompts, in the same run.

mod measure;
mod prompts;
mod table;

use anyhow::{bail, ensure};
use clap::Args;
use server::channel;
use server::telemetry;
use server::transport::MAX_MESSAGE_BYTES;
use speculation::methods;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use wire::v1::coordinator_client::CoordinatorClient;

use crate::cluster::Cluster;
use crate::config::Config;
use measure::{Measured, Setting, measure};

/// The method every other one is compared with.
const BASELINE: &str = "target-only";

/// Arguments of `outrider bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// A running coordinator, http://HOST:PORT. Without it the three services run in this process.
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    /// Prompts as JSON lines {"kind": ..., "prompt": ...}; without it 20 of each kind of text the
    /// default pair knows.
    #[arg(long, value_name = "FILE")]
    prompts: Option<std::path::PathBuf>,
    /// Most prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 20)]
    per_kind: usize,
    /// Methods to compare with target-only.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "coupled"
    )]
    methods: Vec<String>,
    /// Temperatures.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    temperatures: Vec<f32>,
    /// Draft tokens a round.
    #[arg(long, value_name = "K", default_value_t = 4)]
    draft_len: u32,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    /// Prints one JSON object a line instead of tables.
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) async fn run(args: BenchArgs, config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log)?;
    for method in &args.methods {
        if methods::find(method)?.name == BASELINE {
            bail!("--methods: {BASELINE} is what the others are compared with");
        }
    }
    let prompts = prompts::load(args.prompts.as_deref(), args.per_kind)?;
    ensure!(!prompts.is_empty(), "--prompts: no prompt found");
    let Some(url) = &args.coordinator else {
        let cluster = Cluster::start(config.on_loopback(), CancellationToken::new()).await?;
        let client = connect(&cluster.coordinator_url, &channel::ChannelConfig::default())?;
        compare(&args, client, &prompts).await?;
        return cluster.stop().await;
    };
    compare(&args, connect(url, &config.coordinator.channel)?, &prompts).await
}

fn connect(
    url: &str,
    config: &channel::ChannelConfig,
) -> anyhow::Result<CoordinatorClient<Channel>> {
    let channel = channel::connect(url, config)?;
    Ok(CoordinatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES))
}

async fn compare(
    args: &BenchArgs,
    mut client: CoordinatorClient<Channel>,
    prompts: &[prompts::Prompt],
) -> anyhow::Result<()> {
    let setting = |method: &str, temperature| Setting {
        method: method.to_owned(),
        temperature,
        draft_len: args.draft_len,
        max_tokens: args.max_tokens,
    };
    // Caches are filled and pages faulted in before anything is timed.
    for method in std::iter::once(BASELINE).chain(args.methods.iter().map(String::as_str)) {
        measure(&mut client, &setting(method, 1.0), &prompts[0].text, 0).await?;
    }
    for &temperature in &args.temperatures {
        for method in &args.methods {
            let mut rows = table::Rows::default();
            for (seed, prompt) in prompts.iter().enumerate() {
                let seed = seed as u64;
                // In turn, so that both see the machine in the same mood.
                let baseline = setting(BASELINE, temperature);
                let baseline = measure(&mut client, &baseline, &prompt.text, seed).await?;
                let method = setting(method, temperature);
                let method = measure(&mut client, &method, &prompt.text, seed).await?;
                rows.add(&prompt.kind, &baseline, &method);
            }
            rows.print(method, temperature, args.draft_len, args.json)?;
        }
    }
    Ok(())
}
