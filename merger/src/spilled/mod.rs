//! Lists of records that grow with a capture: of each only some megabytes lie in memory, and what is beyond in a temporary
//! file. The files have no names, and go with the lists.

mod bytes;
mod list;
mod log;
mod record;
mod shared;
mod sorted;

pub(crate) use bytes::ByteLog;
pub(crate) use list::RecordList;
pub(crate) use log::RecordLog;
#[cfg(test)]
pub(crate) use record::read_back;
pub(crate) use record::{Reader, Record, Writer, variant};
pub(crate) use shared::SharedList;
pub(crate) use sorted::{SharedSorter, Sorted, Sorter};
