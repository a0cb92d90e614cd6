//! The status page.

use super::*;

#[tokio::test]
async fn the_status_page_may_ask_its_own_port_and_shows_what_parts_say() {
    let process = Process::default();
    let part = Arc::new(AtomicBool::new(true));
    let is_there = Arc::clone(&part);
    let told = move || {
        is_there
            .load(Relaxed)
            .then(|| serde_json::json!({ "part": "verifier" }))
    };
    process.status.add(told);
    process
        .warnings
        .add(|| Some("a drafter does not fit".to_owned()));
    let admin = open(&process).await;
    for (path, kind) in [
        ("/status", "text/html"),
        ("/status.js", "text/javascript"),
        ("/status.css", "text/css"),
    ] {
        let (status, head, body) = http1(&admin, "GET", path).await;
        assert_eq!(status, 200, "{path}");
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
        assert!(
            !body.contains("//") || path == "/status.js",
            "{path} names an address"
        );
    }
    let status_json = async || {
        let (status, _, body) = http1(&admin, "GET", "/status.json").await;
        assert_eq!(status, 200);
        serde_json::from_str::<serde_json::Value>(&body).unwrap()
    };
    let told = status_json().await;
    assert_eq!(told["parts"][0]["part"], "verifier");
    assert_eq!(told["warnings"][0], "a drafter does not fit");
    assert_eq!(told["ready"], false);
    // A part that is gone says nothing.
    part.store(false, Relaxed);
    assert_eq!(status_json().await["parts"], serde_json::json!([]));
}
