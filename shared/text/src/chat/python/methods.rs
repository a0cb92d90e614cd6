//! Methods of Python's texts, lists and dicts, beside those that the template engine's Python part has.

use minijinja::value::{Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

/// Calls `method` of `value`.
///
/// # Errors
/// If there is none, or if it does not take `args`.
pub(super) fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let called = match value.kind() {
        ValueKind::String => of_text(state, value.as_str().unwrap_or_default(), method, args),
        ValueKind::Seq if method == "index" => Some(index(value, args)),
        ValueKind::Map if method == "copy" => Some(from_args(args).map(|()| value.clone())),
        _ => None,
    };
    called.unwrap_or_else(|| unknown_method_callback(state, value, method, args))
}

fn of_text(
    state: &State,
    text: &str,
    method: &str,
    args: &[Value],
) -> Option<Result<Value, Error>> {
    let done = match method {
        "rsplit" => rsplit(text, args),
        "partition" => partition(text, args, str::split_once, false),
        "rpartition" => partition(text, args, str::rsplit_once, true),
        "removeprefix" => without(text, args, |text, prefix| text.strip_prefix(prefix)),
        "removesuffix" => without(text, args, |text, suffix| text.strip_suffix(suffix)),
        "index" => place(text, args, str::find),
        "rindex" => place(text, args, str::rfind),
        "zfill" => zfill(state, text, args),
        "center" => padded(state, text, args, centred),
        "ljust" => padded(state, text, args, |_, _| 0),
        "rjust" => padded(state, text, args, |room, _| room),
        "swapcase" => plain(args, || text.chars().map(swapped).collect::<String>()),
        "casefold" => plain(args, || text.to_lowercase().replace('ß', "ss")),
        "isdecimal" => plain(args, || {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
        }),
        "isidentifier" => plain(args, || is_identifier(text)),
        "isprintable" => plain(args, || !text.chars().any(char::is_control)),
        "istitle" => plain(args, || is_title(text)),
        "startswith" | "endswith" if args.len() > 1 => part_has(text, method, args),
        _ => return None,
    };
    Some(done)
}

/// The filter `center`.
pub(super) fn center(state: &State, text: &str, width: Option<usize>) -> Result<Value, Error> {
    let width = Value::from(width.unwrap_or(80));
    padded(state, text, &[width], centred)
}

/// Returns how many of `room` characters Python puts before a text in the middle of `width`.
fn centred(room: usize, width: usize) -> usize {
    room / 2 + (room & width & 1)
}

fn plain<T: Into<Value>>(args: &[Value], value: impl FnOnce() -> T) -> Result<Value, Error> {
    let () = from_args(args)?;
    Ok(value().into())
}

fn rsplit(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
    let most = usize::try_from(most.unwrap_or(-1)).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    match separator {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(separator) => {
            while parts.len() < most
                && let Some((before, after)) = rest.rsplit_once(separator)
            {
                parts.push(after);
                rest = before;
            }
            parts.push(rest);
        }
        None => {
            rest = rest.trim_end();
            while parts.len() < most && !rest.is_empty() {
                let at = rest.rfind(char::is_whitespace);
                let (before, part) = at.map_or(("", rest), |at| rest.split_at(at));
                parts.push(part.trim_start());
                rest = before.trim_end();
            }
            // It keeps the space that it begins with.
            parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
        }
    }
    parts.reverse();
    Ok(parts.into_iter().map(Value::from).collect())
}

/// `partition`, or `rpartition`, which has a text without the separator last.
fn partition<'a>(
    text: &'a str,
    args: &'a [Value],
    split: impl Fn(&'a str, &'a str) -> Option<(&'a str, &'a str)>,
    is_last: bool,
) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    if separator.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    let parts = match split(text, separator) {
        Some((before, after)) => [before, separator, after],
        None if is_last => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

fn without<'a>(
    text: &'a str,
    args: &'a [Value],
    strip: impl Fn(&'a str, &'a str) -> Option<&'a str>,
) -> Result<Value, Error> {
    let (end,): (&str,) = from_args(args)?;
    Ok(Value::from(strip(text, end).unwrap_or(text)))
}

/// `index` and `rindex`: places in characters.
fn place<'a>(
    text: &'a str,
    args: &'a [Value],
    find: impl Fn(&'a str, &'a str) -> Option<usize>,
) -> Result<Value, Error> {
    let (part,): (&str,) = from_args(args)?;
    let at = find(text, part)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "substring not found"))?;
    Ok(Value::from(text[..at].chars().count()))
}

fn index(list: &Value, args: &[Value]) -> Result<Value, Error> {
    let (item,): (Value,) = from_args(args)?;
    let at = list.try_iter()?.position(|it| it == item);
    at.map(Value::from).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("{item} is not in list"),
        )
    })
}

/// `text` in a field of some width, with so much of the room before it as `before(room, width)` says.
fn padded(
    state: &State,
    text: &str,
    args: &[Value],
    before: impl Fn(usize, usize) -> usize,
) -> Result<Value, Error> {
    let (width, filler): (usize, Option<&str>) = from_args(args)?;
    let filler = filler.unwrap_or(" ");
    if filler.chars().count() != 1 {
        let problem = "the fill character must be exactly one character long";
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    let room = width.saturating_sub(text.chars().count());
    state.consume_fuel(room as u64)?;
    let before = before(room, width).min(room);
    let padded = [&filler.repeat(before), text, &filler.repeat(room - before)].concat();
    Ok(Value::from(padded))
}

fn zfill(state: &State, text: &str, args: &[Value]) -> Result<Value, Error> {
    let (width,): (usize,) = from_args(args)?;
    let room = width.saturating_sub(text.chars().count());
    state.consume_fuel(room as u64)?;
    let sign = usize::from(text.starts_with(['+', '-']));
    let (sign, digits) = text.split_at(sign);
    Ok(Value::from([sign, &"0".repeat(room), digits].concat()))
}

fn swapped(c: char) -> String {
    if c.is_uppercase() {
        c.to_lowercase().collect()
    } else {
        c.to_uppercase().collect()
    }
}

fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next();
    first.is_some_and(|c| c.is_alphabetic() || c == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns whether each word begins with a capital, and has no other.
fn is_title(text: &str) -> bool {
    let (mut is_within, mut has_letters) = (false, false);
    for c in text.chars() {
        if c.is_uppercase() && is_within || c.is_lowercase() && !is_within {
            return false;
        }
        is_within = c.is_alphabetic();
        has_letters |= is_within;
    }
    has_letters
}

/// `startswith` and `endswith` of the part of `text` between two places, in characters.
fn part_has(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (affix, from, to): (&str, i64, Option<i64>) = from_args(args)?;
    let length = text.chars().count();
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => at,
        Err(_) => length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(length)),
    };
    let (from, to) = (place(from), to.map_or(length, place));
    let part: String = text
        .chars()
        .skip(from)
        .take(to.saturating_sub(from))
        .collect();
    let has = match method {
        "startswith" => part.starts_with(affix),
        _ => part.ends_with(affix),
    };
    Ok(Value::from(has && from <= length))
}
