//! Certificates and tokens over real sockets, sound and unsound.

mod authority;
mod expiry;
mod handshakes;
mod log;
mod opening;
mod receiving;
mod reload;
mod served;
mod settings;
mod tokens;
