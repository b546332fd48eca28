//! The experiments and job files of the repository, which the program holds: they go by their names where there is no file.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use super::ExperimentError;
use crate::nearest::nearest;
use netsim::files;

/// A file that the program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name: that of the file in `replay/experiments`, without its ending.
    pub name: &'static str,
    /// What stands in it.
    pub text: &'static str,
}

impl Shipped {
    /// The comment at its head, in one line.
    #[must_use]
    pub fn about(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#'));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    }
}

macro_rules! shipped {
    ($folder:literal: $($name:literal)*) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../experiments/", $folder, $name, ".toml")) }),*]
    };
}

/// Experiments.
pub const EXPERIMENTS: &[Shipped] = shipped!["":
    "ideal"
    "gigabit"
    "ethernet-10g"
    "fat-tree"
    "infiniband"
    "lightness-ops"
    "lightness-ocs"
    "lightness-mixed"
    "lightness-aod"
    "lightness-by-circuit"
    "lightness-by-flow"
    "lightness-by-kind"
    "lightness-by-destination"
    "lightness-by-prediction"
    "lightness-solstice"
    "rotor"
    "circuits-solstice"
    "circuits-sunflow"
    "lab-100mbit"
    "lab-10mbit"
    "peers/booksim2"
    "peers/caminos-basic"
    "peers/caminos-input-output"
    "peers/insee"
    "peers/insee-bursts"
    "peers/omni-path"
    "sweeps/circuit-set-up"
    "sweeps/host-links"
    "sweeps/nodes"
    "sweeps/ops-load"
    "sweeps/ops-loss"
    "sweeps/packet-sizes"
    "sweeps/wavelengths-and-buffers"
    "synthetic/fat-tree"
    "synthetic/fattreesim"
    "synthetic/hot-spot"
    "synthetic/ideal"
    "synthetic/input-queued"
    "synthetic/omni-path"
    "synthetic/omni-path-shift"
    "synthetic/opera-shuffle"
    "synthetic/scale"
    "synthetic/torus-tornado"
];

/// Job files, for `--generate`.
pub const JOBS: &[Shipped] = shipped!["jobs/": "terasort" "data-centre" "sixteen-racks" "hec-protein-clustering"];

/// The text of the file at `path`, of `limit` bytes at most; where there is none, of the one of `shipped` that has this name.
///
/// # Errors
/// If it cannot be read, is too large, or there is none and no such name.
pub(crate) fn text_of(
    path: &Path,
    shipped: &'static [Shipped],
    limit: u64,
) -> Result<Cow<'static, str>, ExperimentError> {
    match files::read_text(path, limit) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let named = shipped.iter().find(|one| path == Path::new(one.name));
            named.map(|one| Cow::Borrowed(one.text)).ok_or_else(|| unknown(path, shipped, error))
        }
        text => text.map(Cow::Owned).map_err(|source| ExperimentError::Read { path: path.into(), source }),
    }
}

/// Whether a job file is one that the program holds, and not one in `folder`.
pub(super) fn is_shipped_job(file: &Path, folder: &Path) -> bool {
    JOBS.iter().any(|one| file == Path::new(one.name)) && !folder.join(file).exists()
}

/// Neither a file nor a name.
fn unknown(path: &Path, shipped: &[Shipped], source: io::Error) -> ExperimentError {
    let stem = path.with_extension("");
    let asked = stem.to_str().unwrap_or_default();
    let names = || shipped.iter().map(|one| one.name);
    // The path of a checkout ends with the name.
    let end = names().filter(|name| stem.ends_with(name)).max_by_key(|name| name.len());
    let begun = || names().find(|name| asked.len() > 2 && name.starts_with(asked));
    let list = "`replay experiments` lists what is built in";
    let hint = match end.or_else(|| nearest(asked, names())).or_else(begun) {
        Some(meant) => format!("; did you mean `{meant}`? {list}"),
        None if path.extension().is_none() => format!("; {list}"),
        None => String::new(),
    };
    ExperimentError::NoFile { path: path.into(), reason: source, hint }
}
