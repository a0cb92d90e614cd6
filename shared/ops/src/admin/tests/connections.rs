//! Who reaches the port, and how many connections it holds.

use super::*;

#[tokio::test]
async fn a_second_process_on_a_machine_has_an_admin_port_too() {
    let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = first.local_addr().unwrap();
    let config = AdminConfig {
        listen: OptionalListen::At(taken.into()),
        ..AdminConfig::default()
    };
    let admin = start(&config, &Process::default(), false).await.unwrap();
    assert!(admin.unwrap().address.port() > taken.port());
}

#[tokio::test]
async fn a_closed_port_takes_its_connections_with_it() {
    let admin = open(&Process::default()).await;
    let address = admin.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut some = [0; 12];
    stream.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
    drop(admin);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest));
    assert!(ended.await.is_ok(), "the connection must end");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn it_is_not_opened_to_strangers_by_accident() {
    let config = |listen: &str, insecure| AdminConfig {
        listen: listen.to_owned().try_into().unwrap(),
        insecure,
        ..AdminConfig::default()
    };
    let process = Process::default();
    let strangers = start(&config("0.0.0.0:0", false), &process, true).await;
    let refused = strangers.unwrap_err().to_string();
    assert!(refused.contains("admin.insecure"), "{refused}");
    let exposed = start(&config("0.0.0.0:0", true), &process, true).await;
    assert!(exposed.unwrap().is_some());
    for off in ["off", ""] {
        let closed = start(&config(off, false), &process, true).await;
        assert!(closed.unwrap().is_none());
    }
    let admin = start(&config("127.0.0.1:0", false), &process, true).await;
    let admin = admin.unwrap().unwrap();
    let taken = config(&admin.address.to_string(), false);
    let refused = start(&taken, &process, true).await.unwrap_err().to_string();
    assert!(
        refused.contains("admin.listen") && refused.contains("a port each"),
        "{refused}"
    );
}

/// Returns whether the other side has closed it.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest));
    read.await.is_ok()
}

#[tokio::test]
async fn however_many_connections_are_held_a_probe_is_answered() {
    let admin = open(&Process::default()).await;
    let mut held = Vec::new();
    for _ in 0..3 * MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(admin.address).await.unwrap();
        let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut some = [0; 12];
        stream.read_exact(&mut some).await.unwrap();
        held.push(stream);
    }
    assert_eq!(http1(&admin, "GET", "/livez").await.0, 200);
    let (old, new) = held.split_at_mut(2 * MAX_CONNECTIONS);
    for stream in old {
        assert!(is_closed(stream).await, "the oldest make room");
    }
    let last = new.last_mut().unwrap();
    let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    last.write_all(request).await.unwrap();
    assert!(is_closed(last).await, "answered, and closed as was asked");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_asks_nothing_in_time_is_closed() {
    let admin = open(&Process::default()).await;
    // Nothing, a part of HTTP/2's preface, and a part of a head.
    for begun in ["", "PRI * HTTP/2", "GET /livez HTTP/1.1\r\nhost: loc"] {
        let mut stream = TcpStream::connect(admin.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let began = tokio::time::Instant::now();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(OPENING_TIMEOUT * 2, stream.read_to_end(&mut rest));
        assert!(read.await.is_ok(), "{begun:?}");
        assert!(began.elapsed() >= OPENING_TIMEOUT, "{begun:?}");
    }
}

#[tokio::test]
async fn a_page_of_a_browser_does_not_reach_a_port_of_this_machine_alone() {
    let local = open(&Process::default()).await;
    let everywhere = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let config = AdminConfig {
        trusted_hosts: vec!["ops.example".to_owned()],
        ..AdminConfig::default()
    };
    let everywhere = serve(everywhere, &Process::default(), &config).unwrap();
    let behind_proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let behind_proxy = serve(behind_proxy, &Process::default(), &config).unwrap();
    let port = everywhere.address.port();
    let everywhere_here = SocketAddr::from(([127, 0, 0, 1], port));
    let status = async |address: SocketAddr, headers: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    for (headers, expected) in [
        ("host: localhost:9464", 200),
        ("host: 127.0.0.1", 200),
        ("host: [::1]:9464", 200),
        ("host: rebound.example:9464", 403),
        ("host: localhost\r\norigin: http://page.example", 403),
        ("host: localhost\r\norigin: http://localhost:3000", 200),
    ] {
        assert_eq!(status(local.address, headers).await, expected, "{headers}");
        assert_eq!(status(everywhere_here, headers).await, 200, "{headers}");
    }
    for (host, expected) in [("ops.example:9464", 200), ("other.example", 403)] {
        let header = format!("host: {host}");
        assert_eq!(
            status(behind_proxy.address, &header).await,
            expected,
            "{host}"
        );
    }
}
