//! `outrider doctor`: what to look at when something does not work.

mod ask;
mod certificates;
mod clock;
mod coordinator;
mod dial;
mod files;
mod memory;
mod peers;
mod ports;
mod processors;
mod report;
mod text;

use std::process::ExitCode;

use clap::Args;
use model::ComputeDevice;
use model::free_memory::free_bytes;
use ops::config::{ConfigError, LoadedConfig};
use ops::process::Process;

use crate::args::{ConnectionArgs, ModelArgs};
use crate::check::{self, ConfigProblem, ServeRole};
use crate::config::Config;
use crate::global::{Global, is_default};
use crate::process;
use files::Requested;
use report::Findings;

/// Arguments of `outrider doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A coordinator that should answer, HOST:PORT or a URL. Without it, whatever runs at coordinator.listen is told of.
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    /// A GPU to be compared with the CPU, on small models of all operations: cuda or cuda:N.
    #[arg(long, value_name = "DEVICE")]
    device: Option<ComputeDevice>,
    /// The process that is looked at, as in `outrider serve ROLE`.
    #[arg(long, value_name = "ROLE", value_enum, default_value = "all")]
    role: ServeRole,
    /// Prints {"ok": ..., "findings": [{"section": ..., "level": ..., "message": ..., "remedy": ...}]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Looks at everything, and tells what was found.
pub(crate) async fn run(args: DoctorArgs, global: &Global) -> anyhow::Result<ExitCode> {
    let mut flags = args.models.settings();
    args.connection.add_to(&mut flags);
    let (loaded, unread) = global.survey(flags);
    let mut report = Findings::default();
    report.add(configuration(loaded.as_ref(), &unread, args.role));
    if let Some(loaded) = &loaded {
        of_files(&mut report, loaded, &args);
        of_network(&mut report, loaded, &args).await;
        report.add(certificates::findings(&loaded.value.tls));
    }
    report.add(clock::findings(&report.skews));
    report.add(processors::cpu());
    report.add(processors::gpu(args.device));
    report.print(args.json)?;
    Ok(ExitCode::from(u8::from(!report.is_ok())))
}

/// Returns what `serve` would refuse, but for the models' files, which have sections of their own.
fn configuration(
    loaded: Option<&LoadedConfig<Config>>,
    unread: &[ConfigError],
    role: ServeRole,
) -> Findings {
    let mut findings = Findings::of("configuration");
    for error in unread {
        refused(&mut findings, &ConfigProblem::new(error.key(), error));
    }
    let Some(loaded) = loaded else {
        return findings;
    };
    for problem in check::settings(loaded, role, true) {
        refused(&mut findings, &problem);
    }
    if findings.is_empty() {
        findings.ok("serve would take it; `outrider config print` shows each setting");
    }
    findings
}

fn refused(findings: &mut Findings, problem: &ConfigProblem) {
    let remedy = match problem.key.as_str() {
        "" => "mend the file; `outrider config check` reads it again".to_owned(),
        key => format!("correct {key}; `outrider config check` looks again"),
    };
    findings.error(&problem.problem, remedy);
}

/// Adds what the models' files tell to the report.
fn of_files(report: &mut Findings, loaded: &LoadedConfig<Config>, args: &DoctorArgs) {
    let config = &loaded.value;
    let requested = Requested::of(loaded, args.role, args.coordinator.is_some());
    let (models, findings) = files::look(config, args.role, requested);
    report.add(findings);
    report.add(files::pair(&models));
    report.add(text::findings(&models));
    report.add(memory::findings(config, &models, free_bytes()));
}

/// Who asks the services.
struct DoctorClients {
    /// Who asks drafters and verifiers.
    process: Process,
    /// Who asks coordinators.
    client: Process,
}

impl DoctorClients {
    /// Returns both. Where certificates or tokens cannot be used, which is told with the configuration, they ask
    /// without them.
    fn of(config: &Config) -> Self {
        Self {
            process: process::of_peer(config, &Process::default()).unwrap_or_default(),
            client: process::of_client(config).unwrap_or_default(),
        }
    }
}

/// Returns the configuration of a process that believes the certificate that it shows, for it need not know the CA of
/// that.
fn believing_itself(config: &Config) -> Config {
    let mut config = config.clone();
    if config.tls.ca_file.as_os_str().is_empty() {
        config.tls.ca_file.clone_from(&config.tls.cert_file);
    }
    config
}

/// Adds what listens and answers to the report, all asked at once.
async fn of_network(report: &mut Findings, loaded: &LoadedConfig<Config>, args: &DoctorArgs) {
    let (config, role) = (&loaded.value, args.role);
    let others = DoctorClients::of(config);
    let own = DoctorClients::of(&believing_itself(config));
    let are_chosen = !is_default(loaded, "coordinator.models");
    let url = args.coordinator.as_deref();
    let of_coordinator = if url.is_some() { &others } else { &own };
    let (ports, peers, coordinator) = tokio::join!(
        ports::findings(loaded, role, &own),
        peers::findings(config, are_chosen, &others.process),
        coordinator::findings(config, role, url, of_coordinator),
    );
    report.add(ports);
    if role.has_coordinator() {
        report.add(peers);
    }
    if role.has_coordinator() || url.is_some() {
        report.add(coordinator);
    }
}
