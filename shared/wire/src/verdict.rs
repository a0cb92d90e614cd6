//! Verdicts on the wire.

use speculation::verification::{LastToken, Verdict};

use crate::status::BadField;
use crate::v1;

/// Writes a verdict on a chain.
pub fn to_wire(verdict: Verdict, header: v1::ReplyHeader, timing: v1::Timing) -> v1::Verdict {
    let last = match verdict.last {
        LastToken::Recovered => v1::LastToken::Recovered,
        LastToken::Bonus => v1::LastToken::Bonus,
        LastToken::AcceptedEnd => v1::LastToken::AcceptedEnd,
    };
    v1::Verdict {
        header: Some(header),
        emitted: verdict.emitted,
        path: (0..verdict.accepted as u32).collect(),
        accepted_len: verdict.accepted as u32,
        last: last.into(),
        timing: Some(timing),
        ..Default::default()
    }
}

/// Reads a verdict on a chain. Whether it fits the block it is about, the session checks.
///
/// # Errors
/// If the path is not that of a chain, or the last token's kind is unknown.
pub fn from_wire(wire: v1::Verdict) -> Result<Verdict, BadField> {
    let path_is_chain = wire
        .path
        .iter()
        .enumerate()
        .all(|(index, &node)| node as usize == index);
    if !path_is_chain || wire.path.len() != wire.accepted_len as usize {
        return Err(BadField::new("path", "not the path of a chain"));
    }
    let last = match v1::LastToken::try_from(wire.last) {
        Ok(v1::LastToken::Recovered) => LastToken::Recovered,
        Ok(v1::LastToken::Bonus) => LastToken::Bonus,
        Ok(v1::LastToken::AcceptedEnd) => LastToken::AcceptedEnd,
        _ => {
            return Err(BadField::new(
                "last",
                format!("{} is no kind of last token", wire.last),
            ));
        }
    };
    Ok(Verdict {
        emitted: wire.emitted,
        accepted: wire.accepted_len as usize,
        last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_survive_the_wire() {
        for last in [
            LastToken::Recovered,
            LastToken::Bonus,
            LastToken::AcceptedEnd,
        ] {
            let verdict = Verdict {
                emitted: vec![4, 5, 6],
                accepted: 2,
                last,
            };
            let wire = to_wire(
                verdict.clone(),
                v1::ReplyHeader::default(),
                v1::Timing::default(),
            );
            assert_eq!(from_wire(wire), Ok(verdict));
        }
    }

    #[test]
    fn crooked_verdicts_are_refused() {
        let chain = v1::Verdict {
            last: 1,
            path: vec![0],
            accepted_len: 1,
            ..Default::default()
        };
        assert!(from_wire(chain.clone()).is_ok());
        assert!(
            from_wire(v1::Verdict {
                path: vec![1],
                ..chain.clone()
            })
            .is_err()
        );
        assert!(
            from_wire(v1::Verdict {
                accepted_len: 2,
                ..chain.clone()
            })
            .is_err()
        );
        assert!(from_wire(v1::Verdict { last: 0, ..chain }).is_err());
    }
}
