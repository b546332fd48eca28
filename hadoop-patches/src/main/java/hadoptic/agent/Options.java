package hadoptic.agent;

import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

/** What stands behind {@code -javaagent:JAR=}: {@code key=value} pairs, separated by commas. */
public final class Options {
    /** Folder of the host's JVMs, in which each user has a folder; "%h" in it stands for the host's name. */
    public final String out;
    /** Folder of the packet agent and the socket agent, with "%h" as well; "" = not told. */
    public final String agents;
    /** Program of the packet agent, "" = do not start it. */
    public final String sniffer;
    /** Program of the socket agent, "" = do not start it. */
    public final String dumpingd;
    /** How long a daemon waits until the two agents say that they are ready, in milliseconds. */
    public final long waitMs;
    /** How often a daemon looks whether the two agents still run, in milliseconds; 0 = never. */
    public final long watchMs;
    /** How long after the end of a host's last daemon the two agents are asked to end, in milliseconds; 0 = never. */
    public final long lingerMs;
    /** How often records are written, in milliseconds. */
    public final long flushMs;
    /** Records that may wait to be written; more are dropped and counted. */
    public final int buffer;
    /** Bytes that the records of a host may take, those of sniffer and dumpingd among them; 0 = no limit, -1 = the default. */
    public final long limit;
    /** Bytes of the file system to be left free; 0 = none, -1 = the default. */
    public final long keepFree;
    /** What could not be understood, in words. */
    public final List<String> problems;

    private Options(String out, String agents, String sniffer, String dumpingd, long waitMs, long watchMs, long lingerMs,
            long flushMs, int buffer, long limit, long keepFree, List<String> problems) {
        this.out = out;
        this.agents = agents;
        this.sniffer = sniffer;
        this.dumpingd = dumpingd;
        this.waitMs = waitMs;
        this.watchMs = watchMs;
        this.lingerMs = lingerMs;
        this.flushMs = flushMs;
        this.buffer = buffer;
        this.limit = limit;
        this.keepFree = keepFree;
        this.problems = problems;
    }

    /** Reads the arguments; what is unknown or malformed is listed in {@link #problems} and the default holds. */
    public static Options parse(String arguments) {
        String out = "";
        String agents = "";
        String sniffer = "";
        String dumpingd = "";
        long waitMs = 5000;
        long watchMs = 2000;
        long lingerMs = 10_000;
        long flushMs = 1000;
        long buffer = 65536;
        long limit = -1;
        long keepFree = -1;
        List<String> problems = new ArrayList<String>();
        for (String pair : (arguments == null ? "" : arguments).split(",")) {
            if (pair.isEmpty()) {
                continue;
            }
            int equals = pair.indexOf('=');
            String key = equals < 0 ? pair : pair.substring(0, equals);
            String value = equals < 0 ? "" : pair.substring(equals + 1);
            switch (key) {
                case "out": out = value; break;
                case "agents": agents = value; break;
                case "sniffer": sniffer = value; break;
                case "dumpingd": dumpingd = value; break;
                case "wait_ms": waitMs = number(key, value, 0, 600_000, waitMs, problems); break;
                case "watch_ms": watchMs = number(key, value, 0, 600_000, watchMs, problems); break;
                case "linger_ms": lingerMs = number(key, value, 0, 86_400_000, lingerMs, problems); break;
                case "flush_ms": flushMs = number(key, value, 1, 60_000, flushMs, problems); break;
                case "buffer": buffer = number(key, value, 16, 1 << 24, buffer, problems); break;
                case "limit": limit = number(key, value, 0, Long.MAX_VALUE, limit, problems); break;
                case "keep_free": keepFree = number(key, value, 0, Long.MAX_VALUE, keepFree, problems); break;
                default: problems.add("unknown option '" + key + "' (known: out, agents, sniffer, dumpingd, wait_ms, watch_ms, linger_ms,"
                        + " flush_ms, buffer, limit, keep_free)");
            }
        }
        return new Options(out, agents, sniffer, dumpingd, waitMs, watchMs, lingerMs, flushMs, (int) buffer,
                limit, keepFree, problems);
    }

    /** The folder that a value names, on a host of this name. */
    Path folder(String value, String host) throws IOException {
        if (value.contains("%h") && (host.isEmpty() || host.contains("/") || host.startsWith("."))) {
            throw new IOException("the host's name '" + host + "' is no name for a folder");
        }
        return Paths.get(value.replace("%h", host)).toAbsolutePath();
    }

    private static long number(String key, String value, long least, long most, long otherwise, List<String> problems) {
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // said below, with the range
        }
        problems.add("option '" + key + "' is '" + value + "', expected a number from " + least + " to " + most
                + "; using " + (otherwise < 0 ? "the default" : "" + otherwise));
        return otherwise;
    }
}
