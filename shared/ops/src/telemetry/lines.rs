//! Log lines as JSON, with the ids of the request they belong to.

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// One flat object a line: time, level, what the event says, where it was said, and what is known of the
/// request it was said in (`request_id`, and if that is traced `trace_id` and `span_id`). The library's own
/// lines have what is known of spans in objects within.
pub(super) struct JsonLines;

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (mut time, mut said) = (String::new(), String::new());
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        JsonFields::new().format_fields(Writer::new(&mut said), event)?;
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        add(&mut line, &said);
        line.insert("target".to_owned(), metadata.target().into());
        for span in context.event_scope().into_iter().flatten() {
            // From the inside out: what is nearer says more.
            if let Some(fields) = span.extensions().get::<FormattedFields<JsonFields>>() {
                add(&mut line, fields);
            }
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Returns the JSON log line of an error that ends the process, for when no logger is installed yet.
pub fn error_line(message: &str) -> String {
    let mut time = String::new();
    // Writing into text does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    json!({ "timestamp": time, "level": "ERROR", "message": message, "target": "outrider" })
        .to_string()
}

/// Adds the fields of an object in JSON to a `line`, but for those it has already.
fn add(line: &mut Map<String, Value>, fields: &str) {
    for (key, value) in serde_json::from_str::<Map<_, _>>(fields).unwrap_or_default() {
        line.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_line_carries_the_ids_of_its_request() {
        let written = Arc::new(tempfile::tempfile().expect("a file"));
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .with_writer(Arc::clone(&written));
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(tokens = 3, "alone");
            let request = tracing::info_span!("request", request_id = "r", span_id = "outer");
            let _in_request = request.enter();
            let round = tracing::info_span!("round", span_id = "inner");
            let _in_round = round.enter();
            tracing::warn!(error = ?"no", level = 9, "within");
        });
        let mut text = String::new();
        (&*written).rewind().expect("a file");
        (&*written).read_to_string(&mut text).expect("UTF-8");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("one object a line"))
            .collect();
        assert_eq!(lines[0]["message"], "alone");
        assert_eq!(
            (&lines[0]["tokens"], &lines[0]["level"]),
            (&3.into(), &"INFO".into())
        );
        assert!(lines[0].get("request_id").is_none());
        assert_eq!(lines[1]["request_id"], "r");
        assert_eq!(lines[1]["span_id"], "inner", "the nearest is told");
        assert_eq!(
            (&lines[1]["level"], &lines[1]["error"]),
            (&"WARN".into(), &"\"no\"".into())
        );
        for (key, part) in [("timestamp", "Z"), ("target", "ops")] {
            let reported = lines[1][key].as_str();
            assert!(
                reported.is_some_and(|reported| reported.contains(part)),
                "{reported:?}"
            );
        }
    }
}
