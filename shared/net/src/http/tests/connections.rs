//! Connections that are silent, idle, stalled, or too many.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_connection_must_send_its_headers_in_time_and_may_not_idle_after_an_answer() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let within = |limit: Duration| limit..limit + Duration::from_secs(5);
    let half = b"GET / HTTP/1.1\r\nhost:";
    let mut stalled = TcpStream::connect(address).await.unwrap();
    stalled.write_all(half).await.unwrap();
    let (read, after) = closed(stalled, Instant::now()).await;
    assert!(within(OPENING_TIMEOUT).contains(&after), "{after:?}");
    assert!(!read.contains(" 200 "), "{read}");

    for next in [&b""[..], half] {
        let mut idle = TcpStream::connect(address).await.unwrap();
        for _ in 0..2 {
            idle.write_all(REQUEST).await.unwrap();
            assert!(
                answer(&mut idle).await.starts_with("HTTP/1.1 200 "),
                "it goes on"
            );
        }
        idle.write_all(next).await.unwrap();
        let (_, after) = closed(idle, Instant::now()).await;
        assert!(within(IDLE_TIMEOUT).contains(&after), "{after:?}");
    }
}

/// Returns a connection on which a request is under way.
async fn busy(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let never = b"GET /never HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(never).await.unwrap();
    stream
}

fn places(most: usize) -> ServerConfig {
    ServerConfig {
        max_connections: NonZeroUsize::new(most).unwrap(),
        ..ServerConfig::default()
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once_if_all_others_work() {
    let (address, _serving) = serving(places(2)).await;
    let first = busy(address).await;
    let _second = busy(address).await;
    // Their requests are under way once the server has read them.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let third = TcpStream::connect(address).await.unwrap();
    assert_eq!(closed(third, Instant::now()).await.0, "");
    drop(first);
    // Its place is free once the server has noticed.
    let limit = Instant::now() + Duration::from_secs(10);
    loop {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(REQUEST).await;
        if answer(&mut stream).await.contains("here") {
            break;
        }
        assert!(Instant::now() < limit, "a place is not given back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn of_connections_that_ask_for_nothing_the_oldest_that_never_asked_makes_room() {
    let (address, _serving) = serving(places(4)).await;
    let mut idle = Vec::new();
    // Silent, within the headers, between two requests, and one of HTTP/2 without a stream.
    let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for said in [&b""[..], b"GET / HTTP/1.1\r\n", REQUEST, http2] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(said).await.unwrap();
        if said == REQUEST {
            assert!(answer(&mut stream).await.contains("here"));
        }
        idle.push(stream);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Who has asked is the last of them, though another connection came later.
    idle.swap(2, 3);
    // A connection with a request under way takes the place of the first, and keeps it.
    let _busy = busy(address).await;
    let mut served = Vec::new();
    for (at, oldest) in idle.into_iter().enumerate() {
        let cut = timeout(Duration::from_secs(5), closed(oldest, Instant::now()));
        cut.await
            .unwrap_or_else(|_| panic!("connection {at} is cut"));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut stream).await.contains("here"), "served");
        served.push(stream);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_must_say_what_it_speaks_in_time() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let within = OPENING_TIMEOUT..OPENING_TIMEOUT + Duration::from_secs(1);
    for said in [
        &b""[..],
        b"P",
        b"PRI * HT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(said).await.unwrap();
        let ended = timeout(2 * OPENING_TIMEOUT, closed(stream, Instant::now()));
        let (_, after) = ended.await.expect("closed in time");
        assert!(within.contains(&after), "{said:?}: {after:?}");
    }
    // The first bytes of HTTP/2's preface may begin another method.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"P").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let rest = b"OST /unread HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(rest).await.unwrap();
    assert!(answer(&mut stream).await.contains("here"));
}

#[tokio::test]
async fn of_very_many_that_say_nothing_the_oldest_make_room() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let mut silent = Vec::new();
    for _ in 0..MAX_OPENING + 40 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let oldest = silent.swap_remove(0);
    let cut = timeout(Duration::from_secs(5), closed(oldest, Instant::now()));
    cut.await.expect("the oldest is dropped at once");
    let youngest = silent.pop().unwrap();
    let cut = timeout(Duration::from_millis(200), closed(youngest, Instant::now()));
    assert!(cut.await.is_err(), "the youngest may still begin");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_of_its_answer_loses_its_connection() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let mut stalled = TcpStream::connect(address).await.unwrap();
    let flood = b"GET /flood HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stalled.write_all(flood).await.unwrap();
    tokio::time::sleep(2 * IDLE_TIMEOUT).await;
    let (read, _) = closed(stalled, Instant::now()).await;
    assert!(read.len() < 64 << 20, "it got {}", read.len());
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let large = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    // The server may close before it has read all.
    let _ = stream.write_all(large.as_bytes()).await;
    let (read, _) = closed(stream, Instant::now()).await;
    assert!(
        read.is_empty() || read.starts_with("HTTP/1.1 431 "),
        "{read}"
    );
}
