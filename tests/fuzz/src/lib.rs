//! The merger's framing of Hadoop's protocols, compiled without the rest of the merger: its tables (polars) would have to
//! be built with coverage too. The modules are the merger's own files; only the structure that holds both is told again.

#[path = "../../../merger/src/framing/mod.rs"]
pub mod framing;
#[path = "../../../merger/src/joined.rs"]
pub mod joined;

pub mod join {
    //! What framing reads of a direction (merger/src/join).

    #[path = "../../../../merger/src/join/content.rs"]
    pub mod content;

    use crate::joined::Stream;
    use content::Content;

    /// One direction of a connection, put together.
    #[derive(Clone, Debug, Default)]
    pub struct Direction {
        /// Its payload in time.
        pub stream: Stream,
        /// What was kept of it.
        pub content: Content,
        /// Offset behind its last byte.
        pub end: u64,
    }
}
