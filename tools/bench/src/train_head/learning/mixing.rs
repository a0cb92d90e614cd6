//! The context that states are taken from: the response, with draft tokens in it.

use speculation::TokenId;

/// A response with draft tokens in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mixed {
    /// Z: the response's own token at some positions, the draft token at the others.
    pub(crate) tokens: Vec<TokenId>,
    /// Whether Z_i is the draft token; only those positions count in the loss.
    pub(crate) drafted: Vec<bool>,
}

/// Takes the token of `response` (positions) where the uniform is below `share`, that of `drafted`
/// (positions) elsewhere; SpecDec++, section 3.3, with r = `share`.
pub(crate) fn mix(
    response: &[TokenId],
    drafted: &[TokenId],
    uniforms: impl Iterator<Item = f64>,
    share: f64,
) -> Mixed {
    let (tokens, drafted) = (response.iter().zip(drafted).zip(uniforms))
        .map(|((&own, &draft), uniform)| {
            let takes_own = uniform < share;
            (if takes_own { own } else { draft }, !takes_own)
        })
        .unzip();
    Mixed { tokens, drafted }
}
