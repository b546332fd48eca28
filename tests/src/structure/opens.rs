//! Files that are opened without asking what they are and how long.

use std::path::PathBuf;

use super::source::Crate;

/// Ways of the standard library that wait for a FIFO's writer and know no limit.
const UNBOUNDED: [[&str; 2]; 5] =
    [["File", "open"], ["fs", "read"], ["fs", "read_to_string"], ["OpenOptions", "new"], ["File", "options"]];

/// The files of a crate that name one of these ways, with what they name.
#[must_use]
pub fn unbounded_opens(of: &Crate) -> Vec<(PathBuf, String)> {
    let is_unbounded = |path: &[String]| UNBOUNDED.iter().any(|way| path.ends_with(&way.map(str::to_owned)));
    let named = of.modules.iter().flat_map(|module| {
        let imports = module.imports.iter().map(|import| &import.path);
        let paths = module.names.iter().chain(imports).filter(|path| is_unbounded(path));
        paths.map(|path| (of.files[module.file].clone(), path.join("::")))
    });
    named.collect()
}
