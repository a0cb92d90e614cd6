//! Liveness and readiness, over HTTP and gRPC.

use super::*;

#[tokio::test]
async fn health_is_described_by_reflection() {
    let admin = open(&Process::default()).await;
    let url = format!("http://{}", admin.address);
    let channel = connect(&url, &ChannelConfig::default(), &Credentials::default()).unwrap();
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = ServerReflectionClient::new(channel)
        .server_reflection_info(tokio_stream::iter([request]))
        .await;
    let answer = answers.unwrap().into_inner().message().await.unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.unwrap().message_response else {
        panic!("no list");
    };
    let names = list.service.into_iter().map(|service| service.name);
    assert!(
        names
            .into_iter()
            .any(|name| name == "grpc.health.v1.Health")
    );
}

#[tokio::test]
async fn health_follows_the_services_of_the_process() {
    let process = Process::default();
    let admin = open(&process).await;
    // Status and body of what is asked over HTTP.
    let reported = async |path| {
        let (status, _, line) = http1(&admin, "GET", path).await;
        (status, line)
    };
    let line = |status: u16, line: &str| (status, format!("{line}\n"));
    let starting = line(503, "not ready: starting, no service is up yet");
    assert_eq!(reported("/readyz").await, starting);
    assert_eq!(
        reported("/livez").await.0,
        200,
        "loading is no reason to start anew"
    );
    assert_eq!(grpc(&admin, "").await, Ok(ServingStatus::NotServing));
    assert_eq!(grpc(&admin, SERVICE).await, Err(Code::NotFound));

    let health = Health::new(SERVICE, &process);
    let starting = line(503, "not ready: outrider.v1.Verifier is starting");
    assert_eq!(reported("/readyz").await, starting);
    assert_eq!(grpc(&admin, SERVICE).await, Ok(ServingStatus::NotServing));

    health.ready();
    assert_eq!(reported("/readyz").await, line(200, "ready"));
    for service in ["", SERVICE] {
        assert_eq!(grpc(&admin, service).await, Ok(ServingStatus::Serving));
    }
    let ready = "outrider_ready{service=\"outrider.v1.Verifier\"} 1.0\n";
    assert!(reported("/metrics").await.1.contains(ready));

    health.drain();
    let draining = line(503, "not ready: outrider.v1.Verifier is draining");
    assert_eq!(reported("/readyz").await, draining);
    let unready = "outrider_ready{service=\"outrider.v1.Verifier\"} 0.0\n";
    assert!(reported("/metrics").await.1.contains(unready));
    assert_eq!(
        reported("/livez").await.0,
        200,
        "draining is no reason to be killed"
    );
    assert_eq!(grpc(&admin, "").await, Ok(ServingStatus::NotServing));

    health.died();
    let dead = line(503, "not alive: outrider.v1.Verifier is dead");
    assert_eq!(reported("/livez").await, dead);
}

#[tokio::test]
async fn a_watch_is_told_of_changes() {
    let process = Process::default();
    let admin = open(&process).await;
    let url = format!("http://{}", admin.address);
    let channel = connect(&url, &ChannelConfig::default(), &Credentials::default()).unwrap();
    let service = SERVICE.to_owned();
    let mut client = HealthClient::new(channel);
    let watch = client.watch(HealthCheckRequest { service }).await;
    let mut watch = watch.unwrap().into_inner();
    let mut next = async || watch.message().await.unwrap().unwrap().status();
    assert_eq!(next().await, ServingStatus::ServiceUnknown);
    let health = Health::new(SERVICE, &process);
    assert_eq!(next().await, ServingStatus::NotServing);
    health.ready();
    assert_eq!(next().await, ServingStatus::Serving);
    health.drain();
    assert_eq!(next().await, ServingStatus::NotServing);
}

#[tokio::test]
async fn others_can_ask_it() {
    let process = Process::default();
    let health = Health::new(SERVICE, &process);
    let admin = open(&process).await;
    let url = format!("http://{}", admin.address);
    let requested = readiness(&url).await.unwrap();
    let line = "not ready: outrider.v1.Verifier is starting";
    assert_eq!((requested.is_ready, requested.line.as_str()), (false, line));
    health.ready();
    let requested = readiness(&url).await.unwrap();
    assert_eq!(
        (requested.is_ready, requested.line.as_str()),
        (true, "ready")
    );
    drop(admin);
    let gone = readiness(&url).await.unwrap_err().to_string();
    assert!(
        gone.contains(&url) && gone.contains("does not answer"),
        "{gone}"
    );
    assert_eq!(gone.matches("refused").count(), 1, "{gone}");
    let encrypted = url.replace("http:", "https:");
    let encrypted = readiness(&encrypted).await.unwrap_err().to_string();
    assert!(encrypted.contains("speak no TLS"), "{encrypted}");
    let wrong = readiness("localhost").await.unwrap_err().to_string();
    assert!(wrong.contains("missing port"), "{wrong}");
}

#[tokio::test]
async fn a_process_that_is_ready_tells_what_is_wrong_all_the_same() {
    let process = Process::default();
    let health = Health::new(SERVICE, &process);
    let admin = open(&process).await;
    let url = format!("http://{}", admin.address);
    process.warnings.add(|| None);
    let wrong = Arc::new(AtomicBool::new(true));
    let is_wrong = Arc::clone(&wrong);
    let tell = move || {
        is_wrong
            .load(Relaxed)
            .then(|| "a drafter does not fit".to_owned())
    };
    process.warnings.add(tell);
    let reported = async || {
        let readiness = readiness(&url).await.unwrap();
        (readiness.is_ready, readiness.line)
    };
    // It is not ready for another reason, which is what matters.
    let (is_ready, line) = reported().await;
    assert!(!is_ready && !line.contains("fit"), "{line}");
    health.ready();
    let line = "ready, but a drafter does not fit".to_owned();
    assert_eq!(reported().await, (true, line));
    wrong.store(false, Relaxed);
    assert_eq!(reported().await, (true, "ready".to_owned()));
}

#[tokio::test]
async fn a_request_of_health_names_a_service_and_is_no_longer_than_that() {
    let admin = open(&Process::default()).await;
    assert_eq!(grpc(&admin, &"s".repeat(1_000)).await, Err(Code::NotFound));
    let long = "s".repeat(MAX_REQUEST_BYTES);
    assert_eq!(grpc(&admin, &long).await, Err(Code::OutOfRange));
}
