//! What was computed of a tenant's prompt serves that tenant alone.

use super::world::{ACME, ANYONE, BOLT, World, try_generate};
use crate::client::request;
use crate::cluster::eventually;

/// Longer than two pages of 64 tokens.
const PROMPT: &str = "Once upon a time there was a little girl who lived in a small house near the forest with \
    her mother and her father and her brother and a dog. Every day she went to the garden to look at the \
    flowers and the birds and the trees, and every day she found something new. One day she found a big red \
    ball under a tree. She did not know whose ball it was. She asked her mother, and her mother did not know. \
    She asked her father, and he did not know. She asked her brother, and he did not know, but he wanted to \
    play with it. So they played with the ball all day, and when the sun went down they were tired and happy. \
    In the night";

#[tokio::test]
async fn beginnings_are_shared_within_a_tenant_by_its_token_and_with_nobody_else() {
    let world = World::new();
    let (verifier, monitor) = world
        .verifier(world.of_peer(), |config| {
            config.engine.prefix_sharing = true;
        })
        .await;
    let process = world.of_coordinator();
    let coordinator = world.coordinator(&[], &[&verifier], process).await;
    let mut answers = Vec::new();
    // The tenant that the request claims, whose token it shows, and whether anything is shared.
    for (claimed, token, shares) in [
        ("", ACME, false),
        ("", ACME, true),
        // Another tenant, whatever it says.
        ("acme", BOLT, false),
        ("", BOLT, true),
        // A token without a name is of no tenant, until the request says of which.
        ("", ANYONE, false),
        ("", ANYONE, false),
        ("gate", ANYONE, false),
        ("gate", ANYONE, true),
    ] {
        let before = monitor.engine().shared_tokens;
        let mut requested = request(PROMPT, 8);
        claimed.clone_into(&mut requested.tenant);
        let answer = try_generate(&coordinator, &world.of_client(token), requested).await;
        let answer = answer.expect("let in");
        let shared = monitor.engine().shared_tokens - before;
        assert_eq!(
            shared > 0,
            shares,
            "'{claimed}' with {token}: {shared} tokens"
        );
        answers.push(answer.tokens);
        let is_over = || {
            let sessions = monitor.sessions();
            (sessions.attached, sessions.detached) == (0, 0) && monitor.engine().sequences == 0
        };
        eventually("the session is over", is_over).await;
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}
