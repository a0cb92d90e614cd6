//! Which sessions may go on with the engine that answers now, and what parts them.

use std::sync::Arc;

use tonic::Status;
use wire::failure::Failure;
use wire::open::SessionSpec;
use wire::{digest, v1};

use super::Remote;
use crate::target::VerifySession;

impl Remote {
    /// What the engine's numbers depend on now.
    pub(crate) fn numerics(&self) -> v1::Numerics {
        self.standing.numerics()
    }

    /// Takes note that a stream was opened for `session` by a coordinator which knows of these numerics.
    ///
    /// # Errors
    /// If the engine became another one just now.
    pub(crate) fn opened(&self, session: &mut VerifySession, numerics: &str) -> Result<(), Status> {
        let memory = &mut session.memory;
        let generation = self.standing.opened(numerics)?;
        if memory.generation.replace(generation) != Some(generation) {
            // What another engine read and said is nothing to this one.
            (memory.read, memory.last) = (0, None);
        }
        memory.salt = salt(&session.spec);
        Ok(())
    }

    /// Lets the next round of `session` in, before which there is output or none.
    ///
    /// # Errors
    /// If another engine has taken the place of the one that it began with, or its tenant would share what the engine
    /// keeps with others and must not.
    pub(crate) fn admit(&self, session: &VerifySession, has_output: bool) -> Result<(), Status> {
        let spec = &session.spec;
        if !self.caps.parts_tenants && !self.shares_tenants && !spec.tenant.is_empty() {
            let why = "the engine does not part what it keeps of one tenant from what it keeps of others, and this \
                       request has a tenant; verifier.remote.share_tenants allows it";
            return Err(Failure::NotOffered.status(why));
        }
        let generation = session.memory.generation.unwrap_or_default();
        self.standing.admit(generation, !has_output)
    }
}

/// What parts the sessions of one tenant from those of others, and a session without a tenant from all.
fn salt(spec: &SessionSpec) -> Arc<str> {
    let (kind, of) = match spec.tenant.as_str() {
        "" => ("session", &spec.id[..]),
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
        ];
        let salts = salts.map(|spec| salt(&spec));
        assert_eq!(salts[0], salts[1]);
        for (at, one) in salts.iter().enumerate().skip(1) {
            assert!(!salts[at + 1..].contains(one), "{salts:?}");
        }
    }
}
