use super::*;
use crate::tests::logged;

#[test]
fn of_the_requests_to_an_overloaded_peer_one_a_second_is_let_through() {
    let now = Instant::now();
    let at = |ms: u64| now + Duration::from_millis(ms);
    let mut overload = Overload {
        until: at(3_500),
        look_at: at(1_000),
    };
    let let_through = |ms: &u64| overload.left(at(*ms)).is_none();
    let times = [0, 999, 1_000, 1_001, 1_500, 2_000, 2_400, 3_499, 3_500];
    let passed: Vec<u64> = times.into_iter().filter(let_through).collect();
    assert_eq!(passed, [1_000, 2_000, 3_499, 3_500]);
}

/// One where nobody is.
fn replica() -> Replica<&'static str> {
    let url: Uri = "http://127.0.0.1:1".parse().expect("a URL");
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let config = ChannelConfig::default();
    Replica::new(&url, address, &config, &Credentials::default())
}

#[tokio::test]
async fn an_overloaded_peer_has_what_it_asks_for_and_more_once_it_was_asked_too_often() {
    let replica = replica();
    let second = Duration::from_secs(1);
    for _ in 0..10 {
        assert_eq!(replica.overloaded(second, 0.0), second);
    }
    assert_eq!(replica.overloaded(second, 0.0), 4 * second);
    assert_eq!(replica.overloaded(second, 1.0), 6 * second);
    for _ in 0..11 {
        replica.requested();
    }
    assert_eq!(replica.overloaded(second, 0.5), second * 5 / 4);
    assert_eq!(replica.overloaded(second, 0.0), 4 * second);
    assert!(replica.overloaded_for().is_some());
    replica.succeeded();
    assert_eq!(replica.overloaded_for(), None);
}

/// What comes after it at the same address may be another model.
#[tokio::test]
async fn a_peer_that_stops_or_fails_is_asked_anew_what_it_is() {
    let replica = replica();
    let ends: [fn(&Replica<&'static str>); 4] = [
        Replica::draining,
        Replica::forget,
        |replica| replica.failed("no answer"),
        |replica| replica.unreachable("no answer"),
    ];
    for (at, end) in ends.into_iter().enumerate() {
        replica.described(Arc::new("a model"));
        assert_eq!(replica.description().as_deref(), Some(&"a model"));
        end(&replica);
        assert_eq!(replica.description(), None, "way {at}");
    }
    assert!(replica.is_draining());
    replica.succeeded();
    assert!(!replica.is_draining(), "it goes on");
}

#[tokio::test]
async fn no_pause_is_too_long_to_be_counted() {
    let replica = replica();
    for asked in [Duration::MAX, Duration::from_secs(i64::MAX as u64)] {
        let pause = replica.overloaded(asked, 1.0);
        assert!(pause <= 2 * FAR, "{pause:?}");
        assert!(replica.overloaded_for().is_some_and(|left| left <= FAR));
    }
}

#[tokio::test]
async fn the_log_says_why_an_endpoint_is_left_alone() {
    let replica = replica();
    let log = logged(|| {
        for _ in 0..7 {
            assert!(replica.is_alive());
            replica.failed("no answer in time");
        }
    });
    assert!(!replica.is_alive());
    assert!(
        log.contains("peer keeps failing, left alone for a while"),
        "{log}"
    );
    assert!(log.contains("why=\"no answer in time\""), "{log}");
}
