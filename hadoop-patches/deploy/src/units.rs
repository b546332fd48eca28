//! systemd units of the two agents, for those who want them.

use trace::quantity::parse_bytes;

use crate::installed::Installed;

/// Capabilities of each: as docs/agents.md says.
const SNIFFER: &str = "CAP_NET_RAW CAP_NET_ADMIN CAP_SETPCAP";
/// The last but one is for its instance of the kernel's tracing; it is given up once that is open.
const DUMPINGD: &str = "CAP_SYS_PTRACE CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_SETPCAP";
/// Where it stays root, it gives up what it does not need by itself, and its folder is root's.
const OF_ROOT: &str = "CAP_SETUID CAP_SETGID";
/// Most memory of each, MiB. The sniffer's is what its interfaces hold for later (`--hold-memory`), not the kernel's rings.
const SNIFFER_MIB: u64 = 512;
const DUMPINGD_MIB: u64 = 256;
/// Held packets of a few interfaces fit into [`SNIFFER_MIB`] with the default of `--hold-memory`.
const HOLD_MEMORY: &str = "--hold-memory=";
const USUAL_INTERFACES: u64 = 4;

/// What systemd is told of an agent's place.
struct Setting {
    /// A comment on where the unit comes from.
    origin: &'static str,
    /// Where the programs lie.
    programs: String,
    /// Lines of where their words go.
    words: fn(&Installed, &str) -> String,
    /// Lines of the folder that they may write into.
    folder: fn(&Installed) -> String,
}

/// Name and text of both.
#[must_use]
pub fn all(installed: &Installed) -> [(String, String); 2] {
    both(
        installed,
        &Setting {
            origin: "# Made by `hadoptic install --systemd`, taken away by `hadoptic remove`.\n",
            programs: format!("{}/bin", installed.prefix),
            words: |installed, name| {
                let log = format!("append:{}/log/{name}.log", installed.prefix);
                format!("StandardOutput={log}\nStandardError={log}\n")
            },
            folder: |installed| format!("ReadWritePaths={}/%H\n", installed.capture_dir),
        },
    )
}

/// The same for a package, whose programs lie in /usr/bin: systemd makes the folder of what is recorded, and keeps what they say.
#[must_use]
pub fn packaged(installed: &Installed) -> [(String, String); 2] {
    both(
        installed,
        &Setting {
            origin: "",
            programs: "/usr/bin".to_owned(),
            words: |_, _| String::new(),
            folder: |installed| {
                let folder = installed.capture_dir.trim_start_matches("/var/lib/");
                format!("StateDirectory={folder}/%H\nStateDirectoryMode=0750\n")
            },
        },
    )
}

fn both(installed: &Installed, setting: &Setting) -> [(String, String); 2] {
    let of = |name: &str, about: &str, needs: (&str, u64), options: &[String]| {
        (format!("hadoptic-{name}.service"), unit(installed, setting, (name, about), needs, options))
    };
    [
        of("sniffer", "Hadoptic: records TCP segments", (SNIFFER, sniffer_mib(&installed.sniffer)), &installed.sniffer),
        of("dumpingd", "Hadoptic: records the owners of sockets", (DUMPINGD, DUMPINGD_MIB), &installed.dumpingd),
    ]
}

/// More held packets than usual need more.
fn sniffer_mib(options: &[String]) -> u64 {
    let held = options.iter().filter_map(|option| parse_bytes(option.strip_prefix(HOLD_MEMORY)?).ok()).next_back();
    SNIFFER_MIB.max(SNIFFER_MIB / 2 + held.unwrap_or(0).div_ceil(1 << 20).saturating_mul(USUAL_INTERFACES))
}

fn unit(
    installed: &Installed,
    setting: &Setting,
    (name, about): (&str, &str),
    (capabilities, mib): (&str, u64),
    options: &[String],
) -> String {
    let (origin, programs, capture) = (setting.origin, &setting.programs, &installed.capture_dir);
    let (words, folder) = ((setting.words)(installed, name), (setting.folder)(installed));
    let options: String = options.iter().map(|option| format!(" {}", argument(option))).collect();
    let (user, capabilities) = match installed.service() {
        "root" => (String::new(), format!("{capabilities} {OF_ROOT}")),
        service => (format!("User={service}\nAmbientCapabilities={capabilities}\n"), capabilities.to_owned()),
    };
    let stays = if user.is_empty() { " --user root" } else { "" };
    // Exit code 1 says that something was lost, 2 that it cannot run: neither gets better by trying again.
    format!(
        "{origin}\
         [Unit]\n\
         Description={about}\n\
         After=network.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={programs}/{name} run --out {capture}/%H{stays}{options}\n\
         {words}\
         {user}\
         Restart=on-abnormal\n\
         RestartSec=1s\n\
         CapabilityBoundingSet={capabilities}\n\
         NoNewPrivileges=yes\n\
         ProtectSystem=strict\n\
         {folder}\
         ProtectHome=read-only\n\
         ProtectControlGroups=yes\n\
         ProtectKernelModules=yes\n\
         LockPersonality=yes\n\
         MemoryDenyWriteExecute=yes\n\
         RestrictRealtime=yes\n\
         RestrictSUIDSGID=yes\n\
         RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET\n\
         SystemCallArchitectures=native\n\
         UMask=0077\n\
         # Where memory is short, Hadoop is not what the kernel ends.\n\
         OOMScoreAdjust=500\n\
         MemoryMax={mib}M\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

/// An argument as systemd.service(5) reads it.
fn argument(text: &str) -> String {
    let text = text.replace('%', "%%").replace('$', "$$");
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "._/+@%=,:-$".contains(c)) && !text.is_empty() {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
