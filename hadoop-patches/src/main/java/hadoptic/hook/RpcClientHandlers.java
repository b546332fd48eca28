package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** Calls that this JVM makes: handed over by the caller's thread, sent and answered on a shared connection. */
public final class RpcClientHandlers {
    private RpcClientHandlers() {}

    /** What is known of a connection to a server: the tag of {@code Client$Connection} and of its streams. */
    private static final class ServerConnection {
        private final ConcurrentHashMap<Integer, MadeCall> calls = new ConcurrentHashMap<Integer, MadeCall>();
        private Object socket;
        private volatile InetSocketAddress local;
        private volatile InetSocketAddress remote;
        /** When the last response had been read. */
        private volatile long lastRead;
    }

    /** The tag of a client's call, and its record. */
    private static final class MadeCall implements Record {
        private final AtomicBoolean noted = new AtomicBoolean();
        private final long t;
        private final long thread = Thread.currentThread().getId();
        private final int id;
        private final String method;
        private volatile ServerConnection connection;
        private volatile byte[] client;
        private volatile long sent;
        private volatile long received;

        MadeCall(long t, int id, String method) {
            this.t = t;
            this.id = id;
            this.method = method;
        }

        @Override
        public void write(JsonLine line) {
            ServerConnection c = connection;
            line.begin("call").time("t", t).time("sent", sent).time("received", received).number("th", thread)
                    .number("call", id).hex("client", client).string("method", method)
                    .address("local", c == null ? null : c.local).address("remote", c == null ? null : c.remote).end();
        }
    }

    private static MadeCall of(Object call) {
        Object tag = Tags.get(call);
        return tag instanceof MadeCall ? (MadeCall) tag : null;
    }

    private static ServerConnection connection(Object tagged) {
        Object tag = Tags.get(tagged);
        return tag instanceof ServerConnection ? (ServerConnection) tag : null;
    }

    /** Constructor of {@code Client$Call}, in the caller's thread. */
    public static final class Created extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (of(self) == null) {
                int id = (int) Fields.number(self, "id", -1);
                Tags.put(self, new MadeCall(now, id, RpcMethods.nameOf(Fields.get(self, "rpcRequest", "param"))));
            }
        }
    }

    /** {@code Client$Connection.sendRpcRequest(Call)}: the connection stands, the call is about to be sent on it. */
    public static class Sends extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            MadeCall call = of(arguments[0]);
            Object socket = Fields.get(self, "socket");
            if (call == null || socket == null) {
                return null;
            }
            ServerConnection connection = connection(self);
            if (connection == null || connection.socket != socket) {
                connection = new ServerConnection();
                connection.socket = socket;
                connection.local = Sockets.local(socket);
                connection.remote = Sockets.remote(socket);
                Tags.put(self, connection);
                Object streams = Fields.get(self, "ipcStreams");
                Tags.put(streams, connection);
                Purposes.rpc(now, connection.local, connection.remote, false,
                        Fields.get(Fields.get(self, "remoteId"), "protocol"));
            }
            call.connection = connection;
            connection.calls.put(call.id, call);
            return null;
        }
    }

    /** {@code Client$Connection.sendParam(Call)} of Hadoop 1.x, which also writes it. */
    public static final class SendsAndWrites extends Sends {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            super.enter(self, arguments, now);
            MadeCall call = of(arguments[0]);
            if (call != null && call.connection != null) {
                call.sent = now;
            }
            return null;
        }
    }

    /** {@code IpcStreams.sendRequest(byte[])}: the bytes, which say which call it is, go to the socket now. */
    public static final class Writes extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            ServerConnection connection = connection(self);
            if (connection != null && arguments[0] instanceof byte[]) {
                RpcHeader header = RpcHeader.parse((byte[]) arguments[0]);
                MadeCall call = header == null ? null : connection.calls.get(header.callId);
                if (call != null) {
                    call.client = header.clientId;
                    call.sent = now;
                }
            }
            return null;
        }
    }

    /** {@code IpcStreams.readResponse()}: a whole response has been read. */
    public static final class Read extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            ServerConnection connection = connection(self);
            if (connection != null && thrown == null) {
                connection.lastRead = now;
            }
        }
    }

    /** {@code Client$Call.callComplete()}: with the response, with the server's exception, or without any. */
    public static final class Completes extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            MadeCall call = of(self);
            if (call == null || !call.noted.compareAndSet(false, true)) {
                return null;
            }
            ServerConnection connection = call.connection;
            if (connection != null) {
                connection.calls.remove(call.id, call);
            }
            Object error = Fields.get(self, "error");
            if (error == null || error.getClass().getName().equals("org.apache.hadoop.ipc.RemoteException")) {
                long read = connection == null ? 0 : connection.lastRead;
                call.received = read == 0 ? now : read;
            }
            Hooks.record(call);
            return null;
        }
    }
}
