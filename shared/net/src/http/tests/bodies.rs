//! Bodies that are large, slow, or announced alone.

use super::*;

/// Returns the head of a request with a body of so many bytes.
fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n")
}

#[tokio::test]
async fn bodies_take_the_room_that_came_and_give_it_back() {
    let config = ServerConfig {
        max_receiving_bytes: NonZeroUsize::new(MOST).unwrap(),
        ..ServerConfig::default()
    };
    let (address, _serving) = serving(config).await;
    let announced = head("/length", MOST);
    let chunked = "POST /length HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut silent = Vec::new();
    for head in [announced.as_str(), chunked] {
        for _ in 0..20 {
            silent.push(ask(address, &[head.as_bytes()]).await);
        }
    }
    let body = vec![b' '; MOST];
    let request = head("/length", MOST - 1000);
    for _ in 0..3 {
        let whole = [request.as_bytes(), &body[1000..]];
        let answered = answer(&mut ask(address, &whole).await).await;
        assert!(
            answered.contains(&format!("length {}", MOST - 1000)),
            "{answered}"
        );
    }
    // Bytes that have arrived use up the budget.
    let half = [announced.as_bytes(), &body[..MOST / 2]];
    let mut held = ask(address, &half).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answered = answer(&mut ask(address, &[request.as_bytes(), &body[1000..]]).await).await;
    assert!(answered.starts_with("HTTP/1.1 429 "), "{answered}");
    held.write_all(&body[MOST / 2..]).await.unwrap();
    assert!(answer(&mut held).await.contains(&format!("length {MOST}")));
}

#[tokio::test(start_paused = true)]
async fn a_body_must_come_in_time() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let mut slow = ask(address, &[head("/length", 10).as_bytes(), b"x"]).await;
    let began = Instant::now();
    let answered = answer(&mut slow).await;
    assert!(answered.starts_with("HTTP/1.1 408 "), "{answered}");
    let receive_timeout = Duration::from_secs(10);
    assert!(began.elapsed() >= receive_timeout, "{:?}", began.elapsed());
}

#[tokio::test]
async fn who_writes_all_of_a_refused_request_first_reads_why() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let length = 24 << 20;
    let body = vec![b' '; length];
    for (path, status) in [("/length", 413), ("/unread", 200), ("/nowhere", 404)] {
        let announced = head(path, length);
        // A body of unknown length is refused only when it is too long, and less of it is read on. More than that
        // reaches the client's kernel or not, as it comes.
        let some = MAX_DISCARDED_CHUNKS;
        let chunked = announced.replace(
            &format!("content-length: {length}"),
            "transfer-encoding: chunked",
        );
        let frame = format!("{some:x}\r\n");
        let whole = [announced.as_bytes(), &body];
        let in_a_chunk = [
            chunked.as_bytes(),
            frame.as_bytes(),
            &body[..some],
            b"\r\n0\r\n\r\n",
        ];
        for said in [&whole[..], &in_a_chunk] {
            // The client writes the whole body before it reads.
            let answered = answer(&mut ask(address, said).await).await;
            assert!(
                answered.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answered}"
            );
        }
    }
    // A client that expects `100 Continue` gets the refusal at once.
    let asks = head("/length", length).replace("host:", "expect: 100-continue\r\nhost:");
    let answered = answer(&mut ask(address, &[asks.as_bytes()]).await).await;
    assert!(answered.starts_with("HTTP/1.1 413 "), "{answered}");
}
