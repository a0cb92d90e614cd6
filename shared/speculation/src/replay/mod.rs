//! What a method would do on recorded laws: acceptance, deferral, distances, without a model.
//!
//! A recording holds draft blocks of real text, and at each draft token both models' laws. From these
//! follows, for any target distribution and verification, the probability of every outcome: nothing
//! is drawn here, everything is added up in double precision through the functions that serve.
//!
//! | module | what it holds |
//! |---|---|
//! | `recorded` | what is recorded of a position, and when it is none |
//! | `cut` | from whole laws to what is recorded of them |
//! | `rows` | from what is recorded to the laws that are evaluated |
//! | `evaluation` | one target distribution and verification over many blocks |
//!
//! Laws are cut to their most likely tokens. The rest of the vocabulary is evaluated as two more
//! tokens: together those that the draft model finds likelier, and together the others. So the
//! overlap of q and p is exact, and anything else up to the mass of the rest. What a deferral rule judges
//! by (maximum, entropy, cross entropy) is recorded of the whole laws.

mod cut;
mod evaluation;
mod recorded;
mod rows;

pub use cut::{WholeLaw, cut};
pub use evaluation::{Evaluation, Figures};
pub use recorded::{BadRecord, RecordedBlock, RecordedLaw, RecordedPosition, Rest};
