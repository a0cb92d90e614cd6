use super::*;

#[test]
fn distributions_have_so_many_bytes_and_no_more() {
    let admission = Admission::new(4, None, 10 << 10, 0);
    assert!(admission.admit_bytes(0).is_ok());
    let held = admission.admit_bytes(9 << 10).expect("room");
    let refused = admission.admit_bytes(2 << 10).expect_err("no room");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    drop(held);
    assert!(admission.admit_bytes(2 << 10).is_ok());
    // What never fits is no matter of waiting.
    let refused = admission.admit_bytes(11 << 10).expect_err("too much");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

#[test]
fn whole_answers_keep_so_many_bytes_and_no_more() {
    let admission = Admission::new(4, None, 0, 64 << 10);
    let held = admission.admit_answer(100, 512).expect("50 KiB");
    let refused = admission.admit_answer(30, 512).expect_err("15 KiB more");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    assert!(
        admission.admit_answer(1_000_000, 0).is_ok(),
        "nothing is kept"
    );
    drop(held);
    assert!(admission.admit_answer(30, 512).is_ok());
    let refused = admission.admit_answer(u64::MAX, 512).expect_err("never");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().starts_with("logprobs: a whole answer"));
}

/// Who does not say how long an answer may be is not refused for its length.
#[test]
fn an_answer_of_no_said_length_takes_one_share_of_the_memory() {
    let admission = Admission::new(4, None, 0, 8 << 20);
    assert_eq!(admission.unasked_tokens(0, 1), u32::MAX, "nothing is kept");
    assert_eq!(admission.unasked_tokens(1 << 10, 1), 1 << 10);
    assert_eq!(admission.unasked_tokens(1 << 10, 2), 1 << 9);
    // No fewer than this, which seldom takes more memory than there is.
    assert_eq!(admission.unasked_tokens(1 << 10, 128), 256);
}

#[test]
fn of_refusals_one_in_a_while_is_logged() {
    let admission = Admission::new(1, None, 1 << 10, 0);
    let _held = (admission.admit(None, 1), admission.admit_bytes(1 << 10));
    assert!(admission.admit(None, 1).is_err() && admission.admit_bytes(1).is_err());
    assert_eq!(admission.refused.passes(), None, "the next is not");
}

#[test]
fn a_permit_is_given_back_when_dropped() {
    let admission = Admission::new(1, None, 0, 0);
    let permit = admission.admit(None, 1).expect("the first");
    assert_eq!((admission.running(), admission.max_requests()), (1, 1));
    let refused = admission.admit(None, 1).expect_err("the second");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    drop(permit);
    assert_eq!(admission.running(), 0);
    assert!(admission.admit(None, 1).is_ok());
}

#[test]
fn the_outputs_of_a_request_get_places_together_or_none() {
    let admission = Admission::new(4, NonZeroU32::new(3), 0, 0);
    let places = admission.admit(None, 3).expect("places");
    assert_eq!((places.len(), admission.running()), (3, 3));
    let refused = admission.admit(None, 2).expect_err("one is left");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    assert_eq!(admission.running(), 3, "what was refused holds no place");
    drop(places);
    assert_eq!(admission.running(), 0);
    // What never fits is no matter of waiting.
    let refused = admission.admit(None, 5).expect_err("five");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    let known = "n: 5 outputs in all, expected at most 4 (coordinator.max_requests)";
    assert_eq!(refused.message(), known);
    let client = TokenHolder {
        tenant: None,
        token: 1,
        max_requests: None,
        rates: net::auth::RateLimits::default(),
    };
    let refused = admission.admit(Some(&client), 4);
    assert_eq!(
        refused.expect_err("four").code(),
        tonic::Code::InvalidArgument
    );
    let mut places = admission.admit(Some(&client), 3).expect("three");
    places.pop();
    assert!(
        admission.admit(Some(&client), 1).is_ok(),
        "each is given back alone"
    );
}

#[test]
fn a_token_has_places_of_its_own_and_takes_none_of_another() {
    let admission = Admission::new(8, NonZeroU32::new(2), 0, 0);
    let client = |token, max_requests| TokenHolder {
        tenant: None,
        token,
        max_requests: NonZeroU32::new(max_requests),
        rates: net::auth::RateLimits::default(),
    };
    let by_default = client(1, 0);
    let held = [(); 2].map(|()| admission.admit(Some(&by_default), 1).expect("a place"));
    let refused = admission.admit(Some(&by_default), 1).expect_err("a third");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    assert!(
        refused.message().contains("2 requests of this token"),
        "{refused:?}"
    );
    assert_eq!(admission.running(), 2, "what was refused holds no place");
    // Another token, one of a number of its own, and whoever needs none.
    let own = client(2, 3);
    let more = [(); 3].map(|()| admission.admit(Some(&own), 1).expect("a place"));
    assert!(admission.admit(Some(&own), 1).is_err());
    assert!(admission.admit(None, 1).is_ok());
    drop((held, more));
    assert!(admission.admit(Some(&by_default), 1).is_ok());
    // The file says another number meanwhile.
    let _one = admission.admit(Some(&client(2, 1)), 1).expect("a place");
    assert!(admission.admit(Some(&client(2, 1)), 1).is_err());
}

fn with_rates(requests: u32, tokens: u32) -> TokenHolder {
    TokenHolder {
        tenant: None,
        token: 7,
        max_requests: None,
        rates: net::auth::RateLimits {
            requests: NonZeroU32::new(requests),
            tokens: NonZeroU32::new(tokens),
        },
    }
}

/// The code of a refusal, what it says, and the time after which it says to come again.
fn refused<T>(result: Result<T, Status>) -> (tonic::Code, String, Option<Duration>) {
    use tonic_types::StatusExt;
    let status = result.err().expect("a refusal");
    let wait = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay);
    (status.code(), status.message().to_owned(), wait)
}

#[tokio::test(start_paused = true)]
async fn a_token_may_make_so_many_requests_a_minute() {
    let admission = Admission::new(8, None, 0, 0);
    let client = with_rates(2, 0);
    for _ in 0..2 {
        assert!(admission.admit(Some(&client), 1).is_ok());
    }
    let (code, why, wait) = refused(admission.admit(Some(&client), 1));
    assert_eq!(code, tonic::Code::ResourceExhausted);
    assert!(
        why.contains("rpm=2 in auth.client_tokens_file") && why.contains("30 s"),
        "{why}"
    );
    assert_eq!(wait, Some(Duration::from_secs(30)));
    assert_eq!(admission.running(), 0, "what was refused holds no place");
    // Others are not touched by it.
    assert!(admission.admit(None, 1).is_ok());
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(admission.admit(Some(&client), 1).is_ok());
    // A limit that was changed begins anew.
    assert!(admission.admit(Some(&with_rates(3, 0)), 1).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_token_may_use_so_many_tokens_a_minute() {
    let admission = Admission::new(8, None, 0, 0);
    let client = with_rates(0, 600);
    let begin = || admission.admit(Some(&client), 1);
    let quota = begin().expect("the first")[0].quota.clone();
    admission.admit_prompts(&quota, 500).expect("there are 600");
    let (code, why, wait) = refused(admission.admit_prompts(&quota, 200));
    assert_eq!(
        (code, wait),
        (
            tonic::Code::ResourceExhausted,
            Some(Duration::from_secs(10))
        )
    );
    assert!(why.contains("tpm=600 in auth.client_tokens_file"), "{why}");
    // What is under way goes on beyond the limit, and is made up for before the next request begins.
    quota.charge_output(159);
    let (_, _, wait) = refused(begin());
    assert_eq!(wait, Some(Duration::from_secs(6)));
    tokio::time::advance(Duration::from_secs(6)).await;
    assert!(begin().is_ok());
    let (code, why, _) = refused(admission.admit_prompts(&quota, 601));
    assert_eq!(code, tonic::Code::InvalidArgument);
    assert!(
        why.starts_with("prompt: 601 tokens, expected at most the 600"),
        "{why}"
    );
}
