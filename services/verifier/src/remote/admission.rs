//! Decides which sessions may use the engine that answers now, and separates their tenants in its prefix cache.

use std::sync::Arc;

use peer::{HeldSession, Role};
use tonic::Status;
use wire::failure::Failure;
use wire::open::{EVERYONE, SessionSpec};
use wire::{digest, v1};

use super::{Remote, RemoteMemory};

impl Remote {
    /// Returns the engine's numerics as they are now.
    pub(crate) fn numerics(&self) -> v1::Numerics {
        self.standing.numerics()
    }

    /// Records that a coordinator, which expects these `numerics`, opened a stream for `session`.
    ///
    /// # Errors
    /// If the engine's numerics have changed since the coordinator asked for them.
    pub(crate) fn opened(
        &self,
        session: &mut HeldSession<impl Role<Memory = RemoteMemory>>,
        numerics: &str,
    ) -> Result<(), Status> {
        let memory = &mut session.memory;
        let generation = self.standing.opened(numerics)?;
        if memory.generation.replace(generation) != Some(generation) {
            // What another engine read and said is nothing to this one.
            (memory.read, memory.last) = (0, None);
        }
        memory.salt = salt(&session.spec);
        Ok(())
    }

    /// Checks that `session` may ask the engine for a round; `has_output` tells whether output precedes the round.
    ///
    /// # Errors
    /// If another engine has replaced the one that the session began with, or if the session has a tenant and the engine's
    /// prefix cache does not separate tenants.
    pub(crate) fn admit(
        &self,
        session: &HeldSession<impl Role<Memory = RemoteMemory>>,
        has_output: bool,
    ) -> Result<(), Status> {
        let spec = &session.spec;
        let is_named = !["", EVERYONE].contains(&spec.tenant.as_str());
        if !self.caps.parts_tenants && !self.shares_tenants && is_named {
            let why = "the engine's prefix cache does not separate tenants, and this request has a tenant; \
                       verifier.remote.share_tenants allows it";
            return Err(Failure::NotOffered.status(why));
        }
        let generation = session.memory.generation.unwrap_or_default();
        self.standing.admit(generation, !has_output)
    }
}

/// Returns the salt of a session: one for all sessions of a tenant that has a name, and one for each other session. Clients
/// that name no tenant are one where a prefix cache is switched on by the operator; an engine's is on without being asked.
fn salt(spec: &SessionSpec) -> Arc<str> {
    let (kind, of) = match spec.tenant.as_str() {
        "" | EVERYONE => ("session", &spec.id[..]),
        tenant => ("tenant", tenant.as_bytes()),
    };
    let hash = digest::short(&[kind.as_bytes(), of].concat());
    format!("{hash:016x}").into()
}

#[cfg(test)]
mod tests {
    use wire::open::from_wire;

    use super::*;

    fn spec(id: u8, tenant: &str) -> SessionSpec {
        let description = v1::PeerDescription {
            vocab_size: 8,
            logits_size: 8,
            context_len: 8,
            ..wire::describe::capabilities()
        };
        let open = v1::Open {
            session_id: vec![id; 16],
            prompt_token_ids: vec![1],
            vocab_size: 8,
            epoch: 1,
            tenant: tenant.to_owned(),
            verification: v1::Verification::Coupled.into(),
            proposal_form: v1::ProposalForm::Point.into(),
            ..Default::default()
        };
        from_wire(open, &description).expect("a session")
    }

    #[test]
    fn sessions_of_a_tenant_have_a_salt_together_and_others_one_each() {
        let salts = [
            spec(1, "a"),
            spec(2, "a"),
            spec(1, "b"),
            spec(1, ""),
            spec(2, ""),
            spec(3, EVERYONE),
            spec(4, EVERYONE),
        ];
        let salts = salts.map(|spec| salt(&spec));
        assert_eq!(salts[0], salts[1]);
        for (at, one) in salts.iter().enumerate().skip(1) {
            assert!(!salts[at + 1..].contains(one), "{salts:?}");
        }
    }
}
