//! Connections of HTTP/2, by their frames (RFC 9113).

use super::*;

/// The first bytes of a client: the preface, and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Returns the value that the server's first frame sets `setting` to (RFC 9113, section 6.5).
async fn http2_setting(address: SocketAddr, setting: u16) -> Option<u32> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "a SETTINGS frame comes first");
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut settings = vec![0; length as usize];
    stream.read_exact(&mut settings).await.unwrap();
    let mut settings = settings.chunks_exact(6).map(|entry| {
        let name = u16::from_be_bytes([entry[0], entry[1]]);
        (
            name,
            u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]),
        )
    });
    settings.find_map(|(name, value)| (name == setting).then_some(value))
}

#[tokio::test]
async fn streams_and_headers_of_a_connection_of_http2_are_bounded() {
    let config = ServerConfig {
        max_streams_per_connection: NonZeroU32::new(7).unwrap(),
        ..ServerConfig::default()
    };
    let (address, _serving) = serving(config).await;
    let (max_streams, max_header_bytes) = (3, 6);
    assert_eq!(http2_setting(address, max_streams).await, Some(7));
    let headers = http2_setting(address, max_header_bytes).await;
    assert_eq!(headers, Some(MAX_HEADER_BYTES));
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_http2_without_a_stream_ends_in_time() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    writing.write_all(PREFACE).await.unwrap();
    let began = Instant::now();
    // It answers every ping.
    let mut head = [0; 9];
    while reading.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        reading.read_exact(&mut payload).await.unwrap();
        let (ping, acknowledged) = (6, 1);
        if head[3] == ping && head[4] != acknowledged {
            head[4] = acknowledged;
            let _ = writing.write_all(&[&head[..], &payload].concat()).await;
        }
        assert!(began.elapsed() < 2 * IDLE_TIMEOUT, "it never ends");
    }
    assert!(began.elapsed() >= IDLE_TIMEOUT, "{:?}", began.elapsed());
}

/// Returns a frame of `kind` on `stream`.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), payload].concat()
}

/// Returns a request for `path`, which ends its stream.
fn get_frame(stream: u32, path: &str) -> Vec<u8> {
    // By RFC 7541: GET, http, and the path as it is.
    let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
    block.extend_from_slice(path.as_bytes());
    block.extend_from_slice(b"\x01\x09localhost");
    let (headers, ends_stream_and_headers) = (1, 0x5);
    frame(headers, ends_stream_and_headers, stream, &block)
}

/// Cancels `requests` requests at once on a connection. Returns whether the next request is answered, or the code of
/// the GOAWAY frame with which the server closes the connection.
async fn after_cancelling(address: SocketAddr, requests: u32) -> Result<(), u32> {
    let mut said = PREFACE.to_vec();
    let cancelled = 8_u32.to_be_bytes();
    for stream in (0..requests).map(|index| 2 * index + 1) {
        said.extend(get_frame(stream, "/never"));
        said.extend(frame(3, 0, stream, &cancelled));
    }
    let next = 2 * requests + 1;
    said.extend(get_frame(next, "/"));
    let mut stream = ask(address, &[]).await;
    // It may close before it has read all.
    let _ = stream.write_all(&said).await;
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return Err(u32::MAX);
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        let of = u32::from_be_bytes(head[5..].try_into().unwrap());
        match head[3] {
            1 if of == next => return Ok(()),
            7 => return Err(u32::from_be_bytes(payload[4..8].try_into().unwrap())),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_client_may_cancel_all_it_may_have_open_at_once_and_no_more() {
    let config = ServerConfig {
        max_streams_per_connection: NonZeroU32::new(100).unwrap(),
        ..ServerConfig::default()
    };
    let (address, _serving) = serving(config).await;
    assert_eq!(after_cancelling(address, 90).await, Ok(()));
    let enhance_your_calm = 11;
    let many = after_cancelling(address, 5_000).await;
    assert_eq!(many, Err(enhance_your_calm));
}

#[tokio::test]
async fn what_may_come_before_it_is_read_is_bounded() {
    let (address, _serving) = serving(ServerConfig::default()).await;
    let initial_window_size = 4;
    let window = http2_setting(address, initial_window_size).await;
    assert_eq!(window, Some(WINDOW_BYTES));
}
