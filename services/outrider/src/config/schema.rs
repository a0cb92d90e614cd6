//! The configuration as a JSON schema.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

/// The JSON schema (draft 7) of a configuration file: every key with its type and range. What goes together
/// and what does not, and files, it does not know; `outrider config check` does.
pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    as_layer(&mut schema);
    schema
}

/// What a file leaves out of a section is that of the layers beneath it: nothing is required, and a section has no
/// default but those of its keys.
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
