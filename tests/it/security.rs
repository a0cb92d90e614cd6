//! The three services with certificates and tokens.

// The authority of the tests in `ops`, which makes more kinds of certificates than are needed here.
#[allow(dead_code)]
#[path = "../../shared/ops/tests/security/authority.rs"]
pub(crate) mod authority;
mod credentials;
mod limits;
mod messages;
mod tenants;
mod world;
