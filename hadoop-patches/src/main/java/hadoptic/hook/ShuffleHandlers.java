package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Both sides of the shuffle: map outputs served by the NodeManager, and fetched by a reduce. */
public final class ShuffleHandlers {
    private ShuffleHandlers() {}

    private static final ThreadLocal<Long> REQUESTED = new ThreadLocal<Long>();
    private static final ThreadLocal<Request> SENDING = new ThreadLocal<Request>();
    private static final ThreadLocal<Fetching> FETCHING = new ThreadLocal<Fetching>();

    /** The tag of a request of a reduce. */
    private static final class Request {
        private final long received;
        private final String job;
        /** Outputs that were handed to the channel, which sends them in this order. */
        private final ConcurrentLinkedQueue<Served> unfinished = new ConcurrentLinkedQueue<Served>();
        /** The last of them. */
        private Served last;

        Request(long received, String job) {
            this.received = received;
            this.job = job;
        }
    }

    private static final class Served implements Record {
        private final Request request;
        private final String map;
        private final long reduce;
        private final long bytes;
        private final InetSocketAddress local;
        private final InetSocketAddress remote;
        private long end;
        /** Sums of the thread that sends. */
        private long readNs;

        Served(Request request, Object[] arguments, InetSocketAddress local, InetSocketAddress remote) throws Throwable {
            this.request = request;
            this.map = Arguments.text(arguments, 1);
            // the last two are the reduce and the MapOutputInfo
            Object reduce = arguments[arguments.length - 2];
            this.reduce = reduce instanceof Number ? ((Number) reduce).longValue() : 0;
            this.bytes = Fields.number(Fields.get(arguments[arguments.length - 1], "indexRecord"), "partLength", 0);
            this.local = local;
            this.remote = remote;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("shuffle_served").time("t0", request.received).time("t1", end).string("job", request.job)
                    .string("map", map).number("reduce", reduce).number("bytes", bytes)
                    .some("read_ns", readNs).address("local", local).address("remote", remote).end();
        }
    }

    private static Request request(Object context) {
        Object tag = Tags.get(context);
        return tag instanceof Request ? (Request) tag : null;
    }

    /** {@code channelRead0}, {@code messageReceived}: a request is there. */
    public static final class Requested extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            REQUESTED.set(now);
            return null;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            REQUESTED.set(null);
        }
    }

    /** Constructor of {@code ReduceContext}: the request was understood. */
    public static final class Understood extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Long received = REQUESTED.get();
            Object job = Fields.get(self, "jobId");
            Tags.put(self, new Request(received == null ? now : received, job == null ? "" : job.toString()));
        }
    }

    /** {@code sendMap(ReduceContext)}: the next map of the request. */
    public static final class SendsNext extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            SENDING.set(request(arguments[0]));
            return null;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            SENDING.set(null);
        }
    }

    /** {@code sendMapOutput(.., Channel, user, map, reduce, MapOutputInfo)}. */
    public static final class SendsOutput extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Request request = SENDING.get();
            if (request != null) {
                Object channel = arguments[arguments.length - 5];
                Served served = new Served(request, arguments,
                        address(channel, "localAddress", "getLocalAddress"),
                        address(channel, "remoteAddress", "getRemoteAddress"));
                request.unfinished.add(served);
                request.last = served;
                Purposes.server(now, served.local, served.remote, "shuffle");
            }
            return null;
        }

        /** Netty 4 and Netty 3 name it differently. */
        private static InetSocketAddress address(Object channel, String name, String older) throws Throwable {
            Object address = Fields.call(channel, name);
            address = address == null ? Fields.call(channel, older) : address;
            return address instanceof InetSocketAddress ? (InetSocketAddress) address : null;
        }
    }

    /** Constructor of {@code FadvisedFileRegion}, within {@code sendMapOutput}: the part of a file that is an output. */
    public static final class OpensOutput extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Request request = SENDING.get();
            if (request != null && request.last != null) {
                Tags.put(self, request.last);
            }
        }
    }

    /** {@code FadvisedFileRegion.transferTo(channel, position)}: reads, and writes what the socket takes without waiting. */
    public static final class ReadsOutput extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return now;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Object tag = Tags.get(self);
            if (token != null && tag instanceof Served) {
                ((Served) tag).readNs += now - (Long) token;
            }
        }
    }

    /** {@code ReduceMapFileCount.operationComplete(future)}: all bytes of a map's output are with the kernel, or lost. */
    public static final class Sent extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Request request = request(Fields.get(self, "reduceContext"));
            Served served = request == null ? null : request.unfinished.poll();
            if (served != null) {
                served.end = now;
                if (Boolean.TRUE.equals(Fields.call(arguments[0], "isSuccess"))) {
                    Hooks.record(served);
                }
            }
            return null;
        }
    }

    private static final class Fetching implements Record {
        private final long thread = Thread.currentThread().getId();
        private final long begin;
        private final long reduce;
        private final String host;
        private final long waitedBefore = Waits.mine()[0];
        private long waited;
        private long end;
        private String map;
        private long bytes;
        private long raw;

        Fetching(long begin, long reduce, String host) {
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

    /** {@code Fetcher.copyMapOutput(..)}: one map's output; returns null where it was fetched. */
    public static final class Fetches extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Object host = Fields.get(Arguments.named(arguments, "MapHost"), "hostName");
            Fetching fetching = new Fetching(now, Fields.number(self, "reduce", 0), host == null ? "" : host.toString());
            FETCHING.set(fetching);
            return fetching;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            FETCHING.set(null);
            Fetching fetching = (Fetching) token;
            if (fetching != null && fetching.map != null && result == null && thrown == null) {
                fetching.end = now;
                fetching.waited = Waits.mine()[0] - fetching.waitedBefore;
                Hooks.record(fetching);
            }
        }
    }

    /** {@code MapOutput.shuffle(host, in, compressedLength, decompressedLength, ..)}: its header has been read. */
    public static final class Copies extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Fetching fetching = FETCHING.get();
            Object map = Fields.get(self, "mapId");
            if (fetching != null && map != null) {
                fetching.map = map.toString();
                fetching.bytes = Arguments.number(arguments, 0);
                fetching.raw = Arguments.number(arguments, 1);
            }
            return null;
        }
    }
}
