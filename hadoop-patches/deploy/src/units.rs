//! systemd units of the two agents, for those who want them.

use crate::installed::Installed;

/// Capabilities of each: as docs/agents.md says.
const SNIFFER: &str = "CAP_NET_RAW CAP_NET_ADMIN CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_SETPCAP";
const DUMPINGD: &str = "CAP_SYS_PTRACE CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_SETPCAP";

/// Name and text of both.
#[must_use]
pub fn all(installed: &Installed) -> [(String, String); 2] {
    let of = |name: &str, about: &str, rights: &str, options: &[String]| {
        (format!("hadoptic-{name}.service"), unit(installed, name, about, rights, options))
    };
    [
        of("sniffer", "Hadoptic: records TCP segments", SNIFFER, &installed.sniffer),
        of("dumpingd", "Hadoptic: records the owners of sockets", DUMPINGD, &installed.dumpingd),
    ]
}

fn unit(installed: &Installed, name: &str, about: &str, rights: &str, options: &[String]) -> String {
    let (prefix, capture) = (&installed.prefix, &installed.capture_dir);
    let options: String = options.iter().map(|option| format!(" {}", argument(option))).collect();
    let user = if installed.run_as.is_empty() {
        String::new()
    } else {
        format!("User={}\nAmbientCapabilities={rights}\n", installed.run_as)
    };
    // Exit code 1 says that something was lost, 2 that it cannot run: neither gets better by trying again.
    format!(
        "# Made by `hadoptic install --systemd`, taken away by `hadoptic remove`.\n\
         [Unit]\n\
         Description={about}\n\
         After=network.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={prefix}/bin/{name} run --out {capture}/%H{options}\n\
         StandardOutput=append:{prefix}/log/{name}.log\n\
         StandardError=append:{prefix}/log/{name}.log\n\
         {user}\
         Restart=on-abnormal\n\
         RestartSec=1s\n\
         CapabilityBoundingSet={rights}\n\
         NoNewPrivileges=yes\n\
         ProtectSystem=strict\n\
         ReadWritePaths={capture}\n\
         ProtectHome=yes\n\
         PrivateTmp=no\n\
         UMask=0077\n\
         # A recording must not be what a full machine kills first.\n\
         OOMScoreAdjust=-500\n\
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
