//! Traces of requests, as a collector gets them.

mod collector;
mod export;
mod faults;
mod privacy;
mod requests;
mod watched;
