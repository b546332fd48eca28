//! Connections, messages and processing spans until their rows are written. A long capture has millions of them: some megabytes of each lie in
//! memory, the rest in temporary files, and their texts in memory once.

mod connections;
mod messages;
mod read;
mod spans;

pub use connections::{Connection, Connections, Ends, Figures};
pub(crate) use messages::MessageRecord;
pub use messages::{Message, Messages};
pub(crate) use read::{MessageLog, ReadMessages};
pub use spans::{ProcessingSpan, Spans};
