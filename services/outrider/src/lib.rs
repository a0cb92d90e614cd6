//! The command line of `outrider`: `serve`, `generate`, `chat`, `models`, `bench`, `score`, `quantize`,
//! `methods`, `config`, `doctor`, `health`, `completions`, `man`.
//!
//! What is public is what another program needs that runs or asks the three services as these commands do:
//! their configuration, a cluster in one process, connections, and flags.

pub mod args;
mod bench;
mod calibrate;
mod chat;
mod check;
mod cli;
pub mod cluster;
pub mod config;
mod config_command;
pub mod connect;
mod doctor;
mod failure;
mod generate;
pub mod global;
pub mod interrupt;
mod man;
pub mod measure;
mod methods;
mod models;
mod process;
pub mod program;
pub mod progress;
pub mod prompts;
mod quantize;
mod score;
mod serve;
mod wrong_value;

pub use cli::main;
