//! What a metric comes to over many outputs.

/// A metric over outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    /// Its value; by [`Scale`](super::Scale) a share, or a number.
    pub(crate) value: f64,
    /// Standard error of the value, if outputs are independent; none where it is no mean.
    pub(crate) standard_error: Option<f64>,
}

impl Score {
    /// Returns the mean of `scores`, one for each output; 0 of none.
    pub(crate) fn mean(scores: &[f64]) -> Self {
        let count = scores.len().max(1) as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let squares = scores.iter().map(|score| (score - mean).powi(2));
        let variance = squares.sum::<f64>() / count;
        Self {
            value: mean,
            standard_error: Some((variance / count).sqrt()),
        }
    }

    /// Returns a value that is no mean over outputs.
    pub(crate) fn whole(value: f64) -> Self {
        Self {
            value,
            standard_error: None,
        }
    }
}

/// How likely a model finds some tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LogLikelihood {
    /// Sum of the natural logarithms of their probabilities.
    pub(crate) nats: f64,
    /// How many there are.
    pub(crate) tokens: usize,
}

impl LogLikelihood {
    /// Returns nats a token over all of `parts`: each weighs as many tokens as it has. The standard error is that of a ratio
    /// of two sums ("Sampling Techniques", Cochran, 1977, eq. 2.39).
    pub(crate) fn score(parts: &[Self]) -> Score {
        let tokens = parts.iter().map(|part| part.tokens).sum::<usize>().max(1) as f64;
        let value = parts.iter().map(|part| part.nats).sum::<f64>() / tokens;
        let residuals = parts
            .iter()
            .map(|part| (part.nats - value * part.tokens as f64).powi(2));
        Score {
            value,
            standard_error: Some(residuals.sum::<f64>().sqrt() / tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_error_of_a_share() {
        let mut scores = vec![0.0; 20];
        scores[..4].fill(1.0);
        let score = Score::mean(&scores);
        let error = score.standard_error.expect("an error");
        assert!((score.value - 0.2).abs() < 1e-15);
        assert!((error - (0.16_f64 / 20.0).sqrt()).abs() < 1e-15);
        assert_eq!(Score::mean(&[]).value, 0.0);
    }

    #[test]
    fn a_long_output_weighs_as_many_tokens_as_it_has() {
        let part = |nats, tokens| LogLikelihood { nats, tokens };
        let score = LogLikelihood::score(&[part(-9.0, 3), part(-1.0, 1), part(0.0, 0)]);
        assert_eq!(score.value, -2.5);
        // Residuals 1.5 short and 1.5 over, of 4 tokens.
        let error = score.standard_error.expect("an error");
        assert!((error - 4.5_f64.sqrt() / 4.0).abs() < 1e-15, "{error}");
        let even = LogLikelihood::score(&[part(-2.0, 2), part(-4.0, 4)]);
        assert_eq!((even.value, even.standard_error), (-1.0, Some(0.0)));
        assert_eq!(LogLikelihood::score(&[]).value, 0.0);
    }
}
