//! Traces of requests, as a collector gets them.

mod collector;
mod export;
mod faults;
mod https;
mod peers;
mod privacy;
mod requests;
mod watched;
