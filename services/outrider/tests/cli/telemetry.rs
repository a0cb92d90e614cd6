//! What a served process logs and sends, told by the variables of OpenTelemetry alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::{ANY, fails, free_address, outrider, says, signal, succeeds, words};

/// Head and body of what was posted.
type Posted = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that takes whatever is posted to it, and its URL.
fn collector() -> (Posted, String) {
    let listener = TcpListener::bind(ANY).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let posted = Posted::default();
    let taken = Arc::clone(&posted);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let taken = Arc::clone(&taken);
            std::thread::spawn(move || serve(stream, &taken));
        }
    });
    (posted, url)
}

fn serve(stream: TcpStream, posted: &Posted) -> std::io::Result<()> {
    let mut answers = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    let mut head = String::new();
    while requests.read_line(&mut head)? > 0 {
        if !head.ends_with("\r\n\r\n") {
            continue;
        }
        let lower = head.to_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        requests.read_exact(&mut body)?;
        posted.lock().expect("no panic").push((lower, body));
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        head.clear();
    }
    Ok(())
}

/// What a client wrote is its own, however much is logged.
#[test]
fn a_prompt_stands_in_no_line_of_any_level() {
    let requested = "generate --prompt 'A Zanzibar for Wilhelmina' --max-tokens 8 \
                     --log trace,h2=trace,hyper=trace,tonic=trace,tower=trace";
    let (_, lines) = succeeds(&mut outrider(&words(requested)));
    assert!(lines.contains("request finished"), "{lines}");
    says(&lines, "DEBUG | h2::");
    for word in ["Zanzibar", "Wilhelmina", "max_tokens: Some"] {
        assert!(!lines.contains(word), "{word} stands in\n{lines}");
    }
}

#[test]
fn what_ends_a_service_is_a_json_line_where_lines_are_json() {
    for line in [
        "serve verifier --model no/such/folder | no/such/folder",
        "serve all --listen nonsense | coordinator.listen | nonsense",
        "serve drafter --log debg | log.filter",
    ] {
        let (arguments, parts) = line.split_once(" | ").expect("what must be said");
        let mut serving = outrider(&words(arguments));
        serving
            .env("OUTRIDER__VERIFIER__LISTEN", ANY)
            .env("OUTRIDER__ADMIN__LISTEN", "off");
        assert!(fails(&mut serving).starts_with("error: "));
        let said = fails(serving.env("OUTRIDER__LOG__FORMAT", "json"));
        let last: Value = serde_json::from_str(said.lines().last().expect("a line")).expect(&said);
        let reported = last["message"].as_str().expect("a message");
        says(reported, parts);
        assert_eq!(
            (&last["level"], said.contains("error: ")),
            (&"ERROR".into(), false)
        );
    }
}

#[test]
fn a_request_is_told_to_the_collector_and_in_json_lines() {
    let (posted, endpoint) = collector();
    let address = free_address();
    let mut server = outrider(&["serve", "all", "--listen", &address])
        .env("OUTRIDER__DRAFTER__LISTEN", ANY)
        .env("OUTRIDER__VERIFIER__LISTEN", ANY)
        .env("OUTRIDER__LOG__FORMAT", "json")
        .env("OUTRIDER__TELEMETRY__LOGS", "true")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=somebody")
        .env("OTEL_TRACES_SAMPLER", "always_on")
        .env("OTEL_SERVICE_NAME", "drafts-and-verdicts")
        .env(
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=testing",
        )
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let stderr = BufReader::new(server.stderr.take().expect("piped"));
    let mut lines = stderr.lines().map_while(Result::ok).map(|line| {
        serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    });
    let at_coordinator =
        |line: &Value| line["message"] == "serving" && line["address"] == address.as_str();
    assert!(lines.any(|line| at_coordinator(&line)), "it never served");

    let requested = words("generate --prompt 'Once upon a time' --json --coordinator");
    succeeds(outrider(&requested).arg(format!("http://{address}")));
    signal(&server, "TERM");
    let lines: Vec<Value> = lines.collect();
    assert_eq!(server.wait().expect("it ends").code(), Some(0));

    let finished = lines
        .iter()
        .find(|line| line["message"] == "request finished");
    let finished = finished.expect("a line of the request");
    assert_eq!(
        (&finished["model"], &finished["method"]),
        (&"default".into(), &"coupled".into())
    );
    for key in [
        "prompt_tokens",
        "tokens",
        "accepted",
        "first_token_ms",
        "total_ms",
    ] {
        assert!(finished[key].is_u64(), "{key}: {finished}");
    }
    assert!(finished["prompt_tokens"].as_u64() > Some(0));
    assert!(finished.get("tenant").is_none(), "no token has a name here");
    let id = |key: &str| finished[key].as_str().expect(key).to_owned();
    let (request_id, trace_id, span_id) = (id("request_id"), id("trace_id"), id("span_id"));
    assert_eq!(
        (request_id.len(), trace_id.len(), span_id.len()),
        (32, 32, 16)
    );

    let posted = posted.lock().expect("no panic");
    let bytes_of = |hexadecimal: &str| {
        let number = u128::from_str_radix(hexadecimal, 16).expect("hexadecimal");
        number.to_be_bytes()
    };
    for (path, told_of) in [
        ("/v1/traces", "chat default"),
        ("/v1/logs", "request finished"),
    ] {
        let of_path = posted
            .iter()
            .filter(|(head, _)| head.starts_with(&format!("post {path} ")));
        let reported: Vec<_> = of_path.collect();
        for (head, _) in &reported {
            says(
                head,
                "x-tenant: somebody | content-type: application/x-protobuf",
            );
        }
        let body: Vec<u8> = reported
            .iter()
            .flat_map(|(_, body)| body.iter().copied())
            .collect();
        let holds = |bytes: &[u8]| body.windows(bytes.len()).any(|window| window == bytes);
        for text in [
            told_of,
            "drafts-and-verdicts",
            "deployment.environment.name",
            "service.version",
            &request_id,
        ] {
            assert!(holds(text.as_bytes()), "{path}: {text}");
        }
        assert!(holds(&bytes_of(&trace_id)), "{path}: the trace");
        assert!(!holds(b"Once upon a time"), "{path}: the prompt");
    }
    let all: String = lines.iter().map(Value::to_string).collect();
    assert!(!all.contains("Once upon"));
}
