//! What requests measured of acceptance and times, kept for the next of their kind.

use speculation::drafting::{Drafting, TreeShape};
use speculation::methods::Choice;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use crate::Recent;
use crate::pairs::{DraftModel, Measured};

/// Most kinds of requests remembered; the one heard of the longest time ago makes room.
const MOST: usize = 64;

/// Temperatures from here on are one class.
const HOTTEST: f32 = 2.0;

/// Requests whose drafts are alike: acceptance differs between the others, and a draft that is made
/// without the shared noise must not share an estimate with one that is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EstimateKind {
    /// The draft model; none while no drafter is known.
    draft_model: Option<DraftModel>,
    drafting: Drafting,
    verification: Verification,
    target: TargetDistribution,
    tree: TreeShape,
    /// Temperature in quarters, rounded up so that only 0 is greedy.
    quarters: u32,
}

impl EstimateKind {
    /// Returns the kind of requests of `method` at `temperature` with `draft_model`.
    pub(crate) fn of(method: &Choice, temperature: f32, draft_model: Option<&DraftModel>) -> Self {
        Self {
            draft_model: draft_model.cloned(),
            drafting: method.drafting,
            verification: method.verification,
            target: method.target,
            tree: method.tree,
            quarters: (temperature.min(HOTTEST) * 4.0).ceil() as u32,
        }
    }
}

/// What requests of one model group measured, to begin sessions from.
pub(crate) type Estimates = Recent<EstimateKind, Measured, MOST>;

#[cfg(test)]
mod tests {
    use speculation::goodput::{Estimator, MeasuredRound};
    use speculation::methods::{MethodSpec, Setup, names};

    use super::*;

    fn kind(drafting: Drafting, tree: TreeShape, temperature: f32) -> EstimateKind {
        let spec = MethodSpec::default()
            .with("drafting", names::of_drafting(drafting))
            .with("tree", names::of_tree(tree));
        of(&spec, temperature)
    }

    fn of(spec: &MethodSpec, temperature: f32) -> EstimateKind {
        let method = Choice::resolve(spec, Setup::at(temperature)).expect("a method");
        EstimateKind::of(&method, temperature, None)
    }

    /// A request of `kind` with so many rounds, all of whose drafts were accepted. Returns the acceptance of its kind.
    fn request(estimates: &Estimates, kind: EstimateKind, rounds: u32) -> f64 {
        let mut session = estimates.find(kind.clone()).rounds.begin(0.0, true);
        for _ in 0..rounds {
            session.observe(MeasuredRound {
                levels: 4,
                nodes: 4,
                accepted: 4,
                ..Default::default()
            });
        }
        known(estimates, kind)
    }

    /// The acceptance of a kind.
    fn known(estimates: &Estimates, kind: EstimateKind) -> f64 {
        estimates.find(kind).rounds.acceptance()
    }

    /// What one request of a kind measures of costs, the others of the kind know.
    #[test]
    fn requests_of_a_kind_share_what_rounds_cost() {
        let estimates = Estimates::default();
        let kind = kind(Drafting::Model, TreeShape::Chain, 1.0);
        let [mut first, second] = [kind.clone(), kind].map(|kind| estimates.find(kind).rounds);
        let took = Some(std::time::Duration::from_millis(5));
        first.observe_alone(16, took);
        first.observe(MeasuredRound {
            levels: 4,
            nodes: 4,
            accepted: 4,
            draft: took,
            verify: took,
            ..Default::default()
        });
        assert!(first.costs().is_some());
        assert_eq!(first.costs(), second.costs());
    }

    #[test]
    fn only_requests_alike_share_an_estimate() {
        let estimates = Estimates::default();
        let chain = |temperature| kind(Drafting::Model, TreeShape::Chain, temperature);
        let fresh = Estimator::default().acceptance();
        let of_five = request(&estimates, chain(1.0), 5);
        assert!(of_five > fresh);
        assert_eq!(known(&estimates, chain(0.9)), of_five);
        for other in [
            chain(0.0),
            chain(0.7),
            kind(Drafting::MaxGram, TreeShape::Chain, 1.0),
            kind(Drafting::Model, TreeShape::Comb(4), 1.0),
        ] {
            let acceptance = known(&estimates, other.clone());
            assert_eq!(acceptance, fresh, "{other:?}");
        }
        // Verified alike, and accepted differently.
        let lossy = |alpha: f64| of(&MethodSpec::new("lossy").with("alpha", alpha), 1.0);
        assert_eq!(lossy(0.5), lossy(0.5));
        assert_ne!(lossy(0.5), lossy(0.25));
        let rejection = of(&MethodSpec::new("rejection"), 1.0);
        assert_eq!(lossy(0.5).verification, rejection.verification);
        assert_ne!(lossy(0.5), rejection);
        assert_ne!(chain(0.0), chain(0.01));
        // The next request of the kind goes on from there.
        assert!(request(&estimates, chain(1.0), 1) > of_five);
    }

    #[test]
    fn the_oldest_estimate_makes_room() {
        let estimates = Estimates::default();
        let comb = |siblings| kind(Drafting::Model, TreeShape::Comb(siblings), 1.0);
        let alternates = |count| kind(Drafting::Model, TreeShape::Alternates(count), 1.0);
        let kinds: Vec<_> = (2..=64).map(comb).chain((1..=2).map(alternates)).collect();
        assert_eq!(kinds.len(), MOST + 1);
        let fresh = Estimator::default().acceptance();
        let mut found = Vec::new();
        for kind in &kinds {
            found.push(request(&estimates, kind.clone(), 3));
            // Still in use.
            request(&estimates, kinds[0].clone(), 0);
        }
        assert!(found.iter().all(|&acceptance| acceptance > fresh));
        assert_eq!(known(&estimates, kinds[0].clone()), found[0]);
        assert_eq!(known(&estimates, kinds[2].clone()), found[2]);
        // It made room; what is asked for now takes its place anew.
        assert_eq!(known(&estimates, kinds[1].clone()), fresh);
        assert_eq!(estimates.0.lock().len(), MOST);
    }
}
