//! Everything that stock Hadoop encrypts without Kerberos: block transfers, calls by token, the shuffle.
//!
//! - Block transfers: every DataNode and client negotiates by SASL (DIGEST-MD5) with keys of the NameNode, then wraps
//!   what it says by the mechanism's own cipher, or encrypts it by AES where both sides know the suite.
//! - Calls by token (task umbilical, application master to ResourceManager and NodeManagers): SASL privacy. Those without a
//!   token stay plain, as authentication is simple: to the NameNode, heartbeats, clients.
//! - Shuffle: TLS. The NodeManager reads `ssl-server.xml`, whoever fetches `ssl-client.xml`, both on their class path.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Context, Result};
use clap::ValueEnum;

use crate::conf_file::{ConfFile, owned, site_xml};
use crate::plan::Plan;
use crate::tool;

/// Of the throw-away key, which never leaves the lab's folder and ends with it.
const PASSWORD: &str = "throw-away";
/// Name of the key in its store.
const ALIAS: &str = "lab";
/// Days for which its certificate is good: longer than any lab.
const DAYS: &str = "30";

/// What encrypts blocks on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cipher {
    /// AES/CTR/NoPadding, agreed on behind the negotiation: adds no bytes
    Aes,
    /// Triple DES in the tokens of DIGEST-MD5, as without any setting
    #[value(name = "3des")]
    TripleDes,
    /// RC4 in the tokens of DIGEST-MD5
    Rc4,
}

impl Cipher {
    /// As it is written in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes => "AES/CTR/NoPadding",
            Self::TripleDes => "3des",
            Self::Rc4 => "rc4",
        }
    }
}

/// Properties of `core-site.xml`.
#[must_use]
pub fn core_site() -> Vec<(String, String)> {
    owned([("hadoop.rpc.protection", "privacy".into())])
}

/// Properties of `hdfs-site.xml`.
#[must_use]
pub fn hdfs_site(cipher: Cipher) -> Vec<(String, String)> {
    let mut properties = owned([
        // Keys of transfers are made from those of tokens.
        ("dfs.block.access.token.enable", "true".into()),
        ("dfs.encrypt.data.transfer", "true".into()),
    ]);
    properties.push(match cipher {
        Cipher::Aes => ("dfs.encrypt.data.transfer.cipher.suites".to_owned(), cipher.name().to_owned()),
        Cipher::TripleDes | Cipher::Rc4 => ("dfs.encrypt.data.transfer.algorithm".to_owned(), cipher.name().to_owned()),
    });
    properties
}

/// Properties of `mapred-site.xml`.
#[must_use]
pub fn mapred_site() -> Vec<(String, String)> {
    owned([("mapreduce.shuffle.ssl.enabled", "true".into())])
}

/// What those who serve and those who fetch map outputs read.
#[must_use]
pub fn files(work: &Path) -> Vec<ConfFile> {
    let stores = Stores::of(work);
    let store = |side: &str, kind: &str, path: &Path| {
        let name = |last: &str| format!("ssl.{side}.{kind}.{last}");
        vec![
            (name("location"), path.display().to_string()),
            (name("password"), PASSWORD.to_owned()),
            (name("type"), "pkcs12".to_owned()),
        ]
    };
    let mut server = store("server", "keystore", &stores.keys);
    server.push(("ssl.server.keystore.keypassword".to_owned(), PASSWORD.to_owned()));
    server.extend(store("server", "truststore", &stores.trusted));
    let client = store("client", "truststore", &stores.trusted);
    vec![
        ConfFile { name: "ssl-server.xml", contents: site_xml(&server) },
        ConfFile { name: "ssl-client.xml", contents: site_xml(&client) },
    ]
}

/// Files with the lab's key and with its certificate. All hosts see the same folder.
struct Stores {
    folder: PathBuf,
    keys: PathBuf,
    trusted: PathBuf,
}

impl Stores {
    fn of(work: &Path) -> Self {
        let folder = work.join("keys");
        Self { keys: folder.join("keys.p12"), trusted: folder.join("trusted.p12"), folder }
    }
}

/// Makes a key and its certificate, good for every host of a lab, in the lab's folder.
///
/// # Errors
/// If Java's `keytool` is not there or fails.
pub fn make_stores(plan: &Plan, java_home: &Path, work: &Path) -> Result<()> {
    let Stores { folder, keys, trusted } = Stores::of(work);
    fs::DirBuilder::new().mode(0o700).create(&folder).at("cannot make", &folder)?;
    let certificate = folder.join("lab.crt");
    let [keys, trusted, certificate] = [keys, trusted, certificate].map(|path| path.display().to_string());
    let hosts: Vec<String> = plan.hosts.iter().map(|host| format!("dns:{}", host.name)).collect();
    let names = format!("san={}", hosts.join(","));
    let keytool = java_home.join("bin/keytool").display().to_string();
    let run = |arguments: &[&str]| {
        let store = ["-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", ALIAS, "-noprompt"];
        tool::run(&keytool, &[arguments, &store].concat())
    };
    let subject = ["-dname", "CN=lab", "-ext", &names, "-keyalg", "RSA", "-keysize", "2048", "-validity", DAYS];
    run(&[&["-genkeypair", "-keystore", &keys, "-keypass", PASSWORD], &subject[..]].concat())?;
    run(&["-exportcert", "-keystore", &keys, "-file", &certificate])?;
    run(&["-importcert", "-keystore", &trusted, "-file", &certificate])?;
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).with_context(|| format!("cannot close {keys}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_cipher_of_the_mechanism_asks_for_no_suite() {
        let keys = |cipher| hdfs_site(cipher).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert!(keys(Cipher::Aes).contains(&"dfs.encrypt.data.transfer.cipher.suites".to_owned()));
        for cipher in [Cipher::TripleDes, Cipher::Rc4] {
            assert!(!keys(cipher).iter().any(|key| key.contains("suites")));
        }
    }
}
