//! What scripts print: lines `key<TAB>value`, and files as a line of facts with their bytes behind it.

use std::collections::BTreeMap;

/// A file of a host, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its path, without symbolic links.
    pub path: String,
    /// Permissions, octal.
    pub mode: String,
    /// "user:group".
    pub owner: String,
    /// As whom the file may be replaced: the only user but root who can change what stands on the way there, 0 = none.
    pub keeper: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Everything that a script printed.
#[derive(Clone, Debug, Default)]
pub struct HostAnswer {
    values: Vec<(String, String)>,
    /// Files by name; `None`: it is not there.
    pub files: BTreeMap<String, Option<RemoteFile>>,
    /// Who may make the files that are not there, by name, as [`RemoteFile::keeper`]; `None` = several users could.
    pub missing: BTreeMap<String, Option<u32>>,
}

impl HostAnswer {
    /// Takes apart what a script printed. A script that got to its end says so in its last line.
    ///
    /// # Errors
    /// If it is cut off.
    pub fn parse(script: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut answer = Self::default();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let Some((key, value)) = line.split_once('\t') else { continue };
            match key {
                "file" => {
                    let fields: Vec<&str> = value.split('\t').collect();
                    let [name, path, mode, owner, keeper, size] = fields[..] else {
                        return Err(format!("{script}: \"{line}\"?"));
                    };
                    let size: usize = size.parse().map_err(|_| format!("{script}: \"{line}\"?"))?;
                    let keeper = keeper.parse().map_err(|_| format!("{script}: \"{line}\"?"))?;
                    let Some((bytes, behind)) =
                        rest.split_at_checked(size).filter(|(_, behind)| behind.first() == Some(&b'\n'))
                    else {
                        return Err(format!(
                            "{path} changed while it was read, or the connection broke: run this again"
                        ));
                    };
                    let file = RemoteFile {
                        path: path.to_owned(),
                        mode: mode.to_owned(),
                        owner: owner.to_owned(),
                        keeper,
                        bytes: bytes.to_vec(),
                    };
                    answer.files.insert(name.to_owned(), Some(file));
                    rest = &behind[1..];
                }
                "missing" => {
                    let mut fields = value.split('\t');
                    let name = fields.next().unwrap_or_default().to_owned();
                    let keeper = fields.nth(1).and_then(|uid| uid.parse().ok());
                    answer.files.insert(name.clone(), None);
                    answer.missing.insert(name, keeper);
                }
                _ => answer.values.push((key.to_owned(), value.to_owned())),
            }
        }
        if answer.value("end") != Some(script) {
            return Err(format!("the script {script} did not come to its end"));
        }
        Ok(answer)
    }

    /// The first value of a key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
    }

    /// All values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.values.iter().filter(move |(other, _)| other == key).map(|(_, value)| value.as_str())
    }

    /// The numbers of a value, separated by blanks.
    #[must_use]
    pub fn numbers(&self, key: &str) -> Vec<u64> {
        self.value(key).map(|text| text.split(' ').filter_map(|n| n.parse().ok()).collect()).unwrap_or_default()
    }

    /// A file that is there.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&RemoteFile> {
        self.files.get(name).and_then(Option::as_ref)
    }
}
