package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;

/** Operations of the data transfer protocol that a DataNode serves; one record an operation, nothing for a packet. */
public final class DataNodeHandlers {
    private DataNodeHandlers() {}

    private static final ThreadLocal<Operation> CURRENT = new ThreadLocal<Operation>();

    private static final class Operation implements Record {
        private final Operation outer = CURRENT.get();
        private final long thread = Thread.currentThread().getId();
        private final String op;
        private final long begin;
        private final long readBefore = Waits.mine()[0];
        private final long writeBefore = Waits.mine()[1];
        private final String didBefore;
        private long readWait;
        private long writeWait;
        private long end;
        private long block;
        private long offset;
        private long length;
        private long bytes;
        private String client;
        private InetSocketAddress local;
        private InetSocketAddress remote;
        private String mirror = "";

        Operation(String op, long begin) {
            this.op = op;
            this.begin = begin;
            this.didBefore = Purposes.begin(op.equals("write") ? "pipeline" : op);
        }

        void ends(long now) {
            CURRENT.set(outer);
            Purposes.begin(didBefore);
            readWait = Waits.mine()[0] - readBefore;
            writeWait = Waits.mine()[1] - writeBefore;
            end = now;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("block").time("t0", begin).time("t1", end).number("th", thread).string("op", op)
                    .unsigned("block", block).number("offset", offset).number("length", length).number("bytes", bytes)
                    .string("client", client).address("local", local).address("remote", remote)
                    .optional("mirror", mirror).some("read_wait", readWait).some("write_wait", writeWait).end();
        }
    }

    /** {@code DataXceiver.readBlock, writeBlock, ...}. */
    public static final class Serves extends Handler {
        private final String op;

        /** For operations of a name. */
        public Serves(String op) {
            this.op = op;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = new Operation(op, now);
            CURRENT.set(operation);
            operation.block = Fields.numberOf(Arguments.named(arguments, "ExtendedBlock"), "getBlockId", 0);
            operation.client = Arguments.text(arguments, 0);
            if (op.equals("read")) {
                operation.offset = Arguments.number(arguments, 0);
                operation.length = Arguments.number(arguments, 1);
            }
            operation.local = Sockets.parse(Fields.get(self, "localAddress"));
            operation.remote = Sockets.parse(Fields.get(self, "remoteAddress"));
            Purposes.server(now, operation.local, operation.remote, op);
            return operation;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Operation operation = (Operation) token;
            if (operation != null) {
                operation.ends(now);
                Hooks.record(operation);
            }
        }
    }

    /** {@code BlockSender.sendBlock}: its offset moves on with each packet that was sent whole. */
    public static final class Sends extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            return Fields.number(self, "offset", 0);
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null && token instanceof Long) {
                operation.bytes += Fields.number(self, "offset", 0) - (Long) token;
            }
        }
    }

    /** {@code BlockReceiver.receiveBlock}: the replica grows. */
    public static final class Receives extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null) {
                operation.mirror = Arguments.text(arguments, 0);
            }
            return replicaBytes(self);
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null && token instanceof Long) {
                operation.bytes += Math.max(0, replicaBytes(self) - (Long) token);
            }
        }

        private static long replicaBytes(Object receiver) throws ReflectiveOperationException {
            Object replica = Fields.get(receiver, "replicaInfo");
            return replica == null ? Fields.number(receiver, "offsetInBlock", 0) : Fields.numberOf(replica, "getNumBytes", 0);
        }
    }

    /** Constructor of Hadoop 1.x's {@code BlockSender(Block, offset, length, .., client trace)}: what is read. */
    public static final class Reads extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null) {
                operation.block = Fields.numberOf(Arguments.named(arguments, "Block"), "getBlockId", 0);
                operation.offset = Arguments.number(arguments, 0);
                operation.length = Arguments.number(arguments, 1);
                operation.client = clientOf(Arguments.text(arguments, 0));
            }
            return null;
        }

        /** "src: .., dest: .., bytes: %d, op: HDFS_READ, cliID: NAME, offset: .." */
        private static String clientOf(String trace) {
            int at = trace.indexOf("cliID: ");
            int end = at < 0 ? -1 : trace.indexOf(',', at);
            return end < 0 ? "" : trace.substring(at + 7, end);
        }
    }

    /** Constructor of Hadoop 1.x's {@code BlockReceiver(Block, stream, from, here, recovery, client, ..)}: what is written. */
    public static final class Writes extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null) {
                operation.block = Fields.numberOf(Arguments.named(arguments, "Block"), "getBlockId", 0);
                operation.client = Arguments.text(arguments, 2);
            }
            return null;
        }
    }
}
