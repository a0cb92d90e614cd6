//! `cycler(…)`: one value after the other, from the first again after the last.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Enumerator, Object, ObjectRepr, Rest, Value, from_args};
use minijinja::{Error, ErrorKind, State};

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    at: AtomicUsize,
}

/// Returns a cycler over `items`.
// The library hands arguments of this kind over whole.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn cycler(items: Rest<Value>) -> Result<Value, Error> {
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
