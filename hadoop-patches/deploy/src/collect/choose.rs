//! What of that which a host lists is fetched: users write into their folders what they like, and may not fill this disk.

use std::collections::BTreeMap;

use trace::budget::Budget;

use crate::answer::HostAnswer;

/// Beyond its share, a host may have this part more: its limits are looked at every few seconds only.
const MARGIN_PART: u64 = 4;
const MARGIN_BYTES: u64 = 16 << 20;

/// A file that a host lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its length, bytes.
    pub size: u64,
    /// What it takes of the host's disk, bytes: less than its length where it has holes, or is packed.
    pub allocated: u64,
}

impl Listed {
    /// Mostly holes: no JVM with the agent writes such a file.
    fn is_sparse(self) -> bool {
        self.size > 1 << 20 && self.allocated < self.size / 16
    }
}

/// What may be fetched of a host, bytes; `None` = all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of everything.
    pub host: Option<u64>,
    /// Of all JVMs.
    pub jvms: Option<u64>,
    /// Of the JVMs of one user.
    pub user: Option<u64>,
}

impl Limits {
    /// As the operator says (0 = all), else by what the host was allowed to record (0 = anything); `disk_bytes` is the size of
    /// its file system. What the agents themselves have recorded is not cut by default: only JVMs are anybody's.
    #[must_use]
    pub fn of(max_bytes: Option<u64>, disk_limit: Option<u64>, disk_bytes: u64) -> Self {
        let allowed = match (max_bytes, disk_limit) {
            (Some(0), _) | (None, Some(0)) => return Self::default(),
            (Some(bytes), _) => Budget { total_bytes: bytes, keep_free_bytes: 0 },
            (None, Some(bytes)) => Budget { total_bytes: bytes, keep_free_bytes: 0 },
            (None, None) => {
                Budget { total_bytes: trace::budget::MAX_DEFAULT_BYTES.min(disk_bytes / 10), keep_free_bytes: 0 }
            }
        };
        let more = |bytes: u64| bytes.saturating_add(bytes / MARGIN_PART).saturating_add(MARGIN_BYTES);
        Self { host: max_bytes, jvms: Some(more(allowed.jvm())), user: Some(more(allowed.jvm_of_one_user())) }
    }
}

/// Files by the folder in which they lie ("" = the agents', "jvm/1000" = a user's), then by name.
pub type Folders = BTreeMap<String, BTreeMap<String, Listed>>;

/// What is left on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOnHost {
    /// By folder: files and bytes.
    pub folders: BTreeMap<String, (u64, u64)>,
}

/// What a host lists, as far as its names can be those of a capture.
#[must_use]
pub fn listed(answer: &HostAnswer) -> Folders {
    let mut folders = Folders::new();
    for line in answer.all("found") {
        let words: Vec<&str> = line.split(' ').collect();
        let [size, allocated, folder, name] = words[..] else { continue };
        let (Ok(size), Ok(allocated)) = (size.parse(), allocated.parse()) else { continue };
        let folder = if folder == "." { "" } else { folder };
        if is_plain(name) && (folder.is_empty() || is_of_jvms(folder)) {
            folders.entry(folder.to_owned()).or_default().insert(name.to_owned(), Listed { size, allocated });
        }
    }
    folders
}

/// What a script lists of one folder: "SIZE NAME".
#[must_use]
pub fn sizes(answer: &HostAnswer) -> BTreeMap<String, u64> {
    let line = |text: &str| {
        let (size, name) = text.split_once(' ')?;
        is_plain(name).then(|| Some((name.to_owned(), size.parse().ok()?)))?
    };
    answer.all("found").filter_map(line).collect()
}

/// Takes out of the listed files what goes beyond the limits: of a user's first what is mostly holes, then the largest.
#[must_use]
pub fn within(folders: &mut Folders, limits: Limits) -> LeftOnHost {
    let mut left = LeftOnHost::default();
    let mut users: BTreeMap<String, u64> = BTreeMap::new();
    let (mut host, mut jvms) = (0_u64, 0_u64);
    let fits =
        |limit: Option<u64>, so_far: u64, size: u64| limit.is_none_or(|limit| so_far.saturating_add(size) <= limit);
    for (folder, files) in folders.iter_mut() {
        let user = users.entry(user_of(folder).to_owned()).or_default();
        let of_jvms = !folder.is_empty();
        let mut order: Vec<(String, Listed)> = files.iter().map(|(name, file)| (name.clone(), *file)).collect();
        if of_jvms {
            order.sort_by_key(|(_, file)| (file.is_sparse(), file.size));
        }
        for (name, file) in order {
            let taken = fits(limits.host, host, file.size)
                && (!of_jvms || fits(limits.jvms, jvms, file.size) && fits(limits.user, *user, file.size));
            if taken {
                host = host.saturating_add(file.size);
                if of_jvms {
                    jvms = jvms.saturating_add(file.size);
                    *user = user.saturating_add(file.size);
                }
            } else {
                files.remove(&name);
                let (count, bytes) = left.folders.entry(folder.clone()).or_default();
                *count += 1;
                *bytes = bytes.saturating_add(file.size);
            }
        }
    }
    left
}

/// "1000" of "jvm/1000" and of "jvm/1000.2"; "" of the agents' folder.
#[must_use]
pub fn user_of(folder: &str) -> &str {
    folder.strip_prefix("jvm/").and_then(|name| name.split('.').next()).unwrap_or_default()
}

fn is_of_jvms(folder: &str) -> bool {
    let Some(name) = folder.strip_prefix("jvm/") else { return false };
    let (uid, number) = name.split_once('.').unwrap_or((name, "1"));
    let digits = |text: &str| (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(uid) && digits(number)
}

/// A name that stays in the folder where it is put, whatever a host says.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '-'])
        && name.len() <= 200
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._@:+%-".contains(c))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn folders(files: &[(&str, &str, u64, u64)]) -> Folders {
        let mut folders = Folders::new();
        for (folder, name, size, allocated) in files {
            let file = Listed { size: *size, allocated: *allocated };
            folders.entry((*folder).to_owned()).or_default().insert((*name).to_owned(), file);
        }
        folders
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_sparse_file_gives_way_to_what_is_whole_and_other_users_lose_nothing() {
        let limits = Limits::of(None, None, 1 << 40);
        let mut all = folders(&[
            ("", "packets-eth0.hpk", 9 * GIB, 9 * GIB),
            ("jvm/1000", "jvm-1-1.jsonl", 3 * GIB, 4096),
            ("jvm/1000", "jvm-2-2.jsonl", GIB / 4, GIB / 4),
            ("jvm/1000.1", "jvm-3-3.jsonl", GIB / 4, GIB / 4),
            ("jvm/1001", "jvm-4-4.jsonl", GIB / 4, GIB / 4),
        ]);
        let left = within(&mut all, limits);
        let expected = [("jvm/1000".to_owned(), (1, 3 * GIB)), ("jvm/1000.1".to_owned(), (1, GIB / 4))];
        assert_eq!(left.folders, expected.into_iter().collect(), "a user's second folder is no second share");
        assert!(all[""].contains_key("packets-eth0.hpk"), "what the agents recorded is whole");
        assert!(all["jvm/1000"].contains_key("jvm-2-2.jsonl") && all["jvm/1001"].contains_key("jvm-4-4.jsonl"));
    }

    #[test]
    fn the_operator_may_want_all_or_less() {
        assert_eq!(Limits::of(Some(0), Some(GIB), GIB), Limits::default());
        assert_eq!(Limits::of(None, Some(0), GIB), Limits::default());
        let mut all = folders(&[("", "packets-a.hpk", 700, 700), ("", "packets-b.hpk", 700, 700)]);
        let left = within(&mut all, Limits::of(Some(1000), None, GIB));
        assert_eq!(left.folders[""], (1, 700));
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_listed() {
        let lines = "found\t1 1 . ../x\nfound\t1 1 jvm/../.. a\nfound\t1 1 jvm/1000 jvm-1-1.jsonl\nfound\t1 1 jvm/10x a\nfound\t1\n\
                     found\t99999999999999999999 1 . a\nend\tlist\n";
        let answer = HostAnswer::parse("list", lines.as_bytes()).unwrap();
        assert_eq!(listed(&answer), folders(&[("jvm/1000", "jvm-1-1.jsonl", 1, 1)]));
    }
}
