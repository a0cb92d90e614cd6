//! A TCP relay in front of a service, to cut its connections, to lead them elsewhere, or to hold its answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{self, AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Relays connections to wherever it is pointed at, until the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    valve: Arc<Valve>,
    _accepting: Arc<Accepting>,
}

struct Accepting(JoinHandle<()>);

struct State {
    upstream: Option<SocketAddr>,
    connections: JoinSet<()>,
}

/// How many more bytes of the service's answers may pass, on all connections together; `None` is any number.
type Valve = watch::Sender<Option<usize>>;

impl Relay {
    pub(crate) async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = JoinSet::new();
        let state = Arc::new(Mutex::new(State {
            upstream: Some(upstream),
            connections,
        }));
        let valve = Arc::new(Valve::new(None));
        let (shared, passing) = (Arc::clone(&state), Arc::clone(&valve));
        let accepting = tokio::spawn(async move {
            while let Ok((downstream, _)) = listener.accept().await {
                let mut state = shared.lock().expect("not poisoned");
                // Pointed nowhere: the connection is dropped at once.
                let Some(upstream) = state.upstream else {
                    continue;
                };
                let valve = Arc::clone(&passing);
                state.connections.spawn(async move {
                    if let Ok(upstream) = TcpStream::connect(upstream).await {
                        let _ = relay(downstream, upstream, &valve).await;
                    }
                });
            }
        });
        Self {
            address,
            state,
            valve,
            _accepting: Arc::new(Accepting(accepting)),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Breaks every connection; new ones go to the same place.
    pub(crate) fn cut(&self) {
        self.state
            .lock()
            .expect("not poisoned")
            .connections
            .abort_all();
    }

    /// Breaks every connection; new ones go to `upstream`, or are refused.
    pub(crate) fn lead_to(&self, upstream: Option<SocketAddr>) {
        self.state.lock().expect("not poisoned").upstream = upstream;
        self.cut();
    }

    /// Leads to nobody at first, and after a second to `upstream`, as a service does that is started anew.
    pub(crate) fn restarts_as(&self, upstream: SocketAddr) {
        self.lead_to(None);
        let relay = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            relay.lead_to(Some(upstream));
        });
    }

    /// Lets `bytes` more of the service's answers pass, and holds what follows; connections stand, and what
    /// clients say passes. Whatever is longer than that is under way until [`release`](Self::release), however
    /// fast the machine is.
    pub(crate) fn hold_after(&self, bytes: usize) {
        self.valve.send_replace(Some(bytes));
    }

    /// Lets everything pass, what was held first.
    pub(crate) fn release(&self) {
        self.valve.send_replace(None);
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Carries both directions until one fails or both have ended.
async fn relay(downstream: TcpStream, upstream: TcpStream, valve: &Valve) -> io::Result<()> {
    downstream.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let (mut asking, mut answered) = downstream.into_split();
    let (mut answering, mut requested) = upstream.into_split();
    let questions = async {
        copy(&mut asking, &mut requested).await?;
        requested.shutdown().await
    };
    let answers = async {
        let mut bytes = [0; 4096];
        loop {
            let read = answering.read(&mut bytes).await?;
            if read == 0 {
                return answered.shutdown().await;
            }
            let mut rest = &bytes[..read];
            while !rest.is_empty() {
                let (passing, held) = rest.split_at(pass(rest.len(), valve).await);
                answered.write_all(passing).await?;
                rest = held;
            }
        }
    };
    tokio::try_join!(questions, answers).map(|_| ())
}

/// Waits until something may pass, and takes up to `wanted` bytes of it.
async fn pass(wanted: usize, valve: &Valve) -> usize {
    let mut state = valve.subscribe();
    loop {
        let mut passing = 0;
        valve.send_if_modified(|left| {
            passing = left.map_or(wanted, |left| left.min(wanted));
            if let Some(left) = left {
                *left -= passing;
            }
            // Nobody waits for there to be less.
            false
        });
        if passing > 0 {
            return passing;
        }
        // The sender is borrowed, so it is there.
        let _ = state.changed().await;
    }
}
