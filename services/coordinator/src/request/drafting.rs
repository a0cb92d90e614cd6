//! How long draft blocks are, by what a request asks for and the verifier takes.

use speculation::drafting::{DraftLen, Drafting};
use speculation::methods::Choice;
use wire::drafting_request::DraftingRequest;
use wire::status::BadField;

use crate::config::CoordinatorConfig;

/// Most levels of a draft block of `method`, of which the verifier takes `most_nodes` nodes.
///
/// What the verifier takes is a matter of its configuration, and shorter drafts change nothing but
/// speed: so a chain is cut in silence. A tree that was asked for in these very sizes is not.
///
/// # Errors
/// Names the tree, its sizes and the limit.
pub(super) fn levels(
    drafting: &DraftingRequest,
    method: &Choice,
    most_nodes: u32,
    config: &CoordinatorConfig,
) -> Result<u32, BadField> {
    let fixed = config.draft_len.fixed();
    let is_fixed = method.draft_len() == DraftLen::Fixed && method.drafting != Drafting::Cascade;
    let fixed = fixed.filter(|_| is_fixed);
    let default = fixed.unwrap_or(config.draft_cap);
    let width = method.tree.width();
    let fit = most_nodes / width;
    let refused = |problem: String| Err(BadField::new("tree", problem));
    if fit == 0 {
        return refused(format!(
            "a level has {width} nodes, the verifier takes {most_nodes} in a round"
        ));
    }
    match drafting.most {
        Some(levels) if width > 1 && levels > fit => refused(format!(
            "{levels} levels of {width} nodes are {}, the verifier takes {most_nodes} in a round; \
             ask for a draft_len of at most {fit}, or for fewer nodes a level",
            levels * width
        )),
        most => Ok(most.unwrap_or(default.get()).min(fit)),
    }
}

#[cfg(test)]
mod tests {
    use speculation::methods::MethodRequest;
    use v1::draft_length::Policy;
    use v1::tree_shape::Shape;

    use wire::v1;

    use super::*;

    fn request(draft_len: Option<u32>, policy: Option<Policy>) -> v1::GenerateRequest {
        v1::GenerateRequest {
            draft_len,
            draft_length: policy.map(|policy| v1::DraftLength {
                policy: Some(policy),
            }),
            ..Default::default()
        }
    }

    fn levels(request: &v1::GenerateRequest, most_nodes: u32) -> Result<u32, BadField> {
        let requested = DraftingRequest::read(request)?;
        let method = MethodRequest {
            drafting: requested.drafting,
            draft_len: requested.draft_len,
            tree: requested.tree,
            ..Default::default()
        };
        let method = Choice::resolve(&method, 1.0, false).expect("a method");
        super::levels(
            &requested,
            &method,
            most_nodes,
            &CoordinatorConfig::default(),
        )
    }

    #[test]
    fn what_is_not_named_has_a_cap() {
        assert_eq!(levels(&request(None, None), 64), Ok(20));
        assert_eq!(levels(&request(Some(7), None), 64), Ok(7));
        assert_eq!(levels(&request(None, Some(Policy::Fixed(7))), 64), Ok(7));
        assert_eq!(levels(&request(Some(7), Some(Policy::Fixed(7))), 64), Ok(7));
        let stops = || Some(Policy::Confidence(0.4));
        assert_eq!(levels(&request(None, stops()), 64), Ok(20));
        assert_eq!(levels(&request(Some(9), stops()), 64), Ok(9));
        assert_eq!(
            levels(&request(None, Some(Policy::Goodput(true))), 64),
            Ok(20)
        );
        for drafting in [v1::Drafting::Cascade, v1::Drafting::MaxGram] {
            let mut requested = request(None, None);
            requested.drafting = drafting.into();
            assert_eq!(levels(&requested, 64), Ok(20));
        }
        // A chain is cut to what the verifier takes.
        assert_eq!(levels(&request(Some(9), None), 3), Ok(3));
    }

    #[test]
    fn a_tree_fits_into_a_round_or_is_refused() {
        let tree = |draft_len, siblings| v1::GenerateRequest {
            tree: Some(v1::TreeShape {
                shape: Some(Shape::Comb(siblings)),
            }),
            ..request(draft_len, None)
        };
        assert_eq!(levels(&tree(None, 8), 64), Ok(8));
        assert_eq!(levels(&tree(Some(8), 8), 64), Ok(8));
        assert_eq!(levels(&tree(None, 8), 24), Ok(3));
        let of_cascade = |siblings| v1::GenerateRequest {
            drafting: v1::Drafting::Cascade.into(),
            ..tree(None, siblings)
        };
        assert_eq!(levels(&of_cascade(8), 64), Ok(8));
        assert_eq!(levels(&of_cascade(3), 64), Ok(20));
        for (draft_len, most, words) in [
            (Some(9), 64, "9 levels of 8 nodes are 72"),
            (Some(4), 31, "at most 3"),
            (None, 7, "takes 7 in a round"),
        ] {
            let bad = levels(&tree(draft_len, 8), most).expect_err("too large");
            assert_eq!(bad.field, "tree");
            assert!(bad.problem.contains(words), "{bad}");
        }
    }

    #[test]
    fn what_contradicts_itself_or_is_out_of_range_is_named() {
        for (bad, field) in [
            (request(Some(0), None), "draft_len"),
            (
                request(Some(4), Some(Policy::Fixed(5))),
                "draft_length.fixed",
            ),
            (
                request(None, Some(Policy::Confidence(1.5))),
                "draft_length.confidence",
            ),
        ] {
            let error = DraftingRequest::read(&bad).expect_err(field);
            assert_eq!(error.field, field);
        }
    }
}
