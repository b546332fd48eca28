//! `store-and-forward`: whole packets, queued at their outputs, dropped where these are full; defined in `docs/fabric.md`.

mod config;

pub use config::StoreAndForwardConfig;
