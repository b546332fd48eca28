//! Hadoop's scripts, which no jar holds: a launcher of the lab's own.
//!
//! Daemons, tools and jobs are started by `launcher.sh` under the names `hadoop`, `hdfs`, `yarn` and `mapred`. It reads
//! `hadoop-env.sh`, `yarn-env.sh` and `mapred-env.sh` with the variables of each version, in the order of the version's own
//! scripts, so that whatever is deployed by lines in these files works here as it does on a real cluster.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::error::{Context, Result};

use crate::distribution::Distribution;
use crate::layout::HOME;

/// The names under which the launcher is called.
const PROGRAMS: [&str; 4] = ["hadoop", "hdfs", "yarn", "mapred"];

/// Puts Hadoop in its place on a host of which `root` is what differs from the machine: the launcher, and links to the jars.
///
/// # Errors
/// If files cannot be made.
pub fn install(distribution: Distribution, cache: &Path, root: &Path) -> Result<()> {
    let home = root.join(HOME.trim_start_matches('/'));
    let (bin, libexec) = (home.join("bin"), home.join("libexec"));
    for folder in [&bin, &libexec] {
        fs::create_dir_all(folder).at("cannot make", folder)?;
    }
    for program in PROGRAMS.iter().filter(|program| distribution.major() > 1 || **program == "hadoop") {
        let path = bin.join(program);
        fs::write(&path, include_str!("launcher.sh")).at("cannot write", &path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).at("cannot open up", &path)?;
    }
    let layout = format!(
        "LAYOUT_MAJOR={}\nLAYOUT_CLASS_PATH='{}'\n",
        distribution.major(),
        distribution.class_path(cache).join(":")
    );
    let path = libexec.join("layout.sh");
    fs::write(&path, layout).at("cannot write", &path)?;
    symlink(distribution.jars(cache), home.join("lib")).at("cannot fill", &home)?;
    Ok(())
}
