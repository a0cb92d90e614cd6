//! The configuration as a JSON schema.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{Config, renamed};

/// The JSON schema (draft 7) of a configuration file: every key with its type and range, those of an earlier release too.
/// What goes together and what does not, and files, it does not know; `outrider config check` does.
pub(crate) fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    as_layer(&mut schema);
    for (before, now) in renamed() {
        let mut moved = schema.pointer(&pointer(&now)).cloned().unwrap_or_default();
        moved["deprecated"] = json!(true);
        moved["description"] = json!(format!("The name of {now} in an earlier release."));
        if let Some((section, key)) = before.rsplit_once('.')
            && let Some(section) = schema.pointer_mut(&pointer(section))
        {
            section["properties"][key] = moved;
        }
    }
    schema
}

/// Where the schema of the setting `key`, `section.key`, stands in that of all.
fn pointer(key: &str) -> String {
    let names = key.split('.').map(|name| format!("/properties/{name}"));
    names.collect()
}

/// Makes a section one of a layer: what a file leaves out of it is that of the layers beneath. Nothing is required, and
/// a section has no default but those of its keys.
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
