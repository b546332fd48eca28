package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Calls that this JVM serves: received by a reader, processed by a handler, responded. */
public final class RpcServerHandlers {
    /** The call that a handler's thread works on. */
    private static final ThreadLocal<ServedCall> CURRENT = new ThreadLocal<ServedCall>();

    private RpcServerHandlers() {}

    /** What is known of a connection of a client: the tag of {@code Server$Connection}. */
    private static final class ClientConnection {
        private InetSocketAddress local;
        private InetSocketAddress remote;
        /** When the reader had the bytes of the message on which it works. */
        private volatile long received;
        /** Whether its protocol was told. */
        private volatile boolean isProtocolReported;
    }

    /** The tag of a server's call, and its record. */
    private static final class ServedCall implements Record {
        private final AtomicBoolean noted = new AtomicBoolean();
        private final long id;
        private final ClientConnection connection;
        private final long received;
        private final long queued;
        private volatile long begin;
        private volatile long end;
        private volatile long responded;
        private volatile long thread;
        private byte[] client;
        private String method;
        private String context;
        private volatile List<String> completed;
        private volatile List<String> assigned;

        ServedCall(long id, ClientConnection connection, long queued) {
            this.id = id;
            this.queued = queued;
            this.connection = connection;
            this.received = connection.received;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("rpc").time("received", received).time("begin", begin).time("end", end)
                    .time("responded", responded).number("th", thread).number("call", id).hex("client", client)
                    .string("method", method).address("local", connection.local).address("remote", connection.remote)
                    .optional("context", context).time("queued", queued)
                    .some("completed", completed).some("assigned", assigned).end();
        }
    }

    private static ServedCall of(Object call) {
        Object tag = Tags.get(call);
        return tag instanceof ServedCall ? (ServedCall) tag : null;
    }

    private static ClientConnection connection(Object connection) {
        if (connection == null) {
            return null;
        }
        Object tag = Tags.get(connection);
        if (!(tag instanceof ClientConnection)) {
            tag = new ClientConnection();
            Tags.put(connection, tag);
        }
        return (ClientConnection) tag;
    }

    /** Constructor of {@code Server$Connection}. */
    public static final class Connected extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            ClientConnection connection = connection(self);
            Object socket = Fields.get(self, "socket", "channel");
            connection.local = Sockets.local(socket);
            connection.remote = Sockets.remote(socket);
        }
    }

    /** {@code Server$Connection.processOneRpc}: a whole message is there. */
    public static final class Received extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            connection(self).received = now;
            return null;
        }
    }

    /** Constructors of the server's call. */
    public static final class Created extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (of(self) != null) {
                return;
            }
            ServedCall same = ((Object[]) token).length == 1 ? of(((Object[]) token)[0]) : null;
            if (same == null) {
                long id = Fields.number(self, "callId", Fields.number(self, "id", -1));
                ClientConnection connection = connection(Fields.get(self, "connection"));
                if (id < 0 || connection == null) {
                    return;
                }
                same = new ServedCall(id, connection, now);
                if (!connection.isProtocolReported) {
                    connection.isProtocolReported = true;
                    Object of = Fields.get(self, "connection");
                    Object name = Fields.get(of, "protocolName");
                    Purposes.rpc(now, connection.local, connection.remote, true, name == null ? Fields.get(of, "protocol") : name);
                }
            }
            Tags.put(self, same);
        }
    }

    /** This thread takes the call. */
    static void begins(Object tagged, long now) {
        ServedCall call = of(tagged);
        if (call != null) {
            call.begin = now;
            call.thread = Thread.currentThread().getId();
            CURRENT.set(call);
        }
    }

    /** What the call that this thread works on brings, and what its response takes with it; null = as before. */
    static void carries(List<String> completed, List<String> assigned) {
        ServedCall call = CURRENT.get();
        if (call != null) {
            call.completed = completed == null ? call.completed : completed;
            call.assigned = assigned == null ? call.assigned : assigned;
        }
    }

    /** The result of the call is known. */
    static void ends(Object tagged, long now) {
        ServedCall call = of(tagged);
        if (call != null && call.end == 0) {
            call.end = now;
            if (CURRENT.get() == call) {
                CURRENT.set(null);
            }
        }
    }

    /** {@code RpcCall.run()}: a handler takes the call. */
    public static final class Begins extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            begins(self, now);
            return null;
        }
    }

    /** {@code RpcCall.doResponse}, {@code setDeferredResponse}, {@code setDeferredError}: the result is known. */
    public static final class Ends extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            ends(self, now);
            return null;
        }
    }

    /** {@code Responder.doRespond(call)}: the response is written, or queued where the socket takes no more. */
    public static final class Responds extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            ServedCall call = of(arguments[0]);
            if (call != null && call.responded == 0) {
                call.responded = now;
                call.end = call.end == 0 ? now : call.end;
            }
            return arguments[0];
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            ServedCall call = of(token);
            if (call == null || !call.noted.compareAndSet(false, true)) {
                return;
            }
            if (thrown != null) {
                call.responded = 0;
            }
            if (call.begin == 0) {
                // refused before a handler took it
                call.begin = call.end;
                call.thread = Thread.currentThread().getId();
            }
            call.client = bytes(Fields.get(token, "clientId"));
            call.method = RpcMethods.nameOf(Fields.get(token, "rpcRequest", "param"));
            Object context = Fields.get(Fields.get(token, "callerContext"), "context");
            call.context = context == null ? "" : context.toString();
            Hooks.record(call);
        }

        private static byte[] bytes(Object value) {
            return value instanceof byte[] ? (byte[]) value : null;
        }
    }
}
