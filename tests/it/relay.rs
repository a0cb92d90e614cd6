//! A TCP relay in front of a service, to cut its connections or to lead them elsewhere.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Relays connections to wherever it is pointed at, until the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _accepting: Arc<Accepting>,
}

struct Accepting(JoinHandle<()>);

struct State {
    upstream: Option<SocketAddr>,
    connections: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = JoinSet::new();
        let state = Arc::new(Mutex::new(State {
            upstream: Some(upstream),
            connections,
        }));
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((mut downstream, _)) = listener.accept().await {
                let mut state = shared.lock().expect("not poisoned");
                // Pointed nowhere: the connection is dropped at once.
                let Some(upstream) = state.upstream else {
                    continue;
                };
                state.connections.spawn(async move {
                    if let Ok(mut upstream) = TcpStream::connect(upstream).await {
                        let _ = downstream.set_nodelay(true);
                        let _ = upstream.set_nodelay(true);
                        let _ = copy_bidirectional(&mut downstream, &mut upstream).await;
                    }
                });
            }
        });
        Self {
            address,
            state,
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
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
