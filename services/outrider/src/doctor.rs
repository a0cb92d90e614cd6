//! `outrider doctor`: what to look at when something does not work.

mod ask;
mod certificates;
mod clock;
mod coordinator;
mod cpu;
mod device;
mod dial;
mod files;
mod memory;
mod peers;
mod ports;
mod report;
mod text;

use std::process::ExitCode;

use clap::Args;
use model::ComputeDevice;
use model::free_memory::free_bytes;
use ops::config::{ConfigError, LoadedConfig};
use ops::process::Process;

use crate::args::{ConnectionArgs, ModelArgs};
use crate::check::{Check, Problem, Role};
use crate::config::Config;
use crate::global::{Global, is_default};
use crate::process;
use files::Requested;
use peers::Skews;
use report::{Findings, Report};

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
    role: Role,
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
    let mut report = Report::default();
    report.add(configuration(loaded.as_ref(), &unread, args.role));
    let mut skews = Skews::new();
    if let Some(loaded) = &loaded {
        of_files(&mut report, loaded, &args);
        skews = of_network(&mut report, loaded, &args).await;
        report.add(certificates::findings(&loaded.value.tls));
    }
    report.add(clock::findings(&skews));
    report.add(cpu::findings());
    report.add(device::findings(args.device));
    report.print(args.json)?;
    Ok(ExitCode::from(u8::from(!report.is_ok())))
}

/// Returns what `serve` would refuse, but for the models' files, which have sections of their own.
fn configuration(
    loaded: Option<&LoadedConfig<Config>>,
    unread: &[ConfigError],
    role: Role,
) -> Findings {
    let mut findings = Findings::of("configuration");
    for error in unread {
        refused(&mut findings, &Problem::new(error.key(), error));
    }
    let Some(loaded) = loaded else {
        return findings;
    };
    for problem in Check::of(loaded, role, true).settings() {
        refused(&mut findings, &problem);
    }
    if findings.is_empty() {
        findings.ok("serve would take it; `outrider config print` shows each setting");
    }
    findings
}

fn refused(findings: &mut Findings, problem: &Problem) {
    let remedy = match problem.key.as_str() {
        "" => "mend the file; `outrider config check` reads it again".to_owned(),
        key => format!("correct {key}; `outrider config check` looks again"),
    };
    findings.error(&problem.problem, remedy);
}

/// Adds what the models' files tell to the report.
fn of_files(report: &mut Report, loaded: &LoadedConfig<Config>, args: &DoctorArgs) {
    let config = &loaded.value;
    let requested = Requested::of(loaded, args.role, args.coordinator.is_some());
    let (models, findings) = files::look(config, args.role, requested);
    report.add(findings);
    report.add(files::pair(&models));
    for findings in text::findings(&models) {
        report.add(findings);
    }
    report.add(memory::findings(config, &models, free_bytes()));
}

/// Who asks the services.
struct Asking {
    /// Who asks drafters and verifiers.
    process: Process,
    /// Who asks coordinators.
    client: Process,
}

impl Asking {
    /// Where certificates or tokens cannot be used, which is told with the configuration, it asks without them.
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

/// Adds what listens and answers to the report, all asked at once, and returns how far the clocks of those that
/// answered are ahead.
async fn of_network(
    report: &mut Report,
    loaded: &LoadedConfig<Config>,
    args: &DoctorArgs,
) -> Skews {
    let (config, role) = (&loaded.value, args.role);
    let others = Asking::of(config);
    let own = Asking::of(&believing_itself(config));
    let chosen = ports::Chosen {
        admin: !is_default(loaded, "admin.listen"),
        http: !is_default(loaded, "coordinator.http.listen"),
    };
    let are_chosen = !is_default(loaded, "coordinator.models");
    let url = args.coordinator.as_deref();
    let (ports, peers, coordinator) = tokio::join!(
        ports::findings(config, role, chosen, &own),
        peers::findings(config, are_chosen, &others.process),
        coordinator::findings(
            config,
            role,
            url,
            if url.is_some() { &others } else { &own }
        ),
    );
    report.add(ports);
    let mut answered = Vec::new();
    answered.extend(role.has_coordinator().then_some(peers));
    answered.extend((role.has_coordinator() || url.is_some()).then_some(coordinator));
    let mut skews = Skews::new();
    for (findings, of_these) in answered {
        report.add(findings);
        skews.extend(of_these);
    }
    skews
}
