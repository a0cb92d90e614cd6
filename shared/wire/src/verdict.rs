//! Verdicts on the wire.

use speculation::verification::layers::ResidualLayer;
use speculation::verification::{LastToken, Verdict};

use crate::status::BadField;
use crate::v1;

/// Most residual layers: each round adds at most one, and none outlasts a block.
const MAX_LAYERS: usize = 64;

/// Writes a verdict.
pub fn to_wire(verdict: Verdict, timing: v1::Timing) -> v1::Verdict {
    let last = last_to_wire(verdict.last);
    v1::Verdict {
        emitted: verdict.emitted,
        accepted_len: verdict.path.len() as u32,
        path: verdict.path,
        last: last.into(),
        layers: layers_to_wire(&verdict.layers),
        deferral: verdict.deferral,
        timing: Some(timing),
        ..Default::default()
    }
}

/// Reads a verdict. Whether it fits the block it is about, the session checks.
///
/// # Errors
/// If the path does not go from parents to children or is not as long as is said, or the last token's
/// kind is unknown.
pub fn from_wire(wire: v1::Verdict) -> Result<Verdict, BadField> {
    let descends = wire.path.windows(2).all(|pair| pair[0] < pair[1]);
    if !descends || wire.path.len() != wire.accepted_len as usize {
        return Err(BadField::new("path", "not a path of the accepted length"));
    }
    let last = last_from_wire(wire.last)?;
    Ok(Verdict {
        emitted: wire.emitted,
        path: wire.path,
        last,
        deferral: wire.deferral,
        layers: layers_from_wire(&wire.layers)?,
    })
}

/// Writes what the last token is.
pub(crate) fn last_to_wire(last: LastToken) -> v1::LastToken {
    match last {
        LastToken::Recovered => v1::LastToken::Recovered,
        LastToken::Bonus => v1::LastToken::Bonus,
        LastToken::AcceptedEnd => v1::LastToken::AcceptedEnd,
    }
}

/// Reads what the last token is.
///
/// # Errors
/// If its kind is unknown.
pub(crate) fn last_from_wire(wire: i32) -> Result<LastToken, BadField> {
    match v1::LastToken::try_from(wire) {
        Ok(v1::LastToken::Recovered) => Ok(LastToken::Recovered),
        Ok(v1::LastToken::Bonus) => Ok(LastToken::Bonus),
        Ok(v1::LastToken::AcceptedEnd) => Ok(LastToken::AcceptedEnd),
        _ => {
            let problem = format!("{wire} is no kind of last token");
            Err(BadField::new("last", problem))
        }
    }
}

/// Writes residual layers.
pub fn layers_to_wire(layers: &[ResidualLayer]) -> Vec<v1::ResidualLayer> {
    let layer = |layer: &ResidualLayer| v1::ResidualLayer {
        log_rho: layer.log_rho,
        remaining: layer.remaining,
    };
    layers.iter().map(layer).collect()
}

/// Reads residual layers.
///
/// # Errors
/// If there are too many, or one is no layer.
pub fn layers_from_wire(wire: &[v1::ResidualLayer]) -> Result<Vec<ResidualLayer>, BadField> {
    BadField::at_most("layers", wire.len(), MAX_LAYERS, "layers")?;
    wire.iter()
        .map(|layer| {
            if !layer.log_rho.is_finite() || layer.remaining == 0 {
                let problem = "a layer whose log_rho is no number, or that lasts for no position";
                return Err(BadField::new("layers", problem));
            }
            Ok(ResidualLayer {
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
        use LastToken::{AcceptedEnd, Bonus, Recovered};
        for last in [Recovered, Bonus, AcceptedEnd] {
            let tree = Verdict {
                emitted: vec![4, 5, 6],
                path: vec![1, 4],
                last,
                deferral: Vec::new(),
                layers: vec![ResidualLayer {
                    log_rho: 0.125,
                    remaining: 3,
                }],
            };
            let chain = Verdict {
                path: vec![0, 1],
                deferral: vec![0.5; 3],
                ..tree.clone()
            };
            for verdict in [chain, tree] {
                let wire = to_wire(verdict.clone(), v1::Timing::default());
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
        let refused = |change: &dyn Fn(&mut v1::Verdict)| {
            let mut verdict = chain.clone();
            change(&mut verdict);
            assert!(from_wire(verdict.clone()).is_err(), "{verdict:?}");
        };
        refused(&|verdict| (verdict.path, verdict.accepted_len) = (vec![1, 1], 2));
        refused(&|verdict| verdict.accepted_len = 2);
        refused(&|verdict| verdict.last = 0);
        let layer = |log_rho, remaining| v1::ResidualLayer { log_rho, remaining };
        for layers in [
            vec![layer(f64::NAN, 1)],
            vec![layer(0.0, 0)],
            vec![layer(0.0, 1); MAX_LAYERS + 1],
        ] {
            refused(&|verdict| verdict.layers.clone_from(&layers));
        }
    }
}
