//! What templates expect of Python, beyond what the template engine and its Python part have.

mod json;
mod methods;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use minijinja::value::{
    Enumerator, Kwargs, Object, ObjectRepr, Rest, Tuple, Value, ValueKind, from_args,
};
use minijinja::{Environment, Error, ErrorKind, State, escape_formatter};

use super::dialect::PERCENT;

/// Adds them to `environment`.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    minijinja_contrib::add_to_environment(environment);
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Number => out.write_str(&json::number(value)).map_err(Error::from),
        _ => escape_formatter(out, state, value),
    });
    environment.set_unknown_method_callback(methods::call);
    environment.add_function("strftime_now", strftime_now);
    environment.add_function("cycler", cycler);
    environment.add_filter(PERCENT, percent_format);
    environment.add_filter("tojson", json::tojson);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("center", methods::center);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
}

/// `strftime_now(format)`: the time now, in UTC.
fn strftime_now(format: &str) -> Result<String, Error> {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let text = jiff::fmt::strtime::format(format, &now);
    text.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// `'…' % value`: the items of a tuple one by one, everything else as one.
fn percent_format(state: &mut State, pattern: &Value, value: &Value) -> Result<Value, Error> {
    let mut args = vec![pattern.clone()];
    if value.downcast_object_ref::<Tuple>().is_some() {
        args.extend(value.try_iter()?);
    } else {
        args.push(value.clone());
    }
    state.apply_filter("format", &args)
}

/// `int`: 0 for what is no number, where the engine's own refuses it.
// The library hands arguments of this kind over whole.
#[allow(clippy::needless_pass_by_value)]
fn int(
    state: &State,
    value: &Value,
    default: Option<Value>,
    base: Option<u32>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let default = default.or(kwargs.get("default")?);
    let default = default.unwrap_or_else(|| Value::from(0));
    minijinja::filters::int(state, value, Some(default), base, kwargs)
}

/// `float`: 0.0 for what is no number, where the engine's own refuses it.
// The library hands arguments of this kind over whole.
#[allow(clippy::needless_pass_by_value)]
fn float(
    state: &State,
    value: &Value,
    default: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let default = default.or(kwargs.get("default")?);
    let default = default.unwrap_or_else(|| Value::from(0.0));
    minijinja::filters::float(state, value, Some(default), kwargs)
}

/// Unlike the engine's own, not true of none.
fn is_iterable(value: &Value) -> bool {
    let kind = value.kind();
    kind == ValueKind::Undefined || kind != ValueKind::None && value.try_iter().is_ok()
}

/// Returns whether a value has a length and items, in Python.
fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined
    )
}

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    at: AtomicUsize,
}

/// Returns a cycler over `items`.
// The library hands arguments of this kind over whole.
#[allow(clippy::needless_pass_by_value)]
fn cycler(items: Rest<Value>) -> Result<Value, Error> {
    if items.is_empty() {
        let problem = "at least one item has to be provided";
        return Err(Error::new(ErrorKind::MissingArgument, problem));
    }
    Ok(Value::from_object(Cycler {
        items: items.to_vec(),
        at: AtomicUsize::new(0),
    }))
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let current = || self.items[self.at.load(Ordering::Relaxed)].clone();
        (key.as_str() == Some("current")).then(current)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        let () = from_args(args)?;
        match method {
            "next" => {
                let at = self.at.load(Ordering::Relaxed);
                self.at
                    .store((at + 1) % self.items.len(), Ordering::Relaxed);
                Ok(self.items[at].clone())
            }
            "reset" => {
                self.at.store(0, Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}
