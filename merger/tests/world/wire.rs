//! What Hadoop 3 puts on the wire, byte by byte.

/// Protocol buffers: a varint.
pub fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn delimited(message: &[u8]) -> Vec<u8> {
    [varint(message.len() as u64), message.to_vec()].concat()
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

fn framed(body: Vec<u8>) -> Vec<u8> {
    [(body.len() as u32).to_be_bytes().to_vec(), body].concat()
}

/// "hrpc", version 9, service class 0, authentication 0.
pub fn rpc_preamble() -> Vec<u8> {
    b"hrpc\x09\x00\x00".to_vec()
}

/// A request of `extra` more bytes than its headers.
pub fn rpc_request(call: i64, method: &str, extra: usize) -> Vec<u8> {
    let header =
        [number(1, 2), number(2, 0), number(3, zigzag(call)), bytes(4, &[7; 16]), number(5, zigzag(-1))].concat();
    let request =
        [bytes(1, method.as_bytes()), bytes(2, b"org.apache.hadoop.hdfs.protocol.ClientProtocol"), number(3, 1)];
    let mut body = delimited(&header);
    if call >= 0 {
        body.extend(delimited(&request.concat()));
    }
    body.extend(delimited(&bytes(1, &vec![b'x'; extra])));
    framed(body)
}

/// A request of the protocol between a task and its master, which Hadoop serialises itself.
pub fn umbilical_request(call: i64, method: &str) -> Vec<u8> {
    let header =
        [number(1, 1), number(2, 0), number(3, zigzag(call)), bytes(4, &[7; 16]), number(5, zigzag(0))].concat();
    let mut body = [delimited(&header), 2u64.to_be_bytes().to_vec()].concat();
    for name in ["org.apache.hadoop.mapred.TaskUmbilicalProtocol", method] {
        body.extend((name.len() as u16).to_be_bytes());
        body.extend(name.as_bytes());
    }
    body.extend([0; 20]);
    framed(body)
}

/// A response.
pub fn rpc_response(call: i64, extra: usize) -> Vec<u8> {
    let header = [
        number(1, u64::from(call as i32 as u32)),
        number(2, 0),
        number(3, 9),
        bytes(7, &[7; 16]),
        number(8, zigzag(-1)),
    ];
    framed([delimited(&header.concat()), delimited(&bytes(1, &vec![b'y'; extra]))].concat())
}

fn block(id: u64) -> Vec<u8> {
    [bytes(1, b"BP-1234567890-10.0.0.1-1700000000000"), number(2, id), number(3, 1001)].concat()
}

fn client_header(id: u64, client: &str) -> Vec<u8> {
    let base = [bytes(1, &block(id)), bytes(2, &[bytes(1, b""), bytes(2, b""), bytes(3, b""), bytes(4, b"")].concat())]
        .concat();
    [bytes(1, &base), bytes(2, client.as_bytes())].concat()
}

/// A request to read.
pub fn read_block(id: u64, client: &str, offset: u64, length: u64) -> Vec<u8> {
    let message = [bytes(1, &client_header(id, client)), number(2, offset), number(3, length), number(4, 1)].concat();
    [vec![0, 28, 81], delimited(&message)].concat()
}

/// A request to write, with so many more DataNodes behind the first.
pub fn write_block(id: u64, client: &str, targets: usize, pipeline: u64) -> Vec<u8> {
    let target = vec![b't'; 150];
    let targets: Vec<u8> = (0..targets).flat_map(|_| bytes(2, &target)).collect();
    let message = [
        bytes(1, &client_header(id, client)),
        targets,
        number(4, 6),
        number(5, pipeline),
        number(6, 0),
        number(7, 0),
        number(8, 0),
    ];
    [vec![0, 28, 80], delimited(&message.concat())].concat()
}

/// BlockOpResponseProto to a read: success, CRC32C of 512 bytes each.
pub fn read_response() -> Vec<u8> {
    let checksum = [number(1, 2), number(2, 512)].concat();
    delimited(&[number(1, 0), bytes(4, &[bytes(1, &checksum), number(2, 0)].concat())].concat())
}

/// BlockOpResponseProto to a write.
pub fn write_response() -> Vec<u8> {
    delimited(&[number(1, 0), bytes(2, b"")].concat())
}

/// ClientReadStatusProto: CHECKSUM_OK.
pub fn read_status() -> Vec<u8> {
    delimited(&number(1, 6))
}

/// PipelineAckProto.
pub fn ack(sequence: i64) -> Vec<u8> {
    delimited(&[number(1, zigzag(sequence)), number(2, 0), number(3, 0), bytes(4, &[0])].concat())
}

/// A packet of block data.
pub fn data_packet(offset: u64, sequence: i64, data: usize, last: bool) -> Vec<u8> {
    let checksums = data.div_ceil(512) * 4;
    let mut header = vec![0x09];
    header.extend(offset.to_le_bytes());
    header.push(0x11);
    header.extend(sequence.to_le_bytes());
    header.extend([0x18, u8::from(last), 0x25]);
    header.extend((data as u32).to_le_bytes());
    let mut out = (4 + checksums as u32 + data as u32).to_be_bytes().to_vec();
    out.extend((header.len() as u16).to_be_bytes());
    out.extend(header);
    out.extend(vec![0xcc; checksums]);
    out.extend((0..data).map(|at| (at * 31) as u8 | 0x80));
    out
}

/// Packets of so much data in pieces of `full`, and the empty one that ends the block.
pub fn data_packets(from: u64, data: usize, full: usize) -> Vec<u8> {
    let (mut out, mut done, mut sequence) = (Vec::new(), 0, 0);
    while done < data {
        let piece = full.min(data - done);
        out.extend(data_packet(from + done as u64, sequence, piece, false));
        done += piece;
        sequence += 1;
    }
    out.extend(data_packet(from + done as u64, sequence, 0, true));
    out
}

/// `WritableUtils.writeVLong`.
pub fn vlong(value: i64) -> Vec<u8> {
    if (-112..=127).contains(&value) {
        return vec![value as i8 as u8];
    }
    let digits: Vec<u8> = value.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    [vec![(-112 - digits.len() as i8) as u8], digits].concat()
}

/// ShuffleHeader and data.
pub fn map_output(map: &str, reduce: u32, data: usize) -> Vec<u8> {
    let mut out = vlong(map.len() as i64);
    out.extend(map.as_bytes());
    out.extend(vlong(data as i64));
    out.extend(vlong(data as i64 - 4));
    out.extend(vlong(i64::from(reduce)));
    out.extend((0..data).map(|at| (at * 17) as u8 | 0x80));
    out
}

/// A request to the shuffle handler.
pub fn shuffle_request(reduce: u32, maps: &[String]) -> Vec<u8> {
    format!(
        "GET /mapOutput?job=job_1700000000000_0001&reduce={reduce}&map={} HTTP/1.1\r\nUrlHash: aaaaaaaaaaaaaaaaaaaaaaaaaaa=\r\n\
         name: mapreduce\r\nversion: 1.0.0\r\nUser-Agent: Java/17.0.15\r\nHost: w1:13562\r\nAccept: text/html, */*\r\n\
         Connection: keep-alive\r\n\r\n",
        maps.join(",")
    )
    .into_bytes()
}

/// The head of its answer.
pub fn shuffle_head(length: usize) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nReplyHash: aaaaaaaaaaaaaaaaaaaaaaaaaaa=\r\nname: mapreduce\r\nversion: 1.0.0\r\n\
         content-length: {length}\r\n\r\n"
    )
    .into_bytes()
}
