//! The scripts that run on hosts: POSIX sh, readable in `scripts/`, with the common functions before each.

macro_rules! scripts {
    ($($(#[$about:meta])* $name:ident = $file:literal;)*) => {
        $($(#[$about])* pub const $name: &str =
            concat!(include_str!("../scripts/common.sh"), include_str!(concat!("../scripts/", $file)));)*
    };
}

/// Prints the option that loads the agent into a JVM; lies on the hosts, with what stands between at signs filled in.
pub const AGENT_OPTION: &str = include_str!("../scripts/agent_option.sh");
/// Lets one program at a time change a host. For `sh -c`: its input is what holds the lock.
pub const LOCK: &str = include_str!("../scripts/lock.sh");

scripts! {
    /// What a host is, has and says.
    PROBE = "probe.sh";
    /// Makes a folder for a trial.
    FIT = "fit.sh";
    /// Tries the programs in it.
    TRY = "try.sh";
    /// Makes the folders.
    PLACE_BEGIN = "place_begin.sh";
    /// Puts the programs in their place.
    PLACE_END = "place_end.sh";
    /// Lays files beside those that will be replaced.
    STAGE_BEGIN = "stage_begin.sh";
    /// Looks whether they arrived.
    STAGE_END = "stage_end.sh";
    /// Replaces the files.
    COMMIT = "commit.sh";
    /// Takes away what was laid beside.
    UNSTAGE = "unstage.sh";
    /// Starts an agent.
    START = "start.sh";
    /// Loads the agent into a JVM that runs.
    ATTACH = "attach.sh";
    /// Which agents run.
    RUNS = "runs.sh";
    /// Stops one.
    STOP = "stop.sh";
    /// How they are.
    STATUS = "status.sh";
    /// What was recorded.
    RECORDS = "records.sh";
    /// What there is to collect.
    LIST = "list.sh";
    /// Makes a folder for the program that makes digests, where it is not there.
    MERGER_BEGIN = "merger_begin.sh";
    /// Puts it in its place.
    MERGER_END = "merger_end.sh";
    /// Makes the digest of what was recorded.
    DIGEST = "digest.sh";
    /// Prints files.
    FETCH = "fetch.sh";
    /// Finds a job's files.
    HISTORY = "history.sh";
    /// Takes everything away.
    WIPE = "wipe.sh";
}
