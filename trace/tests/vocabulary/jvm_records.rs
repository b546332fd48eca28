//! What JVMs of this version say, and those of captures that are older: fields and kinds that came later are optional.

use trace::jvm::JvmRecord;

fn read(line: &str) -> JvmRecord {
    serde_json::from_str(line).unwrap()
}

/// Of each record that has got fields since, a line as the first agents wrote it.
const OLD: &[&str] = &[
    r#"{"k":"clock","t":1,"mono":2,"dropped":0}"#,
    r#"{"k":"listen","t":1,"local":"10.0.0.1:80"}"#,
    r#"{"k":"rpc","received":1,"begin":2,"end":3,"responded":4,"th":5,"call":6,"client":"","method":"m","local":"a","remote":"b"}"#,
    r#"{"k":"block","t0":1,"t1":2,"th":3,"op":"read","block":4,"offset":0,"length":5,"bytes":5,"client":"","local":"a","remote":"b"}"#,
    r#"{"k":"block_read","t0":1,"t1":2,"th":3,"block":4,"offset":0,"length":5,"consumed":5,"local":"a","remote":"b"}"#,
    r#"{"k":"block_write","t0":1,"t1":2,"th":3,"block":4,"bytes":5,"local":"a","remote":"b"}"#,
    r#"{"k":"shuffle_served","t0":1,"t1":2,"job":"j","map":"m","reduce":0,"bytes":5,"local":"a","remote":"b"}"#,
    r#"{"k":"fetch","t0":1,"t1":2,"th":3,"map":"m","reduce":0,"bytes":5,"raw":4,"host":"w1:1"}"#,
    r#"{"k":"end","t":1,"dropped":0,"hook_ns":2,"premain_ns":3}"#,
];

#[test]
fn lines_of_older_agents_are_read_and_say_no_more_when_written_again() {
    for line in OLD {
        let record = read(line);
        if !matches!(record, JvmRecord::End { .. }) {
            assert_eq!(&serde_json::to_string(&record).unwrap(), line);
        }
    }
}

#[test]
fn lines_of_the_present_agent_are_read() {
    let record = read(r#"{"k":"use","t":1,"local":"a","remote":"b","purpose":"rpc","side":"client","protocol":"p.P"}"#);
    assert!(
        matches!(record, JvmRecord::Use { purpose, side, protocol, .. } if (purpose.as_str(), side.as_str(), protocol.as_str()) == ("rpc", "client", "p.P"))
    );
    let record =
        read(r#"{"k":"wait","t0":1,"t1":9,"local":"a","remote":"b","read_ns":5,"write_ns":1,"reads":2,"writes":1}"#);
    assert!(matches!(record, JvmRecord::Wait { read_ns: 5, write_ns: 1, reads: 2, writes: 1, .. }));
    let record = read(
        r#"{"k":"step","t0":1,"t1":9,"th":3,"op":"write","block":4,"offset":64512,"bytes":1096704,"work_ns":5,"write_wait":2,"cpu_ns":4,"ready_ns":1,"local":"a","remote":"b"}"#,
    );
    assert!(matches!(
        record,
        JvmRecord::Step { offset: 64_512, bytes: 1_096_704, work_ns: 5, read_wait: 0, write_wait: 2, cpu_ns: 4, .. }
    ));
    let record = read(r#"{"k":"work","t0":1,"t1":2,"th":3,"attempt":"attempt_1","work":"spill"}"#);
    assert!(matches!(record, JvmRecord::Work { work, .. } if work == "spill"));
    let record = read(
        r#"{"k":"rpc","received":1,"begin":3,"end":4,"responded":5,"th":5,"call":6,"client":"","method":"allocate","local":"a","remote":"b","queued":2,"completed":["c1"],"assigned":["c2","+3"]}"#,
    );
    assert!(matches!(record, JvmRecord::Rpc { queued: 2, completed, assigned, .. }
        if completed == ["c1"] && assigned == ["c2", "+3"]));
    let record = read(
        r#"{"k":"end","t":1,"dropped":0,"hook_ns":2,"stall_ns":1,"premain_ns":3,"premain_cpu_ns":3,"patch_ns":4,"patched":7,"prepared":6,"writer_ns":5,"cpu_ns":6}"#,
    );
    assert!(matches!(
        record,
        JvmRecord::End { stall_ns: 1, patch_ns: 4, patched: 7, prepared: 6, writer_ns: 5, cpu_ns: 6, .. }
    ));
}

#[test]
fn lines_that_are_read_without_detour_are_the_same_records() {
    let known = [
        r#"{"k":"thread","t":1,"th":2,"child":3,"name":"a \"thread\""}"#,
        r#"{"k":"thread","th":2,"later":[1],"child":3,"name":"","t":1}"#,
        r#"{"k":"clock","t":1,"mono":-2}"#,
        r#"{"k":"clock","t":1,"mono":2,"dropped":3,"unwritten":4,"cpu_ns":5,"agent_ns":6}"#,
        r#"{"k":"rpc","received":1,"begin":2,"end":3,"responded":4,"th":5,"call":-6,"client":"c","method":"m","local":"a","remote":"b"}"#,
        r#"{"k":"rpc","received":1,"begin":2,"end":3,"responded":4,"th":5,"call":6,"client":"","method":"m","local":"a","remote":"b","context":"x","queued":7,"completed":["y"],"assigned":["z","+1"]}"#,
        r#"{"k":"call","t":1,"sent":2,"received":3,"th":4,"call":-5,"client":"c","method":"m","local":"","remote":"b","later":{}}"#,
        r#"{"k":"open","t":1,"th":2,"local":"a","remote":"b"}"#,
        r#"{"k":"accept","t":1,"th":2,"local":"a","remote":"b","later":null}"#,
    ];
    for line in known.iter().chain(OLD) {
        assert_eq!(JvmRecord::of_line(line.as_bytes()).unwrap(), read(line), "{line}");
    }
    for line in [
        r#"{"k":"thread","t":1,"th":2,"child":3}"#,
        r#"{"k":"clock","t":1,"mono":"2"}"#,
        r#"{"k":"thread","t":1"#,
        r#"{"k":"call","t":1,"sent":2}"#,
    ] {
        let said = JvmRecord::of_line(line.as_bytes()).unwrap_err().to_string();
        assert_eq!(said, serde_json::from_str::<JvmRecord>(line).unwrap_err().to_string(), "{line}");
    }
}
