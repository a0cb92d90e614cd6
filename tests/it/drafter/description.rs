//! What a drafter says of itself.

use ::drafter::{DrafterConfig, Loaded};
use model::bigram::BigramFile;
use ops::config::Switch;
use speculation::verification::AcceptanceLabel;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::{DescribeRequest, Drafting, PeerDescription, Verification};

use super::{draft_with_heads, drafter, max_gram_alone, smaller, three};
use crate::cluster::{Service, draft};

async fn description(drafter: &Service) -> PeerDescription {
    let mut client = DrafterClient::new(drafter.channel());
    let described = client.describe(DescribeRequest {}).await;
    described.expect("a description").into_inner()
}

fn draftings(description: &PeerDescription) -> Vec<Drafting> {
    description.draftings().collect()
}

#[tokio::test]
async fn all_that_it_holds_is_told() {
    let described = description(&three().await).await;
    let all = [Drafting::Model, Drafting::MaxGram, Drafting::Cascade];
    assert_eq!(draftings(&described), all);
    let cascade = described.cascade.expect("a cascade");
    assert_eq!(cascade.models, ["draft", "smaller", "max-gram"]);
    assert!(!cascade.lenient && described.trees);
    let lenient = drafter(vec![draft(), smaller()], |config| {
        config.cascade.lenience = 1.5;
    })
    .await;
    let cascade = description(&lenient).await.cascade;
    assert!(cascade.expect("a cascade").lenient);
}

#[tokio::test]
async fn what_it_does_not_hold_is_not_told() {
    let bare = drafter(vec![draft()], |config| {
        "none".clone_into(&mut config.bigram);
    })
    .await;
    let described = description(&bare).await;
    // Max-Gram copies without a table too.
    let ways = [Drafting::Model, Drafting::MaxGram];
    assert_eq!(draftings(&described), ways);
    assert_eq!(described.cascade, None);
    assert!(described.heads.is_empty());
    // Two models make a cascade without Max-Gram.
    let neural = drafter(vec![draft(), smaller()], |config| {
        config.cascade.max_gram = Switch::Off;
    })
    .await;
    let described = description(&neural).await;
    let all = [Drafting::Model, Drafting::MaxGram, Drafting::Cascade];
    assert_eq!(draftings(&described), all);
    assert_eq!(
        described.cascade.expect("a cascade").models,
        ["draft", "smaller"]
    );
}

#[tokio::test]
async fn max_gram_alone_speaks_the_vocabulary_of_its_table() {
    let described = description(&max_gram_alone().await).await;
    let table = BigramFile::open("embedded").expect("a table");
    assert_eq!(described.model, "max-gram");
    assert_eq!(described.vocab_fingerprint, table.vocab_fingerprint);
    assert_eq!((described.vocab_size, described.logits_size), (4096, 4096));
    assert_eq!(described.eos_token_ids, [2]);
    assert_eq!(draftings(&described), [Drafting::MaxGram]);
    assert!(described.trees && described.cascade.is_none());
    assert!(described.context_len > 100_000);
}

#[test]
fn without_a_table_max_gram_alone_knows_no_vocabulary() {
    let mut config = DrafterConfig::default();
    "none".clone_into(&mut config.model.path);
    "none".clone_into(&mut config.bigram);
    let refused = Loaded::load(&config).expect_err("no vocabulary");
    assert!(
        refused.to_string().contains("outrider-bench bigram build"),
        "{refused}"
    );
}

#[tokio::test]
async fn heads_are_told_by_their_label() {
    let mut model = draft_with_heads();
    model.heads = vec![
        super::learned::head(AcceptanceLabel::Coupled),
        super::learned::head(AcceptanceLabel::Rejection),
    ];
    let described = description(&drafter(vec![model], |_| {}).await).await;
    let heads = described.heads.iter();
    let heads: Vec<_> = heads.map(|head| (head.label(), head.depth)).collect();
    assert_eq!(
        heads,
        [(Verification::Coupled, 1), (Verification::Token, 1)]
    );
}
