//! What `merger digest` left out of a folder (a capture's, or its `job/`), so that a merge of digests says so too: `left-out.json`, an
//! object of reasons by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use trace::files;
use trace::folder::{Folder, Kind};

use crate::capture::host::is_damage;

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

/// Those of a folder; none, if it has no such file. One that cannot be understood is itself what is left out.
///
/// # Errors
/// If there is no way to the file.
pub fn read(folder: &Folder) -> io::Result<Reasons> {
    if folder.kind(LEFT_OUT)? != Some(Kind::File) {
        return Ok(Reasons::new());
    }
    let understood = |file| Ok(serde_json::from_slice(&files::read_whole(file)?)?);
    match folder.file(LEFT_OUT).and_then(understood) {
        Err(error) if is_damage(&error) => Ok([(LEFT_OUT.to_owned(), error.to_string())].into()),
        read => read,
    }
}
