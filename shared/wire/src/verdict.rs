//! Verdicts on the wire.

use speculation::verification::layers::Layer;
use speculation::verification::{LastToken, Verdict};

use crate::status::BadField;
use crate::v1;

/// Most residual layers: each round adds at most one, and none outlasts a block.
const MAX_LAYERS: usize = 64;

/// A verdict, and which draft tokens it accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct PathVerdict {
    /// The verdict.
    pub verdict: Verdict,
    /// The nodes accepted, as indices into the block, root first.
    pub path: Vec<u32>,
}

impl PathVerdict {
    /// A verdict on a chain: it accepted the first so many tokens.
    pub fn of_chain(verdict: Verdict) -> Self {
        let path = (0..verdict.accepted as u32).collect();
        Self { verdict, path }
    }
}

/// Writes a verdict, with how much of each emitted position was deferred.
pub fn to_wire(
    PathVerdict { verdict, path }: PathVerdict,
    deferral: Vec<f32>,
    header: v1::ReplyHeader,
    timing: v1::Timing,
) -> v1::Verdict {
    let last = match verdict.last {
        LastToken::Recovered => v1::LastToken::Recovered,
        LastToken::Bonus => v1::LastToken::Bonus,
        LastToken::AcceptedEnd => v1::LastToken::AcceptedEnd,
    };
    v1::Verdict {
        header: Some(header),
        emitted: verdict.emitted,
        path,
        accepted_len: verdict.accepted as u32,
        last: last.into(),
        layers: layers_to_wire(&verdict.layers),
        deferral,
        timing: Some(timing),
        ..Default::default()
    }
}

/// Reads a verdict. Whether it fits the block it is about, the session checks.
///
/// # Errors
/// If the path does not go from parents to children or is not as long as is said, or the last token's
/// kind is unknown.
pub fn from_wire(wire: v1::Verdict) -> Result<PathVerdict, BadField> {
    let descends = wire.path.windows(2).all(|pair| pair[0] < pair[1]);
    if !descends || wire.path.len() != wire.accepted_len as usize {
        return Err(BadField::new("path", "not a path of the accepted length"));
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
    let verdict = Verdict {
        emitted: wire.emitted,
        accepted: wire.accepted_len as usize,
        last,
        layers: layers_from_wire(&wire.layers)?,
    };
    Ok(PathVerdict {
        verdict,
        path: wire.path,
    })
}

/// Writes residual layers.
pub fn layers_to_wire(layers: &[Layer]) -> Vec<v1::ResidualLayer> {
    let layer = |layer: &Layer| v1::ResidualLayer {
        log_rho: layer.log_rho,
        remaining: layer.remaining,
    };
    layers.iter().map(layer).collect()
}

/// Reads residual layers.
///
/// # Errors
/// If there are too many, or one is no layer.
pub fn layers_from_wire(wire: &[v1::ResidualLayer]) -> Result<Vec<Layer>, BadField> {
    if wire.len() > MAX_LAYERS {
        let problem = format!("{} layers, expected at most {MAX_LAYERS}", wire.len());
        return Err(BadField::new("layers", problem));
    }
    wire.iter()
        .map(|layer| {
            if !layer.log_rho.is_finite() || layer.remaining == 0 {
                let problem = "a layer whose log_rho is no number, or that lasts for no position";
                return Err(BadField::new("layers", problem));
            }
            Ok(Layer {
                log_rho: layer.log_rho,
                remaining: layer.remaining,
            })
        })
        .collect()
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
                layers: vec![Layer {
                    log_rho: 0.125,
                    remaining: 3,
                }],
            };
            let chain = PathVerdict::of_chain(verdict.clone());
            assert_eq!(chain.path, [0, 1]);
            let path = vec![1, 4];
            for verdict in [chain, PathVerdict { verdict, path }] {
                let header = v1::ReplyHeader::default();
                let wire = to_wire(verdict.clone(), vec![0.5; 3], header, v1::Timing::default());
                assert_eq!(from_wire(wire), Ok(verdict));
            }
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
                path: vec![1, 1],
                accepted_len: 2,
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
        let layer = |log_rho, remaining| v1::ResidualLayer { log_rho, remaining };
        for layers in [
            vec![layer(f64::NAN, 1)],
            vec![layer(0.0, 0)],
            vec![layer(0.0, 1); MAX_LAYERS + 1],
        ] {
            let chain = chain.clone();
            assert!(from_wire(v1::Verdict { layers, ..chain }).is_err());
        }
        assert!(from_wire(v1::Verdict { last: 0, ..chain }).is_err());
    }
}
