package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** What connections are for, told as soon as it is known; of several records of a connection the last counts. */
public final class Purposes {
    /** What was told last, so that it is not told with each use; a newer one may displace an older one. */
    private static final int SLOTS = 1024;
    private static final AtomicReferenceArray<Use> REPORTED = new AtomicReferenceArray<Use>(SLOTS);
    private static final ThreadLocal<String> DOING = new ThreadLocal<String>();
    /** By port: whether web pages are served there. */
    private static final boolean[] WEB = new boolean[1 << 16];

    private Purposes() {}

    private static final class Use implements Record {
        private final long t;
        private final InetSocketAddress local;
        private final InetSocketAddress remote;
        private final String purpose;
        private final boolean server;
        private final String protocol;

        Use(long t, InetSocketAddress local, InetSocketAddress remote, String purpose, boolean server, String protocol) {
            this.t = t;
            this.local = local;
            this.remote = remote;
            this.purpose = purpose;
            this.server = server;
            this.protocol = protocol;
        }

        boolean sameAs(Use other) {
            return other != null && purpose.equals(other.purpose) && local.equals(other.local) && remote.equals(other.remote);
        }

        @Override
        public void write(JsonLine line) {
            line.begin("use").time("t", t).address("local", local).address("remote", remote).string("purpose", purpose)
                    .string("side", server ? "server" : "client").optional("protocol", protocol).end();
        }
    }

    private static void use(long now, InetSocketAddress local, InetSocketAddress remote, String purpose, boolean server,
            String protocol) {
        if (local == null || remote == null) {
            return;
        }
        Use use = new Use(now, local, remote, purpose, server, protocol);
        int slot = slot(local, remote);
        if (!use.sameAs(REPORTED.get(slot))) {
            REPORTED.set(slot, use);
            Hooks.record(use);
        }
    }

    private static int slot(InetSocketAddress local, InetSocketAddress remote) {
        int hash = 31 * local.getPort() + remote.hashCode();
        return (hash ^ hash >>> 10) & SLOTS - 1;
    }

    /** A connection that this process opened. */
    static void client(long now, InetSocketAddress local, InetSocketAddress remote, String purpose) {
        use(now, local, remote, purpose, false, "");
    }

    /** A connection that it accepted. */
    static void server(long now, InetSocketAddress local, InetSocketAddress remote, String purpose) {
        use(now, local, remote, purpose, true, "");
    }

    /** A connection for calls of a protocol: a class, or its name. */
    static void rpc(long now, InetSocketAddress local, InetSocketAddress remote, boolean server, Object protocol) {
        String name = protocol instanceof Class ? ((Class<?>) protocol).getName() : String.valueOf(protocol);
        boolean umbilical = name.endsWith(".TaskUmbilicalProtocol");
        use(now, local, remote, umbilical ? "umbilical" : "rpc", server, protocol == null ? "" : name);
    }

    /** A connection was opened: by a thread of which it may be known what it does. */
    static void opened(long now, InetSocketAddress local, InetSocketAddress remote) {
        // an earlier one may have had the same ports
        REPORTED.set(slot(local, remote), null);
        String doing = DOING.get();
        if (doing != null) {
            client(now, local, remote, doing);
        }
    }

    /** A connection was accepted. */
    static void accepted(long now, InetSocketAddress local, InetSocketAddress remote) {
        REPORTED.set(slot(local, remote), null);
        if (WEB[local.getPort() & 0xffff]) {
            server(now, local, remote, "http");
        }
    }

    /** A socket listens from now on; tells what for, null = not known. */
    static String listens(InetSocketAddress local) {
        String doing = DOING.get();
        WEB[local.getPort() & 0xffff] = "http".equals(doing);
        return doing;
    }

    /** From now on this thread does something; returns what it did before. */
    static String begin(String what) {
        String before = DOING.get();
        DOING.set(what);
        return before;
    }

    /** A method in which connections and listening sockets have one purpose. */
    public static final class Does extends Handler {
        private final String purpose;

        /** This one. */
        public Does(String purpose) {
            this.purpose = purpose;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return begin(purpose);
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            begin((String) token);
        }
    }
}
