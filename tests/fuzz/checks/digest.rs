//! A digest that holds anything at all is merged, byte for byte accounted for, or refused; never a panic. A whole one is
//! changed as well, for what fuzzing makes up seldom has the right form.

use std::sync::OnceLock;

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{World, assert_bytes_are_conserved, at};
use merger::build::{Silent, merge};

const DIGEST: &str = "digest.hdg.zst";

fn quiet() -> World {
    let mut world = World::new(&["m1", "w1"]);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.say(&mut talk, true, at(10), &rpc_request(1, "sendHeartbeat", 30));
    world.say(&mut talk, false, at(11), &rpc_response(1, 30));
    world
}

/// A digest of a quiet world, unpacked; made once.
fn whole() -> &'static [u8] {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (capture, out) = (folder.path().join("capture"), folder.path().join("digests"));
        quiet().write(&capture);
        merger::digest::digest(&capture, &out, 1 << 20, &Silent).expect("a digest can be made");
        let packed = std::fs::read(out.join("w1").join(DIGEST)).expect("a digest can be read");
        zstd::decode_all(packed.as_slice()).expect("it can be unpacked")
    })
}

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let packed = |content: &[u8]| zstd::encode_all(content, 1).expect("it can be packed");
    let digest = match choice % 3 {
        0 => content.to_vec(),
        1 => packed(content),
        // Places and what stands there instead.
        _ => {
            let mut whole = whole().to_vec();
            for change in content.chunks_exact(3) {
                let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % whole.len();
                whole[place] = change[2];
            }
            packed(&whole)
        }
    };
    let host = folder.path().join("merged/w1");
    std::fs::create_dir_all(&host).expect("a folder can be made");
    std::fs::write(host.join(DIGEST), digest).expect("a file can be written");
    if let Ok(merged) = merge(&[folder.path().join("merged")], &Silent) {
        assert_bytes_are_conserved(&merged);
    }
}
