//! What all writers of a host may take of its disk: one budget, of which each has a share.
//!
//! Behind feature `agent`. The Java agent computes the same (`hadoop-patches`, option `limit=`): a change here is one there.

use std::io;
use std::path::Path;

use nix::sys::statvfs::{Statvfs, statvfs};

/// The budget of a host on a large file system.
pub const MAX_DEFAULT_BYTES: u64 = 5 << 30;
/// On a smaller one it is this part of the file system; as much stays free.
pub const PART_OF_FILE_SYSTEM: u64 = 10;
/// Shares are counted in sixteenths.
const PARTS: u64 = 16;
/// Of the sniffer: packets.
const PACKETS: u64 = 10;
/// Of dumpingd: sockets and their owners.
const SOCKETS: u64 = 2;
/// Of all JVMs together.
const JVM: u64 = 4;
/// Of the JVMs of one user.
const JVM_OF_ONE_USER: u64 = 1;

/// What Hadoptic's files may take on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All files of all writers together, bytes.
    pub total_bytes: u64,
    /// What stays free on the file system, whoever fills it, bytes.
    pub keep_free_bytes: u64,
}

impl Budget {
    /// 5 GiB, or a tenth of the folder's file system where that is less; a tenth of it stays free. The folder need not be
    /// there yet.
    ///
    /// # Errors
    /// If the file system does not tell its size.
    pub fn default_for(folder: &Path) -> io::Result<Self> {
        let about = file_system(folder)?;
        let part = about.blocks().saturating_mul(about.fragment_size()) / PART_OF_FILE_SYSTEM;
        Ok(Self { total_bytes: part.min(MAX_DEFAULT_BYTES), keep_free_bytes: part })
    }

    /// The sniffer's share, bytes.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.part(PACKETS)
    }

    /// dumpingd's share, bytes.
    #[must_use]
    pub fn sockets(&self) -> u64 {
        self.part(SOCKETS)
    }

    /// The share of all JVMs together, bytes.
    #[must_use]
    pub fn jvm(&self) -> u64 {
        self.part(JVM)
    }

    /// What the JVMs of one user may take of that, bytes.
    #[must_use]
    pub fn jvm_of_one_user(&self) -> u64 {
        self.part(JVM_OF_ONE_USER)
    }

    fn part(&self, parts: u64) -> u64 {
        self.total_bytes / PARTS * parts
    }
}

/// What an ordinary user may still write on the file system of a folder, bytes.
///
/// # Errors
/// If the file system does not tell.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let about = file_system(folder)?;
    Ok(about.blocks_available().saturating_mul(about.fragment_size()))
}

/// That of the folder, or of the nearest one above it that is there.
fn file_system(folder: &Path) -> io::Result<Statvfs> {
    let folder = std::path::absolute(folder)?;
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    statvfs(there).map_err(|error| io::Error::other(format!("{}: {error}", there.display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_shares_of_a_budget_are_all_of_it() {
        let budget = Budget { total_bytes: MAX_DEFAULT_BYTES, keep_free_bytes: 0 };
        assert_eq!(budget.packets() + budget.sockets() + budget.jvm(), budget.total_bytes);
        assert_eq!(budget.packets(), 5 * budget.total_bytes / 8);
        assert_eq!(budget.jvm_of_one_user(), budget.total_bytes / 16);
        assert_eq!(Budget { total_bytes: u64::MAX, ..budget }.packets() % PARTS, 6, "nothing overflows");
    }

    #[test]
    fn the_default_is_a_tenth_of_the_file_system_even_where_the_folder_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let about = statvfs(folder.path()).unwrap();
        let size = about.blocks() * about.fragment_size();
        let budget = Budget::default_for(&folder.path().join("not/there/yet")).unwrap();
        assert_eq!(budget.keep_free_bytes, size / 10);
        assert_eq!(budget.total_bytes, (size / 10).min(5 << 30));
        assert!(free_bytes(&folder.path().join("not")).unwrap() <= size);
    }
}
