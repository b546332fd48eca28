//! A pcapng file that was left by something that was killed, or by something else, is continued or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sniffer::frame::LinkLayer;
use sniffer::pcapng::PcapngSink;
use sniffer::sink::PacketSink;
use trace::packet::PacketFileHeader;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let header = PacketFileHeader::default();
    let path = folder.path().join("packets-x.pcapng");
    std::fs::write(&path, data).unwrap();
    if PcapngSink::open(&path, &header, LinkLayer::Ethernet).is_ok() {
        PcapngSink::open(&path, &header, LinkLayer::Ethernet).expect("what we wrote ourselves is refused");
    }
    let path = folder.path().join("packets-x.hpk");
    std::fs::write(&path, data).unwrap();
    if PacketSink::open(&path, &header).is_ok() {
        PacketSink::open(&path, &header).expect("what we wrote ourselves is refused");
    }
});
