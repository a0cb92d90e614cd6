//! Decisions proved from parts of rows, held to those of whole rows and to the distributions aimed at.

mod case;
mod chain;
mod enumeration;
mod random;
mod refusals;
mod shares;
mod sweep;
mod ties;
