//! The services of a pair: in this process, or in three of their own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use coordinator::{Coordinator, ModelGroup};
use drafter::Loaded;
use ops::process::Process;
use ops::shutdown;
use outrider::cluster::{Cluster, url};
use outrider::config::Config;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::pair::PairArgs;
use crate::pairs::Pair;

/// Where the services run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ServiceLayout {
    /// All in this process.
    One,
    /// Each in a process of its own, on the same processors.
    Three,
    /// Each in a process of its own, the drafter on the last processor and the verifier on the others.
    Apart,
}

impl ServiceLayout {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Three => "three",
            Self::Apart => "apart",
        }
    }

    /// The processors of a service, as `taskset` takes them; none for all.
    fn processors(self, role: ServiceRole) -> anyhow::Result<Option<String>> {
        if self != Self::Apart || role == ServiceRole::Coordinator {
            return Ok(None);
        }
        let count = std::thread::available_parallelism()?.get();
        ensure!(
            count > 1,
            "--layouts apart: there is one processor, expected at least 2"
        );
        Ok(Some(match role {
            ServiceRole::Drafter => (count - 1).to_string(),
            ServiceRole::Verifier | ServiceRole::Coordinator => format!("0-{}", count - 2),
        }))
    }
}

/// One service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ServiceRole {
    Drafter,
    Verifier,
    Coordinator,
}

/// Services that are up.
pub(super) enum RunningServices {
    Within(Cluster),
    /// In processes that are killed when this is dropped.
    Apart {
        coordinator_url: String,
        _processes: [ServiceProcess; 3],
    },
}

/// A process that is killed when this is dropped.
pub(super) struct ServiceProcess(Child);

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl RunningServices {
    /// Starts the services of the pair that `args` name.
    ///
    /// # Errors
    /// If one of them does not start.
    pub(super) async fn start(
        layout: ServiceLayout,
        config: Config,
        args: &PairArgs,
    ) -> anyhow::Result<Self> {
        if layout == ServiceLayout::One {
            let pair = args.pair()?;
            let stop = CancellationToken::new();
            let starting = Cluster::start_with(config, pair.draft, pair.target, stop);
            return Ok(Self::Within(Box::pin(starting).await?));
        }
        let (drafter, drafter_url) = spawn(layout, ServiceRole::Drafter, args, &[]).await?;
        let (verifier, verifier_url) = spawn(layout, ServiceRole::Verifier, args, &[]).await?;
        let peers = ["--drafter", &drafter_url, "--verifier", &verifier_url];
        let spawned = spawn(layout, ServiceRole::Coordinator, args, &peers).await?;
        let (coordinator, coordinator_url) = spawned;
        Ok(Self::Apart {
            coordinator_url,
            _processes: [drafter, verifier, coordinator],
        })
    }

    pub(super) fn url(&self) -> &str {
        match self {
            Self::Within(cluster) => &cluster.coordinator_url,
            Self::Apart {
                coordinator_url, ..
            } => coordinator_url,
        }
    }

    /// Stops them.
    ///
    /// # Errors
    /// If one of them failed.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Within(cluster) => cluster.stop().await,
            Self::Apart { .. } => Ok(()),
        }
    }
}

/// Starts one service in a process of its own, and reads where it listens.
async fn spawn(
    layout: ServiceLayout,
    role: ServiceRole,
    args: &PairArgs,
    more: &[&str],
) -> anyhow::Result<(ServiceProcess, String)> {
    let program = std::env::current_exe()?;
    let mut command = match layout.processors(role)? {
        None => Command::new(program),
        Some(processors) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &processors]).arg(program);
            command
        }
    };
    command.arg("load-service").arg(name(role));
    command.args(args.flags()).args(more);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("the {} cannot be started", name(role)))?;
    let stdout = child.stdout.take().context("no stdout")?;
    let service = ServiceProcess(child);
    // The process loads its model before it prints its address.
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map(|_| line)
    });
    let url = line.await??.trim().to_owned();
    ensure!(!url.is_empty(), "the {} did not start", name(role));
    Ok((service, url))
}

fn name(role: ServiceRole) -> &'static str {
    match role {
        ServiceRole::Drafter => "drafter",
        ServiceRole::Verifier => "verifier",
        ServiceRole::Coordinator => "coordinator",
    }
}

/// Arguments of a process that `load` starts: one service of a pair, which prints where it listens.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServiceArgs {
    #[arg(value_enum)]
    role: ServiceRole,
    #[command(flatten)]
    pair: PairArgs,
    #[arg(long)]
    drafter: Option<String>,
    #[arg(long)]
    verifier: Option<String>,
}

/// Serves until it is told to stop.
pub(crate) async fn serve(args: &ServiceArgs, config: Config) -> anyhow::Result<()> {
    let config = crate::pairs::without_extras(config).on_loopback();
    let process = Process::default();
    let until = shutdown::on_signal()?.cancelled_owned();
    match args.role {
        ServiceRole::Drafter => {
            let Pair { draft, .. } = args.pair.pair()?;
            let listener = announced(config.drafter.listen.bind().await?)?;
            let loaded = Loaded::of(vec![draft], &config.drafter)?;
            let service = drafter::start(loaded, &config.drafter, process)?;
            service.serve(listener, until).await?;
        }
        ServiceRole::Verifier => {
            let Pair { target, .. } = args.pair.pair()?;
            let listener = announced(config.verifier.listen.bind().await?)?;
            let service = verifier::start(target, &config.verifier, process)?;
            service.serve(listener, until).await?;
        }
        ServiceRole::Coordinator => {
            let listener = announced(config.coordinator.listen.bind().await?)?;
            let peer = |url: &Option<String>| url.clone().context("a peer's URL is missing");
            let mut config = config.coordinator;
            config.models = vec![ModelGroup {
                name: "default".to_owned(),
                drafters: vec![peer(&args.drafter)?],
                verifiers: vec![peer(&args.verifier)?],
                ..ModelGroup::default()
            }];
            Coordinator::new(config, process)?
                .serve(listener, until)
                .await?;
        }
    }
    Ok(())
}

/// Prints where `listener` is reached.
fn announced(listener: TcpListener) -> anyhow::Result<TcpListener> {
    anstream::println!("{}", url(&listener)?);
    Ok(listener)
}
