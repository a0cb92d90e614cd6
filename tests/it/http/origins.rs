//! Proxies that pass their own name on, and web pages that may call.

use coordinator::CoordinatorConfig;
use serde_json::json;

use super::{Reply, Serving, serving};

const PAGE: &str = "https://chat.example";

fn trusting(config: &mut CoordinatorConfig) {
    config.http.trusted_hosts = vec!["llm.example".to_owned()];
    config.http.cors_origins = vec![PAGE.to_owned()];
}

async fn post(serving: &Serving, headers: &str) -> Reply {
    let headers = format!("content-type: application/json\r\n{headers}");
    let body = json!({ "prompt": "x", "max_tokens": 1 }).to_string();
    serving.post_with("/v1/completions", &headers, &body).await
}

#[tokio::test]
async fn a_proxy_on_this_machine_may_pass_on_a_name_that_is_trusted() {
    let serving = serving(trusting).await;
    for host in ["llm.example", "llm.example:443", "localhost"] {
        assert_eq!(
            post(&serving, &format!("host: {host}\r\n")).await.status,
            200,
            "{host}"
        );
    }
    let other = post(&serving, "host: evil.example\r\n").await;
    let message = other.refused(403, None);
    assert!(
        message.contains("coordinator.http.trusted_hosts"),
        "{message}"
    );
}

#[tokio::test]
async fn a_page_of_an_origin_that_is_trusted_may_ask_and_read() {
    let serving = serving(trusting).await;
    let preflight = async |origin: &str| {
        let request = format!(
            "OPTIONS /v1/chat/completions HTTP/1.0\r\nhost: localhost\r\norigin: {origin}\r\n\
             access-control-request-method: POST\r\n\
             access-control-request-headers: authorization,content-type,x-stainless-os\r\n\
             access-control-request-private-network: true\r\n\r\n"
        );
        serving.exchange(request.as_bytes()).await
    };
    let allowed = preflight(PAGE).await;
    assert_eq!(allowed.status, 200, "{allowed:?}");
    for header in [
        "access-control-allow-origin: https://chat.example",
        "access-control-allow-methods: get,post",
        "access-control-allow-headers: authorization,content-type,x-stainless-os",
        "access-control-allow-private-network: true",
        "access-control-max-age: ",
    ] {
        assert!(allowed.headers.contains(header), "{header}: {allowed:?}");
    }
    let answered = post(&serving, &format!("origin: {PAGE}\r\n")).await;
    assert_eq!(answered.status, 200);
    let may_read = "access-control-allow-origin: https://chat.example";
    assert!(answered.headers.contains(may_read), "{answered:?}");
    let exposed = "access-control-expose-headers: x-request-id,retry-after";
    assert!(answered.headers.contains(exposed), "{answered:?}");
    let headers = format!("content-type: application/json\r\norigin: {PAGE}\r\n");
    let refused = serving.post_with("/v1/completions", &headers, "{}").await;
    refused.refused(400, Some("prompt"));
    assert!(
        refused.headers.contains(may_read),
        "errors can be read: {refused:?}"
    );

    let other = preflight("https://evil.example").await;
    let message = other.refused(403, None);
    assert!(
        message.contains("coordinator.http.cors_origins"),
        "{message}"
    );
    post(&serving, "origin: https://evil.example\r\n")
        .await
        .refused(403, None);
}

#[tokio::test]
async fn any_page_may_ask_where_all_are_trusted() {
    let serving = serving(|config| config.http.cors_origins = vec!["*".to_owned()]).await;
    let answered = post(&serving, "origin: https://any.example\r\n").await;
    assert_eq!(answered.status, 200);
    assert!(
        answered.headers.contains("access-control-allow-origin: *"),
        "{answered:?}"
    );
    // A name that somebody pointed to this machine.
    let rebound = "host: any.example\r\norigin: https://any.example\r\n";
    post(&serving, rebound).await.refused(403, None);
}
