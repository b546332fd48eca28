package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;

/** Connections that the JVM opens, accepts and waits for, seen in the JDK's own sockets: all of them. */
public final class ConnectionHandlers {
    private ConnectionHandlers() {}

    private static final class Connection implements Record {
        private final String kind;
        private final long t;
        private final long thread = Thread.currentThread().getId();
        private final InetSocketAddress local;
        private final InetSocketAddress remote;

        Connection(String kind, long t, InetSocketAddress local, InetSocketAddress remote) {
            this.kind = kind;
            this.t = t;
            this.local = local;
            this.remote = remote;
        }

        @Override
        public void write(JsonLine line) {
            line.begin(kind).time("t", t).number("th", thread).address("local", local).address("remote", remote).end();
        }
    }

    private static final class Listen implements Record {
        private final long t;
        private final InetSocketAddress local;
        private final String purpose;

        Listen(long t, InetSocketAddress local, String purpose) {
            this.t = t;
            this.local = local;
            this.purpose = purpose;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("listen").time("t", t).address("local", local).optional("purpose", purpose).end();
        }
    }

    private static void note(String kind, Object socket, long now) throws Exception {
        InetSocketAddress local = Sockets.local(socket);
        InetSocketAddress remote = Sockets.remote(socket);
        if (local != null && remote != null) {
            Hooks.record(new Connection(kind, now, local, remote));
            if (kind.equals("open")) {
                Purposes.opened(now, local, remote);
            } else {
                Purposes.accepted(now, local, remote);
            }
        }
    }

    /** A connect that blocks until the connection stands. */
    public static final class Opened extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (thrown == null) {
                note("open", self, now);
            }
        }
    }

    /** A connect or finishConnect of a channel, which tells by its result whether the connection stands. */
    public static final class OpenedIfTrue extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return ((SocketChannel) self).isConnected();
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (Boolean.TRUE.equals(result) && Boolean.FALSE.equals(token)) {
                note("open", self, now);
            }
        }
    }

    /** The constructor of accepted channels. */
    public static final class AcceptedChannel extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            note("accept", self, now);
        }
    }

    /** ServerSocket.implAccept(Socket). */
    public static final class AcceptedSocket extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (thrown == null) {
                note("accept", ((Object[]) token)[0], now);
            }
        }
    }

    /** A bind of a listening socket. */
    public static final class Listens extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            InetSocketAddress local = thrown == null ? Sockets.local(self) : null;
            if (local != null) {
                Hooks.record(new Listen(now, local, Purposes.listens(local)));
            }
        }
    }
}
