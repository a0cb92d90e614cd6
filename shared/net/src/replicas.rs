//! The replicas of a peer: the addresses behind a list of URLs, what is known of each, and which of them a session
//! goes to.

mod breaker;
mod health;
mod replica;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tonic::transport::Uri;

use crate::Credentials;
use crate::channel::{self, ChannelConfig, ChannelError, Trust};
use crate::deadline::within;

pub use health::SILENT;
pub use replica::{EnteredSession, Replica};

/// How the addresses behind a name are found.
type Lookup = fn(String, u16) -> LookupFuture;
type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// How long a request waits for a name server where no address is known.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a name server may take. Then what is known of the other names counts, and it is asked anew.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// All replicas of one kind of peer, each of which describes itself by a `D`.
#[derive(Clone, Debug)]
pub struct ReplicaSet<D>(Arc<ReplicaDirectory<D>>);

#[derive(Debug)]
struct ReplicaDirectory<D> {
    urls: Vec<Uri>,
    config: ChannelConfig,
    credentials: Credentials,
    dns_ttl: Duration,
    lookup: Lookup,
    /// Whether the names are being resolved: once at a time, however many ask.
    resolving: watch::Sender<bool>,
    known: Mutex<KnownReplicas<D>>,
}

#[derive(Debug)]
struct KnownReplicas<D> {
    by_url: BTreeMap<String, Arc<Replica<D>>>,
    resolved_at: Option<Instant>,
}

impl<D: Send + Sync + 'static> ReplicaSet<D> {
    /// Returns the replicas behind `urls`; a name is resolved anew after `dns_ttl`.
    ///
    /// # Errors
    /// If a URL is wrong.
    pub fn new(
        urls: &[String],
        config: &ChannelConfig,
        credentials: &Credentials,
        dns_ttl: Duration,
    ) -> Result<Self, ChannelError> {
        let urls = urls
            .iter()
            .map(|url| channel::parse(url, Trust::of(credentials)))
            .collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(ReplicaDirectory {
            urls,
            config: config.clone(),
            credentials: credentials.clone(),
            dns_ttl,
            lookup: look_up,
            resolving: watch::Sender::new(false),
            known: Mutex::new(KnownReplicas {
                by_url: BTreeMap::new(),
                resolved_at: None,
            }),
        })))
    }

    /// Returns whether there are no URLs at all.
    pub fn is_empty(&self) -> bool {
        self.0.urls.is_empty()
    }

    /// Returns the replica for `session`: of those alive that `suit` the one with the highest hash of session
    /// and address, so that a session stays where it is while other replicas come and go; one that is
    /// about to stop, was silent, or could not be reached when it was last tried, only if there is no other. With
    /// `even_dead` the best of all if none is alive.
    pub async fn pick(
        &self,
        session: &[u8; 16],
        even_dead: bool,
        suits: impl Fn(&Replica<D>) -> bool,
    ) -> Option<Arc<Replica<D>>> {
        let picked = self.pick_now(session, even_dead, &suits).await?;
        if !picked.is_suspected() {
            return Some(picked);
        }
        picked.known().await;
        self.pick_now(session, even_dead, &suits).await
    }

    async fn pick_now(
        &self,
        session: &[u8; 16],
        even_dead: bool,
        suits: &impl Fn(&Replica<D>) -> bool,
    ) -> Option<Arc<Replica<D>>> {
        let mut replicas = self.all().await;
        replicas.retain(|replica| suits(replica) && (even_dead || replica.is_alive()));
        let best = replicas.iter().max_by_key(|replica| {
            let mut hasher = DefaultHasher::new();
            (session, replica.address()).hash(&mut hasher);
            (replica.is_alive(), replica.is_well(), hasher.finish())
        })?;
        if best.is_alive() && best.is_well() {
            // With somewhere else to go, nobody waits to find out whether those that were lost are back.
            let lost = (replicas.iter()).filter(|it| it.is_alive() && it.is_lost());
            lost.for_each(Replica::look_for);
        }
        Some(Arc::clone(best))
    }

    /// All of them, dead or alive. Where some are known, their names are resolved anew in the background: no
    /// request waits for a name server then.
    pub async fn all(&self) -> Vec<Arc<Replica<D>>> {
        let (known, resolved_at) = (self.known(), self.0.with(|known| known.resolved_at));
        let is_stale = resolved_at.is_none_or(|at| at.elapsed() >= self.0.dns_ttl);
        // Where all are dead or about to stop, new ones may have been started meanwhile.
        let mut stay = known.iter().filter(|it| it.is_alive() && !it.is_draining());
        if is_stale || stay.next().is_none() {
            self.resolve();
        }
        if !known.is_empty() {
            return known;
        }
        // What goes on in the background serves those who come later.
        let mut resolving = self.0.resolving.subscribe();
        let resolved = resolving.wait_for(|resolving| !resolving);
        let _ = tokio::time::timeout(RESOLVE_TIMEOUT, resolved).await;
        self.known()
    }

    /// Those whose addresses are known by now, dead or alive.
    pub fn known(&self) -> Vec<Arc<Replica<D>>> {
        self.0
            .with(|known| known.by_url.values().cloned().collect())
    }

    /// Resolves all names in the background, unless that is going on already.
    fn resolve(&self) {
        if self.0.resolving.send_replace(true) {
            return;
        }
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            let addresses = shared.addresses().await;
            shared.with(|known| {
                known.resolved_at = Some(Instant::now());
                shared.update(known, addresses);
            });
            shared.resolving.send_replace(false);
        });
    }

    /// For how long all of them that are alive are overloaded, by their own words; none if one is not.
    pub fn overloaded_for(&self) -> Option<Duration> {
        let known = self.known();
        let alive = known.iter().filter(|replica| replica.is_alive());
        let left: Option<Vec<_>> = alive.map(|it| it.overloaded_for()).collect();
        left?.into_iter().min()
    }

    /// Addresses known by now: those alive, and those left alone for a while.
    pub fn counts(&self) -> (usize, usize) {
        let known = self.known();
        let alive = known.iter().filter(|it| it.is_alive()).count();
        (alive, known.len() - alive)
    }
}

impl<D: Send + Sync + 'static> ReplicaDirectory<D> {
    /// Every address behind the URLs, with the URL; a name that cannot be resolved in time gives none.
    async fn addresses(&self) -> Vec<(Uri, SocketAddr)> {
        let found = join_all(self.urls.iter().map(|url| self.addresses_of(url))).await;
        found.into_iter().flatten().collect()
    }

    async fn addresses_of(&self, url: &Uri) -> Vec<(Uri, SocketAddr)> {
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_u16().unwrap_or_default();
        let requested = (self.lookup)(host.to_owned(), port);
        let found = within(LOOKUP_TIMEOUT, "the name server", requested).await;
        match found.unwrap_or_else(|late| Err(io::Error::new(io::ErrorKind::TimedOut, late))) {
            Ok(found) => found.into_iter().map(|it| (url.clone(), it)).collect(),
            Err(error) => {
                tracing::warn!(host, %error, "peer's name cannot be resolved");
                Vec::new()
            }
        }
    }

    /// Keeps what is known of addresses that are still there. If no name at all resolves, what was
    /// known before is better than nothing.
    fn update(&self, known: &mut KnownReplicas<D>, addresses: Vec<(Uri, SocketAddr)>) {
        if addresses.is_empty() {
            return;
        }
        let mut before = std::mem::take(&mut known.by_url);
        for (url, address) in addresses {
            let name = Replica::<D>::url_of(&url, address);
            let replica = before.remove(&name);
            known.by_url.entry(name).or_insert_with(|| {
                let new = || Arc::new(Replica::new(&url, address, &self.config, &self.credentials));
                replica.unwrap_or_else(new)
            });
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut KnownReplicas<D>) -> T) -> T {
        // Nothing here panics half-way, so that what is known is always whole.
        action(&mut self.known.lock())
    }
}

fn look_up(host: String, port: u16) -> LookupFuture {
    Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio_stream::wrappers::TcpListenerStream;

    use super::*;

    fn replicas(urls: &[&str]) -> ReplicaSet<()> {
        let urls: Vec<String> = urls.iter().map(|&url| url.to_owned()).collect();
        let (config, credentials) = (ChannelConfig::default(), Credentials::default());
        ReplicaSet::new(&urls, &config, &credentials, Duration::from_secs(60)).expect("URLs")
    }

    /// Returns the replica of the session whose id is this byte, again and again.
    async fn picked(replicas: &ReplicaSet<()>, byte: u8) -> Arc<Replica<()>> {
        let picked = replicas.pick(&[byte; 16], false, |_| true).await;
        picked.expect("alive")
    }

    #[tokio::test]
    async fn sessions_spread_stick_and_move_only_off_the_dead() {
        let urls = [
            "http://127.0.0.1:1",
            "http://127.0.0.1:2",
            "http://127.0.0.1:3",
        ];
        let replicas = replicas(&urls);
        let mut counts = BTreeMap::new();
        let mut first = Vec::new();
        for byte in 0..=255 {
            let replica = picked(&replicas, byte).await;
            *counts.entry(replica.address().to_owned()).or_insert(0) += 1;
            first.push(replica);
        }
        assert!(
            counts.len() == 3 && counts.values().all(|&count| count > 40),
            "{counts:?}"
        );
        assert_eq!(replicas.counts(), (3, 0));
        let dead = first[0].clone();
        dead.unreachable("a test");
        for (byte, before) in (0..=255).zip(&first) {
            let now = picked(&replicas, byte).await;
            let moved = now.address() != before.address();
            assert_eq!(moved, before.address() == dead.address());
        }
    }

    #[tokio::test]
    async fn only_the_last_resort_is_dead() {
        let replicas = replicas(&["http://127.0.0.1:1"]);
        picked(&replicas, 0).await.unreachable("a test");
        assert_eq!(replicas.counts(), (0, 1));
        assert!(replicas.pick(&[0; 16], false, |_| true).await.is_none());
        assert!(replicas.pick(&[0; 16], true, |_| true).await.is_some());
    }

    #[tokio::test]
    async fn one_that_was_lost_is_looked_for_before_a_session_goes_there() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let back = format!("http://{}", listener.local_addr().expect("an address"));
        let (_, health) = tonic_health::server::health_reporter();
        let server = tonic::transport::Server::builder().add_service(health);
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        let (gone, well) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        let replicas = replicas(&[gone, well, &back]);
        let lost = |it: &Arc<Replica<()>>| it.address() != well;
        let lost: Vec<_> = (replicas.all().await).into_iter().filter(lost).collect();
        for replica in &lost {
            replica.unreachable("a test");
        }
        tokio::time::sleep(Duration::from_millis(1_050)).await;
        assert_eq!(
            replicas.counts(),
            (3, 0),
            "they were left alone for long enough"
        );
        for byte in 0..=255 {
            assert_eq!(picked(&replicas, byte).await.address(), well);
        }
        for replica in &lost {
            replica.known().await;
        }
        assert_eq!(replicas.counts(), (2, 1));
        let mut seen = BTreeMap::new();
        for byte in 0..=255 {
            let address = picked(&replicas, byte).await.address().to_owned();
            *seen.entry(address).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen[&back] > 60, "{seen:?}");
    }

    #[tokio::test]
    async fn a_name_stands_for_all_its_addresses() {
        let replicas = replicas(&["http://localhost:7"]);
        assert!(replicas.pick(&[0; 16], false, |_| true).await.is_some());
        let (config, credentials) = (ChannelConfig::default(), Credentials::default());
        let nonsense = ["nonsense".to_owned()];
        let refused = ReplicaSet::<()>::new(&nonsense, &config, &credentials, Duration::ZERO);
        assert!(refused.is_err());
    }

    fn looked_up_by(lookup: Lookup, dns_ttl: Duration) -> ReplicaSet<()> {
        let urls = ["http://verifier:7".to_owned()];
        let (config, credentials) = (ChannelConfig::default(), Credentials::default());
        let mut replicas = ReplicaSet::new(&urls, &config, &credentials, dns_ttl).expect("a URL");
        Arc::get_mut(&mut replicas.0).expect("nobody else").lookup = lookup;
        replicas
    }

    /// It answers once, and never again.
    #[tokio::test(start_paused = true)]
    async fn a_name_server_that_hangs_holds_up_nobody_who_knows_an_address() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let lookup: Lookup = |_, port| {
            Box::pin(async move {
                if ASKED.fetch_add(1, Ordering::Relaxed) > 0 {
                    std::future::pending::<()>().await;
                }
                Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
            })
        };
        let replicas = looked_up_by(lookup, Duration::ZERO);
        let began = tokio::time::Instant::now();
        for _ in 0..100 {
            assert!(replicas.pick(&[0; 16], false, |_| true).await.is_some());
            tokio::task::yield_now().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        // Nor are there ever two questions under way; and one that nobody answers is not the last.
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
        tokio::time::sleep(LOOKUP_TIMEOUT * 2).await;
        assert!(replicas.pick(&[0; 16], false, |_| true).await.is_some());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn where_no_address_is_known_all_wait_for_one_answer_and_not_for_ever() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let late: Lookup = |_, port| {
            Box::pin(async move {
                ASKED.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(RESOLVE_TIMEOUT / 2).await;
                Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
            })
        };
        let replicas = looked_up_by(late, Duration::from_secs(60));
        let picks: Vec<_> = (0..20)
            .map(|_| {
                let replicas = replicas.clone();
                tokio::spawn(async move { replicas.pick(&[0; 16], false, |_| true).await })
            })
            .collect();
        for pick in picks {
            assert!(pick.await.expect("no panic").is_some());
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
        let never: Lookup = |_, _| Box::pin(std::future::pending());
        let replicas = looked_up_by(never, Duration::from_secs(60));
        let began = tokio::time::Instant::now();
        assert!(replicas.pick(&[0; 16], false, |_| true).await.is_none());
        assert_eq!(began.elapsed(), RESOLVE_TIMEOUT);
    }
}
