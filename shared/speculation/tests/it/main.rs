//! The mathematics, held to its definitions by exact enumeration and to recorded vectors.

mod blocks;
mod cascades;
mod certificate;
mod drafters;
mod drafting;
mod enumeration;
mod golden_blocks;
mod golden_rules;
mod labels;
mod max_gram;
mod methods;
mod model;
mod read;
mod rounds;
mod targets;
mod tree;
mod tree_rejection;
