//! What HTTP carries on a real interface to prove who somebody is does not reach the disk, unless that was asked for.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::support::{Agent, Pair};
use crate::traffic::packets_of;
use test_support::skip;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

/// What must not be found, of which each part of the conversation carries one.
const SECRETS: [&str; 7] = ["ALADDIN0", "COOKIE01", "TOKEN002", "BODY0003", "COOKIE04", "TOKEN005", "BODY0006"];

/// A client asks twice over loopback, with a header that goes on in a second segment, and is answered.
fn talk(pair: &Pair) {
    let server = Pair::within(&pair.left, || {
        let listener = TcpListener::bind("127.0.0.1:9870").unwrap();
        let client = std::thread::spawn(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9870").unwrap();
            stream.set_nodelay(true).unwrap();
            for _ in 0..2 {
                let pieces = [
                    "PUT /webhdfs/v1/a?op=CREATE&delegation=TOKEN002 HTTP/1.1\r\nHost: nn\r\nAuthorization: Basic ",
                    "ALADDIN0\r\nCookie: hadoop.auth=COOKIE01\r\nContent-Length: 16\r\n\r\nBODY0003",
                    "BODY0003",
                ];
                for piece in pieces {
                    stream.write_all(piece.as_bytes()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                let mut answer = [0; 200];
                assert!(stream.read(&mut answer).unwrap() > 0);
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..2 {
            let mut asked = Vec::new();
            let mut buffer = [0; 1000];
            while !asked.ends_with(b"BODY0003BODY0003") {
                let got = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..got]);
            }
            let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: hadoop.auth=COOKIE04\r\nLocation: http://dn/b?delegation=TOKEN005\r\n\
                          Content-Length: 8\r\n\r\nBODY0006";
            stream.write_all(answer.as_bytes()).unwrap();
        }
        client.join().unwrap();
    });
    server.join().unwrap();
}

fn found(path: &Path) -> Vec<&'static str> {
    let bytes = fs::read(path).unwrap();
    SECRETS.into_iter().filter(|secret| bytes.windows(8).any(|window| window == secret.as_bytes())).collect()
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn credentials_of_http_do_not_reach_the_disk_unless_asked_for() {
    for (more, is_blanked) in [(&["--pcapng"][..], true), (&["--pcapng", "--secrets", "keep"], false)] {
        let pair = Pair::new();
        let folder = tempfile::tempdir().unwrap();
        let options = [&["--ring", "8MiB", "--interface", "lo"], more].concat();
        let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &options);
        talk(&pair);
        let (code, manifest) = agent.stop();
        assert_eq!(code, 0, "{manifest}");
        let (record, pcapng) = (folder.path().join("packets-lo.hpk"), folder.path().join("packets-lo.pcapng"));
        let expected: &[&str] = if is_blanked { &[] } else { &SECRETS };
        assert_eq!((found(&record), found(&pcapng)), (expected.to_vec(), expected.to_vec()), "{more:?}");
        let payload: Vec<u8> = packets_of(&record).into_iter().flat_map(|packet| packet.payload).collect();
        let payload = String::from_utf8_lossy(&payload).into_owned();
        assert_eq!(payload.matches("PUT /webhdfs/v1/a?op=CREATE&delegation=").count(), 2, "{payload}");
        assert_eq!(payload.matches("Content-Length: 16\r\n\r\n").count(), 2, "{payload}");
        let blanked = manifest["interfaces"][0]["blanked_bytes"].as_u64().unwrap();
        assert_eq!((manifest["secrets"] == "blank", blanked > 100), (is_blanked, is_blanked), "{manifest}");
        assert_eq!(payload.matches('*').count() as u64, blanked);
    }
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn what_curl_says_of_its_user_does_not_reach_the_disk() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent =
        Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", "8MiB", "--interface", "lo"]);
    let server = Pair::within(&pair.left, || {
        let listener = TcpListener::bind("127.0.0.1:9871").unwrap();
        let client = std::process::Command::new("curl")
            .args(["-s", "-m", "20", "-u", "alice:PASSWORD", "-b", "hadoop.auth=COOKIE01", "-d", "BODY0003"])
            .arg("http://127.0.0.1:9871/webhdfs/v1/x?op=CREATE&delegation=TOKEN002")
            .spawn();
        let Ok(mut client) = client else { return false };
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 2000]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nBODY0006").unwrap();
        assert!(client.wait().unwrap().success());
        true
    });
    if !server.join().unwrap() {
        skip!("no curl");
    }
    assert_eq!(agent.stop().0, 0);
    let record = folder.path().join("packets-lo.hpk");
    let bytes = fs::read(&record).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("POST /webhdfs/v1/x?op=CREATE&delegation=********"), "the request is not in the record");
    // Base64 of "alice:PASSWORD".
    assert!(!has("YWxpY2U6UEFTU1dPUkQ") && found(&record).is_empty());
}
