//! Files of a `job/` folder that were left out when it was copied, so that a merge of the copy says so too: `left-out.json`, an object of
//! reasons by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use trace::files;
use trace::folder::{Folder, Kind};

/// The name of the file.
pub const LEFT_OUT: &str = "left-out.json";

/// Reasons by the names of files.
pub type Reasons = BTreeMap<String, String>;

/// Writes them, if there are any, into a folder that has no such file.
///
/// # Errors
/// If they cannot be written.
pub fn write(folder: &Path, reasons: &Reasons) -> io::Result<()> {
    if reasons.is_empty() {
        return Ok(());
    }
    serde_json::to_writer(File::create_new(folder.join(LEFT_OUT))?, reasons).map_err(io::Error::other)
}

/// Those of a folder; none, if it has no such file.
///
/// # Errors
/// If the file cannot be read, or is none of these.
pub fn read(folder: &Folder) -> io::Result<Reasons> {
    if folder.kind(LEFT_OUT)? != Some(Kind::File) {
        return Ok(Reasons::new());
    }
    Ok(serde_json::from_slice(&files::read_whole(folder.file(LEFT_OUT)?)?)?)
}
