package hadoptic.hook;

import java.net.Socket;

/** Where threads block in reads and writes of sockets. */
public final class WaitHandlers {
    private WaitHandlers() {}

    private static final class Blocked {
        private final Waits.Connection connection;
        private final boolean writing;
        private final long from;

        Blocked(Waits.Connection connection, boolean writing, long from) {
            this.connection = connection;
            this.writing = writing;
            this.from = from;
        }
    }

    private static Object blocked(Waits.Connection connection, boolean writing, long now) {
        return connection == null ? null : new Blocked(connection, writing, now);
    }

    private abstract static class Ends extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            if (token != null) {
                Blocked blocked = (Blocked) token;
                blocked.connection.blocked(blocked.writing, blocked.from, now);
            }
        }
    }

    /**
     * {@code SocketIOWithTimeout$SelectorPool.select(channel, operation, timeout)}: Hadoop's streams over channels come here
     * only when the socket has nothing to read or takes no more.
     */
    public static final class Selects extends Ends {
        /** {@code SelectionKey.OP_READ}. */
        private static final int READ = 1;
        /** {@code SelectionKey.OP_WRITE}. */
        private static final int WRITE = 4;

        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            int operation = (Integer) arguments[1];
            return operation == READ || operation == WRITE
                    ? blocked(Waits.of(arguments[0]), operation == WRITE, now)
                    : null;
        }
    }

    /** {@code Socket.getInputStream()} and {@code getOutputStream()}: whose stream it is. */
    public static final class GivesStream extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (result != null && ((Socket) self).getChannel() == null && Waits.known(result) == null) {
                Waits.Connection connection = Waits.of(self);
                if (connection != null) {
                    Waits.know(result, connection);
                }
            }
        }
    }

    /** A read or write of the JDK's own stream, which blocks inside; its copying counts too. */
    public static final class Streams extends Ends {
        private final boolean writing;

        /** Writes, or reads. */
        public Streams(boolean writing) {
            this.writing = writing;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return blocked(Waits.known(self), writing, now);
        }
    }
}
