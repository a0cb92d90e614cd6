//! Log lines as JSON, with the ids of the request they belong to.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// One flat object a line: time, level, what the event says, where it was said, and what is known of the
/// request it was said in (`request_id`, and if that is traced `trace_id` and `span_id`).
pub(super) struct JsonLines;

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    JsonFields: for<'a> FormatFields<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), time.into());
        let metadata = event.metadata();
        line.insert("level".to_owned(), metadata.level().as_str().into());
        event.record(&mut Fields(&mut line));
        line.insert("target".to_owned(), metadata.target().into());
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<JsonFields>>() else {
                continue;
            };
            let Ok(fields) = serde_json::from_str::<Map<String, Value>>(fields) else {
                continue;
            };
            // From the inside out: what is nearer says more.
            for (key, value) in fields {
                line.entry(key).or_insert(value);
            }
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// What an event says.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        // A field called like one of the line's own is left out.
        let entry = self.0.entry(field.name().to_owned());
        entry.or_insert_with(|| value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Written {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_carries_the_ids_of_its_request() {
        let written = Written::default();
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .with_writer(written.clone());
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(tokens = 3, "alone");
            let request = tracing::info_span!("request", request_id = "r", span_id = "outer");
            let _in_request = request.enter();
            let round = tracing::info_span!("round", span_id = "inner");
            let _in_round = round.enter();
            tracing::warn!(error = ?"no", level = 9, "within");
        });
        let bytes = written.0.lock().expect("no panic").clone();
        let text = String::from_utf8(bytes).expect("UTF-8");
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
        assert!(
            lines[1]["timestamp"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z'))
        );
        assert!(
            lines[1]["target"]
                .as_str()
                .is_some_and(|target| target.starts_with("server"))
        );
    }
}
