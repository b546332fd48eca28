//! Copies of files that are as readable or private as what they were made from.

use std::fs::File;
use std::io;
use std::path::Path;

/// Copies an open file as it is to a new one.
pub(crate) fn copy(mut input: File, to: &Path) -> io::Result<()> {
    let mut file = create(&input, to)?;
    io::copy(&mut input, &mut file)?;
    Ok(())
}

/// Makes a file with the permissions of `input`.
pub(crate) fn create(input: &File, to: &Path) -> io::Result<File> {
    let permissions = input.metadata()?.permissions();
    let file = File::create_new(to)?;
    file.set_permissions(permissions)?;
    Ok(file)
}
