//! A link between two hosts: a TCP relay that delays what passes, without changing its order.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How much later a late message is.
const LATE: Duration = Duration::from_millis(200);

/// Bytes that are read at once, and pieces on their way.
const PIECE: usize = 64 << 10;
const ON_THE_WAY: usize = 4_096;

/// How long messages take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) one_way: Duration,
    /// Share by which that varies.
    pub(crate) jitter: f64,
    /// Share of messages that take [`LATE`] longer.
    pub(crate) late: f64,
}

/// A relay that stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) url: String,
    accepting: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Relay {
    /// Leads to `upstream` over `link`.
    ///
    /// # Errors
    /// If there is no port.
    pub(crate) async fn start(upstream: SocketAddr, link: Link) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let accepting = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(upstream).await else {
                    continue;
                };
                for stream in [&near, &far] {
                    let _ = stream.set_nodelay(true);
                }
                let ((near_reads, near_writes), (far_reads, far_writes)) =
                    (near.into_split(), far.into_split());
                tokio::spawn(pass(near_reads, far_writes, link, 1));
                tokio::spawn(pass(far_reads, near_writes, link, 2));
            }
        });
        Ok(Self { url, accepting })
    }
}

/// Passes what comes on, each piece in its time and none before the one before.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, link: Link, seed: u32) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    let reading = async move {
        let mut piece = vec![0; PIECE];
        let mut draws = seed;
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let mut draw = || {
                draws = draws.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(draws >> 8) / f64::from(1 << 24)
            };
            let varied = 1.0 + link.jitter * (2.0 * draw() - 1.0);
            let late = if draw() < link.late {
                LATE
            } else {
                Duration::ZERO
            };
            let due = Instant::now() + link.one_way.mul_f64(varied.max(0.0)) + late;
            if sender.send((due, piece[..read].to_vec())).await.is_err() {
                break;
            }
        }
    };
    let writing = async move {
        while let Some((due, piece)) = pieces.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(reading, writing);
}
