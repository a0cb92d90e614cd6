//! The three services with certificates and tokens.

// The authority of the tests in `server`, which makes more kinds of certificates than are needed here.
#[allow(dead_code)]
#[path = "../../shared/server/tests/security/authority.rs"]
pub(crate) mod authority;
mod credentials;
mod limits;
mod messages;
mod tenants;
mod world;
