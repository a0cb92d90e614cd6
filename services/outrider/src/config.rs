//! The whole configuration: one section a service.

use coordinator::CoordinatorConfig;
use drafter::DrafterConfig;
use net::auth::AuthConfig;
use net::listen::OptionalListen;
use net::tls::TlsConfig;
use ops::admin::AdminConfig;
use ops::telemetry::{LogConfig, TelemetryConfig};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use verifier::VerifierConfig;
use wire::describe::check_vocabularies;

/// The configuration of `outrider`; each command uses the sections it needs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Logs, on stderr.
    pub log: LogConfig,
    /// Traces, and logs to a collector; of `serve`.
    pub telemetry: TelemetryConfig,
    /// The admin port of `serve`: metrics and health.
    pub admin: AdminConfig,
    /// Certificates.
    pub tls: TlsConfig,
    /// Tokens.
    pub auth: AuthConfig,
    /// Whether services may be reached from other machines in clear, and tokens shown to them.
    pub insecure: bool,
    /// The coordinator.
    pub coordinator: CoordinatorConfig,
    /// The drafter.
    pub drafter: DrafterConfig,
    /// The verifier.
    pub verifier: VerifierConfig,
    /// Whether a draft model is named: the built-in one then drafts for targets of other vocabularies, too.
    #[serde(skip)]
    pub names_draft: bool,
}

impl Config {
    /// Returns the same with all services on free loopback ports, for the use of this process alone: without
    /// certificates and tokens.
    #[must_use]
    pub fn on_loopback(mut self) -> Self {
        let any_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        self.coordinator.listen = any_port;
        self.coordinator.http.listen = OptionalListen::Off;
        self.drafter.listen = any_port;
        self.verifier.listen = any_port;
        // Nobody else knows of them.
        self.coordinator.server.drain_delay_ms = 0;
        self.tls = TlsConfig::default();
        self.auth = AuthConfig::default();
        self
    }

    /// Leaves the built-in draft model out where nobody named another and it does not fit the target model. Returns what is
    /// to be told of that.
    pub(crate) fn leave_out_misfit(&mut self) -> Option<String> {
        let built_in = DrafterConfig::default();
        let is_chosen = self.names_draft
            || self.drafter.model != built_in.model
            || !self.drafter.cascade.models.is_empty()
            || !self.drafter.heads.is_empty();
        if is_chosen || self.verifier.model.is_embedded() {
            return None;
        }
        // Loading the target model tells what is wrong with it. One that has yet to be downloaded is none of the built-in ones.
        let target = verifier::inspect(&self.verifier).ok()?;
        let target = target.as_ref().map(verifier::outline);
        let draft = drafter::inspect(&self.drafter).description;
        if let (Some(draft), Some(target)) = (&draft, &target)
            && check_vocabularies(draft, target).is_ok()
        {
            return None;
        }
        self.drafter.remove_model();
        Some(format!(
            "'{}' decodes without a draft model, since none is named: drafts are copied from the text (--draft-model names \
             one; of its family, if there is one)",
            self.verifier.model.served_name()
        ))
    }
}

/// Returns the JSON schema (draft 7) of a configuration file: every key with its type and range. What goes together
/// and what does not, and files, it does not know; `outrider config check` does.
pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    as_layer(&mut schema);
    schema
}

/// Makes of a section a layer of several. What a file leaves out of a section is that of the layers beneath it: nothing
/// is required, and a section has no default but those of its keys.
fn as_layer(section: &mut Value) {
    let Some(fields) = section.as_object_mut() else {
        return;
    };
    let Some(Value::Object(keys)) = fields.get_mut("properties") else {
        return;
    };
    keys.values_mut().for_each(as_layer);
    fields.remove("required");
    fields.remove("default");
}

#[cfg(test)]
mod tests;
