//! A server that answers as SGLang does, with the built-in target behind it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use model::source::ServedModel;
use model::{Model, WeightFormat, embedded};
use serde_json::{Value, json};
use speculation::ports::{LanguageModel, Rows, Segment};

/// What the server does instead of what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It closes every connection without a word.
    Gone,
    /// A log probability is no number.
    NotANumber,
    /// A row is missing.
    RowMissing,
    /// Two most likely tokens stand in the wrong order.
    Unsorted,
    /// It fails where it is asked for tokens of text.
    NoTokens,
    /// Tokens of text are others than those of our tokenizer.
    OtherTokenizer,
    /// Its rows have more tokens.
    OtherModel,
    /// It ignores `extra_key`, as old versions do.
    KnowsNoKeys,
}

/// A server, which ends with the process.
#[derive(Clone)]
pub(crate) struct Sglang {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    model: Mutex<ServedModel<Model>>,
    /// What it calls the model.
    name: Mutex<String>,
    /// The number of requests for rows after which another model is served, that model's name, and the model.
    next: Mutex<Option<(usize, String, ServedModel<Model>)>>,
    /// The `extra_key` of each request for rows.
    keys: Mutex<Vec<Value>>,
    fault: Mutex<Option<Fault>>,
    /// What it says of itself beside what it says by default.
    said: Mutex<Value>,
    /// The number of requests for rows that it will close the connection of, without a word.
    closing: Mutex<usize>,
    /// Sequences of each request for rows.
    requests: Mutex<Vec<usize>>,
}

/// The built-in target in single precision.
pub(crate) fn target() -> ServedModel<Model> {
    let checkpoint = embedded::model("target").expect("embedded");
    let name = "default-target".to_owned();
    model::source::serve(&checkpoint, WeightFormat::F32, name, "target").expect("a model")
}

impl Sglang {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            model: Mutex::new(target()),
            name: Mutex::new("default".to_owned()),
            next: Mutex::default(),
            keys: Mutex::default(),
            fault: Mutex::default(),
            said: Mutex::new(json!({})),
            closing: Mutex::default(),
            requests: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                std::thread::spawn(move || state.serve(stream));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        *self.state.fault.lock().expect("a fault") = fault;
    }

    /// Has it say `more` of itself.
    pub(crate) fn say(&self, more: Value) {
        *self.state.said.lock().expect("words") = more;
    }

    /// Closes the connections of so many requests for rows.
    pub(crate) fn close_next(&self, requests: usize) {
        *self.state.closing.lock().expect("a number") = requests;
    }

    /// Connections that are still to be closed.
    pub(crate) fn left_to_close(&self) -> usize {
        *self.state.closing.lock().expect("a number")
    }

    /// Serves `model` from now on, and calls it `name`.
    pub(crate) fn serve(&self, name: &str, model: ServedModel<Model>) {
        *self.state.model.lock().expect("a model") = model;
        name.clone_into(&mut self.state.name.lock().expect("a name"));
    }

    /// Serves `model` after so many more requests for rows, and calls it `name`.
    pub(crate) fn serve_after(&self, requests: usize, name: &str, model: ServedModel<Model>) {
        let next = Some((requests, name.to_owned(), model));
        *self.state.next.lock().expect("a next model") = next;
    }

    /// Returns the `extra_key` of each request for rows since the last call.
    pub(crate) fn keys(&self) -> Vec<Value> {
        std::mem::take(&mut *self.state.keys.lock().expect("keys"))
    }

    /// Sequences of each request for rows so far.
    pub(crate) fn requests(&self) -> Vec<usize> {
        self.state.requests.lock().expect("requests").clone()
    }
}

impl State {
    fn is(&self, fault: Fault) -> bool {
        *self.fault.lock().expect("a fault") == Some(fault)
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some((path, body)) = read(&stream) else {
            return;
        };
        if self.is(Fault::Gone) || self.closes(&path, &body) {
            return;
        }
        let (status, said) = self.answer(&path, &body);
        let said = said.to_string();
        let head = format!(
            "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            said.len()
        );
        // The client may have gone.
        let _ = stream.write_all((head + &said).as_bytes());
    }

    fn answer(&self, path: &str, body: &Value) -> (u16, Value) {
        match path {
            "/health" => (200, Value::Null),
            "/server_info" => {
                let name = self.name.lock().expect("a name").clone();
                let mut info = json!({"version": "0.5.23", "model_path": "/models/default", "dtype": "float32",
                    "served_model_name": name, "max_req_input_len": 506});
                let more = self.said.lock().expect("words");
                for (name, value) in more.as_object().expect("an object") {
                    info[name] = value.clone();
                }
                (200, info)
            }
            "/generate" if body["text"].is_string() && self.is(Fault::NoTokens) => {
                (500, Value::Null)
            }
            "/generate" if body["text"].is_string() => (200, self.tokens_of(&body["text"])),
            "/generate" if body["token_ids_logprob"] == json!([i32::MAX]) => {
                let tokens = if self.is(Fault::OtherModel) {
                    5000
                } else {
                    4096
                };
                let why = format!("token id 2147483647; valid range is [0, {tokens}).");
                (400, json!({"error": {"message": why}}))
            }
            "/generate" if body["extra_key"][0].is_array() => {
                let knows_keys = !self.is(Fault::KnowsNoKeys);
                (if knows_keys { 422 } else { 200 }, Value::Null)
            }
            "/generate" => (200, self.rows(body)),
            _ => (404, Value::Null),
        }
    }

    /// Whether the connection of this request is closed, of those that are to be.
    fn closes(&self, path: &str, body: &Value) -> bool {
        let mut closing = self.closing.lock().expect("a number");
        let closes = *closing > 0 && path == "/generate" && body["input_ids"].is_array();
        *closing -= usize::from(closes);
        closes
    }

    fn tokens_of(&self, text: &Value) -> Value {
        let model = self.model.lock().expect("a model");
        let tokenizer =
            model::tokenizer::from_bytes(&model.text.tokenizer_json).expect("a tokenizer");
        let mut tokens = tokenizer
            .encode(text.as_str().expect("text"), true)
            .expect("tokens")
            .get_ids()
            .to_vec();
        if self.is(Fault::OtherTokenizer) {
            tokens.reverse();
        }
        let entries: Vec<Value> = tokens.iter().map(|id| json!([-1.0, id, null])).collect();
        json!({"meta_info": {"input_token_logprobs": entries}})
    }

    /// Counts a request for rows, and serves the next model if its time has come.
    fn count(&self) {
        let mut next = self.next.lock().expect("a next model");
        match next.take() {
            Some((0, name, model)) => {
                *self.model.lock().expect("a model") = model;
                *self.name.lock().expect("a name") = name;
            }
            Some((left, name, model)) => *next = Some((left - 1, name, model)),
            None => {}
        }
    }

    fn rows(&self, body: &Value) -> Value {
        self.count();
        let several = body["input_ids"][0].is_array();
        let count = if several {
            body["input_ids"].as_array().expect("a list").len()
        } else {
            1
        };
        self.requests.lock().expect("requests").push(count);
        let mut keys = self.keys.lock().expect("keys");
        match &body["extra_key"] {
            Value::Array(several) => keys.extend(several.iter().cloned()),
            one => keys.push(one.clone()),
        }
        drop(keys);
        if !several {
            return self.rows_of(body);
        }
        let one = |at: usize| {
            let fields = body.as_object().expect("an object").iter();
            let one = fields.map(|(field, values)| (field.clone(), values[at].clone()));
            self.rows_of(&Value::Object(one.collect()))
        };
        (0..count).map(one).collect()
    }

    fn rows_of(&self, body: &Value) -> Value {
        let (tokens, asked) = (ids(&body["input_ids"]), ids(&body["token_ids_logprob"]));
        let number = |field: &str| body[field].as_u64().expect("a number") as usize;
        let (start, top) = (number("logprob_start_len"), number("top_logprobs_num"));
        assert_eq!(body["sampling_params"]["temperature"], 0);
        let mut rows = self.logprobs(&tokens, start);
        if self.is(Fault::RowMissing) {
            rows.remove(0);
        }
        let last = rows.pop().expect("a row");
        let mut likely = vec![Value::Null];
        let mut given = vec![Value::Null];
        for row in &rows {
            likely.push(self.likeliest(row, top));
            given.push(entries(row, &asked));
        }
        let mut meta = json!({
            "prompt_tokens": tokens.len(),
            "input_top_logprobs": likely,
            "output_top_logprobs": [self.likeliest(&last, top)],
        });
        if !asked.is_empty() {
            meta["input_token_ids_logprobs"] = json!(given);
            meta["output_token_ids_logprobs"] = json!([entries(&last, &asked)]);
        }
        json!({"text": "", "output_ids": [0], "meta_info": meta})
    }

    /// The rows after the tokens from `start` on.
    fn logprobs(&self, tokens: &[u32], start: usize) -> Vec<Vec<f32>> {
        let served = &mut *self.model.lock().expect("a model");
        let mut cache = served.model.new_cache();
        let mut rows = Rows::default();
        let segment = Segment {
            cache: &mut cache,
            tokens,
            parents: &[],
            scored_from: start,
        };
        served
            .model
            .forward(&mut [segment], &mut rows)
            .expect("rows");
        let count = tokens.len() - start;
        (0..count).map(|row| log_softmax(rows.row(row))).collect()
    }

    /// The most likely tokens of a row, the likeliest first.
    fn likeliest(&self, row: &[f32], top: usize) -> Value {
        let mut tokens: Vec<u32> = (0..row.len() as u32).collect();
        tokens.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
        tokens.truncate(top);
        if self.is(Fault::Unsorted) {
            tokens.reverse();
        }
        let mut said = entries(row, &tokens);
        if self.is(Fault::NotANumber) {
            said[0][0] = Value::Null;
        }
        said
    }
}

fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits
        .iter()
        .map(|logit| f64::from(logit - most).exp())
        .sum();
    let normaliser = f64::from(most) + sum.ln();
    logits
        .iter()
        .map(|&logit| (f64::from(logit) - normaliser) as f32)
        .collect()
}

/// Rows as SGLang gives them: `[log probability, token, null]` each.
fn entries(row: &[f32], tokens: &[u32]) -> Value {
    let entry = |&token: &u32| json!([row[token as usize], token, null]);
    tokens.iter().map(entry).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    list.iter()
        .map(|id| id.as_u64().expect("an id") as u32)
        .collect()
}

fn read(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut path, mut len) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        if let Some(said) = line.strip_prefix("content-length:") {
            len = said.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some((path?, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
