//! Which replica of a peer a session wants.

use speculation::session::Peer;
use wire::v1::PeerDescription;

use super::Endpoint;
use crate::admitted::{DrafterRequirements, VerifierRequirements};

/// The peer that a session wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) peer: Peer,
    /// The session's name, which says which of several.
    pub(crate) session: [u8; 16],
    /// What it must be able to do; none where it is only asked who it is.
    pub(crate) requirements: Option<Requirements>,
}

/// What a peer must be able to do for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requirements {
    Drafter(DrafterRequirements),
    Verifier(VerifierRequirements),
}

impl Requirements {
    fn are_met_by(self, peer: &PeerDescription) -> bool {
        let checked = match self {
            Self::Drafter(required) => required.check(peer),
            Self::Verifier(required) => required.check(peer),
        };
        checked.is_ok()
    }
}

impl Wanted {
    /// Whether `endpoint` is not known to fall short.
    pub(super) fn may_be(&self, endpoint: &Endpoint) -> bool {
        let known = self.requirements.zip(endpoint.description());
        known.is_none_or(|(requirements, known)| requirements.are_met_by(&known))
    }
}
