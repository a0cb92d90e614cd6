//! Connections on their way in: accepted, counted, and handed on once they say what they speak.
//!
//! What a connection must do before it is handed on, it does beside all others and in bounded time: a TLS
//! handshake where the service speaks TLS, and the first bytes of its protocol. Whoever is slow holds up nobody.

mod opened;
mod opening;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;

use crate::listen::ServerConfig;
use crate::log_throttle::LogThrottle;
use crate::receiving::Gate;
use crate::slots::ConnectionSlots;
use crate::tls::Tls;
pub use opened::OpenedConnection;
pub use opening::{OPENING_TIMEOUT, PortProtocol, silence};

/// Most connections of a server that have not yet said what they want. Beyond it the oldest is dropped once it has
/// had a moment to: an honest one needs a few round trips, and whoever stalls on purpose is older than that.
pub const MAX_OPENING: usize = 256;

/// The time that each connection has to say what it wants. Until the oldest has had it, further ones of a burst wait
/// to be accepted.
const LEAST_OPENING: Duration = Duration::from_millis(50);

/// The time for which nothing is accepted after the system could not accept: it has no more files, and needs time.
const PAUSE: Duration = Duration::from_millis(100);

/// The connections of one server, as they become ready.
pub struct IncomingConnections {
    listener: TcpListener,
    protocol: PortProtocol,
    tls: Tls,
    /// One a connection, from when it is accepted to when it is closed.
    slots: ConnectionSlots,
    max_connections: usize,
    gate: Gate,
    opening: JoinSet<Option<OpenedConnection>>,
    /// The same tasks, the oldest first, and when each began.
    order: VecDeque<(Instant, AbortHandle)>,
    pause: Option<Pin<Box<Sleep>>>,
    /// Wakes the task when the oldest of too many openings has had its time.
    room: Option<Pin<Box<Sleep>>>,
    full: LogThrottle,
    failed: Arc<LogThrottle>,
}

impl IncomingConnections {
    /// Accepts connections of `listener` in `protocol`, within the bounds of `config`; `gate` counts the bytes of their
    /// requests. Cancelling `severed` cuts all of them.
    pub fn new(
        listener: TcpListener,
        protocol: PortProtocol,
        tls: Tls,
        config: &ServerConfig,
        gate: Gate,
        severed: CancellationToken,
    ) -> Self {
        let max_connections = config.max_connections.get();
        queue(&listener, max_connections);
        Self {
            listener,
            protocol,
            tls,
            slots: ConnectionSlots::new(max_connections, severed),
            max_connections,
            gate,
            opening: JoinSet::new(),
            order: VecDeque::new(),
            pause: None,
            room: None,
            full: LogThrottle::default(),
            failed: Arc::default(),
        }
    }

    /// Lets a connection open, unless there are too many.
    fn admit(&mut self, connection: TcpStream) {
        let Some(slot) = self.slots.take() else {
            // Closed at once: its client may do better at another replica than in a queue.
            if let Some(others) = self.full.passes() {
                let client = connection.peer_addr();
                let client = client.map_or_else(|_| "gone".to_owned(), |at| at.to_string());
                tracing::warn!(
                    client,
                    protocol = ?self.protocol,
                    most = self.max_connections,
                    others,
                    "connection closed: server.max_connections are open; `others` were closed since the \
                     last such line"
                );
            }
            return;
        };
        if self.order.len() >= MAX_OPENING
            && let Some((_, oldest)) = self.order.pop_front()
        {
            oldest.abort();
        }
        let failed = Arc::clone(&self.failed);
        // A client of HTTP/1 is let in at a port of gRPC too, to be told where it is.
        let acceptor = self.tls.acceptor();
        let (protocol, gate) = (self.protocol, self.gate.clone());
        let opening = opening::open(connection, protocol, acceptor, slot, gate, failed);
        let opening = self.opening.spawn(opening);
        self.order.push_back((Instant::now(), opening));
    }

    /// Returns the time from which another connection may begin to open; none if that is now.
    fn opens_at(&mut self) -> Option<Instant> {
        self.order.retain(|(_, opening)| !opening.is_finished());
        let (began, _) = self.order.front()?;
        let at = *began + LEAST_OPENING;
        (self.order.len() >= MAX_OPENING && at > Instant::now()).then_some(at)
    }
}

/// Has the system keep as many connections of a burst as there are slots, until they are accepted. What it keeps by
/// default is less, and whoever comes in vain tries again a second later.
fn queue(listener: &TcpListener, most: usize) {
    let backlog = i32::try_from(most).unwrap_or(i32::MAX);
    if let Err(error) = SockRef::from(listener).listen(backlog) {
        tracing::warn!(%error, backlog, "the queue of connections to be accepted stays as short as it was");
    }
}

impl Stream for IncomingConnections {
    type Item = Result<OpenedConnection, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            while let Poll::Ready(Some(opened)) = this.opening.poll_join_next(cx) {
                if let Ok(Some(opened)) = opened {
                    return Poll::Ready(Some(Ok(opened)));
                }
            }
            if let Some(pause) = &mut this.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                this.pause = None;
            }
            if let Some(at) = this.opens_at() {
                // It is asked again when one of them has opened, too.
                let room = this.room.insert(Box::pin(tokio::time::sleep_until(at)));
                std::task::ready!(room.as_mut().poll(cx));
                continue;
            }
            match std::task::ready!(this.listener.poll_accept(cx)) {
                Ok((connection, _)) => this.admit(connection),
                // It went away before it was looked at.
                Err(error)
                    if matches!(
                        error.kind(),
                        ConnectionAborted | ConnectionReset | Interrupted
                    ) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted for now");
                    this.pause = Some(Box::pin(tokio::time::sleep(PAUSE)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_a_burst_each_connection_has_a_moment_to_say_what_it_wants() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let config = ServerConfig::default();
        let mut incoming = IncomingConnections::new(
            listener,
            PortProtocol::Http,
            Tls::default(),
            &config,
            Gate::new(&config),
            CancellationToken::new(),
        );
        let connect = |_| std::net::TcpStream::connect(address).expect("a connection");
        let _silent: Vec<_> = (0..=MAX_OPENING).map(connect).collect();
        // The clock stands still for as long as there is something to do.
        let mut accept = async || {
            for _ in 0..4 * MAX_OPENING {
                let opened = futures_util::poll!(std::pin::pin!(incoming.next()));
                assert!(opened.is_pending(), "nobody says anything");
                tokio::task::yield_now().await;
            }
            let finished = incoming.order.iter().filter(|(_, it)| it.is_finished());
            (incoming.order.len(), finished.count())
        };
        assert_eq!(accept().await, (MAX_OPENING, 0), "one waits");
        assert_eq!(incoming.opening.len(), MAX_OPENING);
        tokio::time::advance(LEAST_OPENING).await;
        let mut accept = async || {
            let opened = futures_util::poll!(std::pin::pin!(incoming.next()));
            assert!(opened.is_pending(), "nobody says anything");
            incoming.opening.len()
        };
        assert_eq!(accept().await, MAX_OPENING + 1, "it is let in");
        tokio::task::yield_now().await;
        assert_eq!(accept().await, MAX_OPENING, "in slot of the oldest");
    }

    /// The default, 128, holds no burst of these.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_burst_of_connections_waits_to_be_accepted() {
        const BURST: usize = 300;
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a limit");
        let most: usize = most.trim().parse().expect("a number");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        queue(&listener, BURST);
        let address = listener.local_addr().expect("an address");
        let connect =
            |_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(900));
        let connected: Vec<_> = (0..BURST.min(most)).map(connect).collect();
        assert!(connected.iter().all(Result::is_ok), "nobody accepts");
    }
}
