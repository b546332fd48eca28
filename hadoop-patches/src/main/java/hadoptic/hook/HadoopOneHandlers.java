package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;

/** What is done in Hadoop 1.x in ways of its own: calls are processed, map outputs served and fetched. */
public final class HadoopOneHandlers {
    private HadoopOneHandlers() {}

    /** {@code RPC$Server.call(Class, Writable, long)}: the handler's thread processes the call that it took. */
    public static final class Processes extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Object current = Fields.get(self, "CurCall");
            Object call = current instanceof ThreadLocal ? ((ThreadLocal<?>) current).get() : null;
            RpcServerHandlers.begins(call, now);
            return call;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            RpcServerHandlers.ends(token, now);
        }
    }

    private static final class Served implements Record {
        private final long begin;
        private long end;
        private String job = "";
        private String map = "";
        private long reduce;
        private long bytes;
        private InetSocketAddress local;
        private InetSocketAddress remote;

        Served(long begin) {
            this.begin = begin;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("shuffle_served").time("t0", begin).time("t1", end).string("job", job).string("map", map)
                    .number("reduce", reduce).number("bytes", bytes).address("local", local).address("remote", remote)
                    .end();
        }
    }

    /** {@code TaskTracker$MapOutputServlet.doGet(request, response)}: one map's output for one reduce. */
    public static final class ServesMapOutput extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return new Object[] {new Served(now), arguments[0], arguments[1]};
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (!(token instanceof Object[]) || thrown != null) {
                return;
            }
            Object[] kept = (Object[]) token;
            Served served = (Served) kept[0];
            served.end = now;
            Object query = Fields.call(kept[1], "getQueryString");
            for (String pair : String.valueOf(query).split("&")) {
                if (pair.startsWith("job=")) {
                    served.job = pair.substring(4);
                } else if (pair.startsWith("map=")) {
                    served.map = pair.substring(4);
                } else if (pair.startsWith("reduce=")) {
                    served.reduce = Long.parseLong(pair.substring(7));
                }
            }
            served.bytes = Fields.numberOf(kept[2], "getContentCount", 0);
            served.local = end(kept[1], "getLocalAddr", "getLocalPort");
            served.remote = end(kept[1], "getRemoteAddr", "getRemotePort");
            Purposes.server(now, served.local, served.remote, "shuffle");
            Hooks.record(served);
        }

        private static InetSocketAddress end(Object request, String address, String port) throws Exception {
            Object ip = Fields.call(request, address);
            return ip == null ? null : Sockets.parse(ip + ":" + Fields.numberOf(request, port, 0));
        }
    }

    private static final class Fetched implements Record {
        private final long thread = Thread.currentThread().getId();
        private final long begin;
        private final long reduce;
        private final String host;
        private final String didBefore = Purposes.begin("shuffle");
        private final long waitedBefore = Waits.mine()[0];
        private long waited;
        private long end;
        private String map;
        private long bytes;
        private long raw;

        Fetched(long begin, long reduce, String host) {
            this.begin = begin;
            this.reduce = reduce;
            this.host = host;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("fetch").time("t0", begin).time("t1", end).number("th", thread).string("map", map)
                    .number("reduce", reduce).number("bytes", bytes).number("raw", raw).string("host", host)
                    .some("read_wait", waited).end();
        }
    }

    /** {@code MapOutputCopier.getMapOutput(MapOutputLocation, Path, int reduce)}. */
    public static final class FetchesMapOutput extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Object host = Fields.get(Arguments.named(arguments, "MapOutputLocation"), "ttHost");
            Object reduce = arguments[arguments.length - 1];
            return new Fetched(now, reduce instanceof Number ? ((Number) reduce).longValue() : 0,
                    host == null ? "" : host.toString());
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (!(token instanceof Fetched)) {
                return;
            }
            Fetched fetched = (Fetched) token;
            Purposes.begin(fetched.didBefore);
            Object map = Fields.get(result, "mapAttemptId");
            if (map != null) {
                fetched.end = now;
                fetched.waited = Waits.mine()[0] - fetched.waitedBefore;
                fetched.map = map.toString();
                fetched.bytes = Fields.number(result, "compressedSize", 0);
                fetched.raw = Fields.number(result, "decompressedSize", fetched.bytes);
                Hooks.record(fetched);
            }
        }
    }
}
