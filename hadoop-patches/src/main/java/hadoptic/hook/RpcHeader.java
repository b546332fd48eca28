package hadoptic.hook;

import java.util.Arrays;

/** What a request of RPC version 9 says of itself: int32 length, then a delimited RpcRequestHeaderProto, then more. */
final class RpcHeader {
    /** Number of the call. */
    final int callId;
    /** Id of the client, null = none. */
    final byte[] clientId;

    private RpcHeader(int callId, byte[] clientId) {
        this.callId = callId;
        this.clientId = clientId;
    }

    /** Reads fields 3 (call id, zigzag) and 4 (client id); null = not such a request. */
    static RpcHeader parse(byte[] request) {
        Reader in = new Reader(request, 4, request.length);
        long length = in.varint();
        if (in.failed || length <= 0 || length > request.length - in.at) {
            return null;
        }
        in.end = in.at + (int) length;
        long callId = Long.MIN_VALUE;
        byte[] clientId = null;
        while (in.at < in.end && !in.failed) {
            int key = (int) in.varint();
            switch (key & 7) {
                case 0:
                    long value = in.varint();
                    if (key >>> 3 == 3) {
                        callId = value >>> 1 ^ -(value & 1);
                    }
                    break;
                case 1: in.skip(8); break;
                case 2:
                    int size = (int) in.varint();
                    int from = in.at;
                    in.skip(size);
                    if (key >>> 3 == 4 && !in.failed) {
                        clientId = Arrays.copyOfRange(request, from, from + size);
                    }
                    break;
                case 5: in.skip(4); break;
                default: return null;
            }
        }
        return in.failed || callId == Long.MIN_VALUE ? null : new RpcHeader((int) callId, clientId);
    }

    private static final class Reader {
        private final byte[] bytes;
        private int at;
        private int end;
        private boolean failed;

        Reader(byte[] bytes, int at, int end) {
            this.bytes = bytes;
            this.at = at;
            this.end = end;
        }

        long varint() {
            long value = 0;
            for (int shift = 0; shift < 64; shift += 7) {
                if (at >= end) {
                    failed = true;
                    return 0;
                }
                byte b = bytes[at++];
                value |= (long) (b & 0x7f) << shift;
                if (b >= 0) {
                    return value;
                }
            }
            failed = true;
            return 0;
        }

        void skip(int n) {
            if (n < 0 || n > end - at) {
                failed = true;
                at = end;
            } else {
                at += n;
            }
        }
    }
}
