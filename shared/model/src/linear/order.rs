//! Where outputs stand in a matrix.

/// Outputs of a group, which are computed together.
pub(crate) const GROUP: usize = 32;

/// The order in which a matrix computes its outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputOrder {
    /// As they are given.
    #[default]
    AsGiven,
    /// Two projections of as many outputs each, 32 of the first and 32 of the second in turn, and zeros where
    /// that does not come out even: who computes the one has the other at hand.
    Paired,
}

impl OutputOrder {
    /// Outputs of a matrix that is given `given`.
    pub(super) fn outputs(self, given: usize) -> usize {
        match self {
            Self::AsGiven => given,
            Self::Paired => 2 * (given / 2).next_multiple_of(GROUP),
        }
    }

    /// Where output `output` of `given` stands.
    pub(crate) fn place(self, output: usize, given: usize) -> usize {
        match self {
            Self::AsGiven => output,
            Self::Paired => {
                let half = given / 2;
                let (second, output) = (output / half, output % half);
                (output / GROUP * 2 + second) * GROUP + output % GROUP
            }
        }
    }

    /// The output of `given` that stands at `place`; none where zeros pad.
    pub(super) fn given(self, place: usize, given: usize) -> Option<usize> {
        match self {
            Self::AsGiven => (place < given).then_some(place),
            Self::Paired => {
                let half = given / 2;
                let (group, lane) = (place / GROUP, place % GROUP);
                let output = group / 2 * GROUP + lane;
                (output < half).then_some(group % 2 * half + output)
            }
        }
    }

    /// Groups of 32 outputs that must not go to different threads.
    pub(super) fn inseparable(self) -> usize {
        match self {
            Self::AsGiven => 1,
            Self::Paired => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_32_stand_side_by_side() {
        for half in [1, 31, 32, 33, 96, 100] {
            let (order, given) = (OutputOrder::Paired, 2 * half);
            let outputs = order.outputs(given);
            let mut taken = vec![false; outputs];
            for output in 0..half {
                let [first, second] = [0, half].map(|of| order.place(of + output, given));
                assert_eq!(second, first + GROUP, "{output} of {half}");
                assert_eq!(first / GROUP % 2, 0, "{output} of {half}");
                for place in [first, second] {
                    assert!(!std::mem::replace(&mut taken[place], true), "{place}");
                }
            }
            assert!(outputs < given + 2 * GROUP && outputs.is_multiple_of(2 * GROUP));
        }
        assert_eq!(OutputOrder::AsGiven.outputs(35), 35);
        assert_eq!(OutputOrder::AsGiven.place(34, 35), 34);
    }

    #[test]
    fn every_place_knows_its_output() {
        for order in [OutputOrder::AsGiven, OutputOrder::Paired] {
            for given in [2, 62, 64, 66, 192, 200] {
                let places = order.outputs(given).next_multiple_of(GROUP);
                let mut found = vec![None; places];
                for output in 0..given {
                    found[order.place(output, given)] = Some(output);
                }
                let told: Vec<_> = (0..places).map(|at| order.given(at, given)).collect();
                assert_eq!(told, found, "{order:?} of {given}");
            }
        }
    }
}
