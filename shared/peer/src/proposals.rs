//! Draft tokens that are proposed to a round while it is answered.

use std::time::Instant;

use model::engine::EngineHandle;
use speculation::pending::ProposedTree;
use tokio::sync::mpsc;

/// Proposals that wait for the engine's next forward: as many as a draft model ten times as fast makes during one, and more.
/// One that finds no place is lost.
const WAITING: usize = 32;

/// The receiving end of a round's proposals. The engine's thread takes them between two forwards, and waits for nobody.
#[derive(Debug, Default)]
pub struct Proposals(Option<mpsc::Receiver<(Instant, ProposedTree)>>);

/// The sending end of a round's proposals.
#[derive(Debug)]
pub(crate) struct Proposing<'a> {
    sender: mpsc::Sender<(Instant, ProposedTree)>,
    engine: Option<&'a EngineHandle>,
}

/// Returns both ends for a round that begins now; `engine` may wait for what is proposed.
pub(crate) fn proposals(engine: Option<&EngineHandle>) -> (Proposing<'_>, Proposals) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Proposing { sender, engine }, receiver.into())
}

impl Proposing<'_> {
    /// Hands a proposal to the round, if that takes any and keeps up with them.
    pub(crate) fn offer(&self, proposed: ProposedTree) {
        if self.sender.try_send((Instant::now(), proposed)).is_ok()
            && let Some(engine) = self.engine
        {
            engine.wake();
        }
    }
}

impl From<mpsc::Receiver<(Instant, ProposedTree)>> for Proposals {
    /// What comes through a channel, each with when it came.
    fn from(receiver: mpsc::Receiver<(Instant, ProposedTree)>) -> Self {
        Self(Some(receiver))
    }
}

impl Proposals {
    /// Returns the next proposal and when it came, if one has.
    pub fn take(&mut self) -> Option<(Instant, ProposedTree)> {
        self.0.as_mut()?.try_recv().ok()
    }
}
