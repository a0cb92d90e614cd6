use super::*;

fn nodes(token_ids: &[u32], parents: &[i32]) -> v1::TokenTree {
    v1::TokenTree {
        token_ids: token_ids.to_vec(),
        parents: parents.to_vec(),
    }
}

#[test]
fn messages_of_a_tree_become_one_tree() {
    let all = |parts: &[v1::TokenTree]| {
        let mut all = v1::TokenTree::default();
        for part in parts {
            append(&mut all, part.clone());
        }
        all
    };
    let chain = all(&[nodes(&[7, 8], &[]), nodes(&[9], &[])]);
    assert_eq!(chain, nodes(&[7, 8, 9], &[]));
    let late = all(&[nodes(&[7, 8], &[]), nodes(&[9], &[0]), nodes(&[5], &[])]);
    assert_eq!(late, nodes(&[7, 8, 9, 5], &[-1, 0, 0, 2]));
    let early = all(&[nodes(&[7, 8], &[-1, -1]), nodes(&[9], &[0])]);
    assert_eq!(early, nodes(&[7, 8, 9], &[-1, -1, 0]));
    // One parent too few stands out, and is not filled in.
    let mut short = PartialBlock {
        nodes: all(&[nodes(&[7, 8], &[-1]), nodes(&[9], &[])]),
        ..Default::default()
    };
    assert!(short.tree().is_err());
}

#[test]
fn parents_without_tokens_do_not_pile_up() {
    let mut all = v1::TokenTree::default();
    let taken = (0..9).take_while(|_| {
        append(&mut all, nodes(&[], &[-1]));
        !is_too_much(&all, 0, 4)
    });
    assert_eq!(taken.count(), 4);
    let full = nodes(&[7, 8, 9, 5], &[-1, 0, 1, 2]);
    assert!(!is_too_much(&full, 4, 4) && is_too_much(&full, 4, 3));
    assert!(is_too_much(&full, 5, 4));
}
