package hadoptic.agent;

import hadoptic.log.Cpu;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;

/** Who this JVM is, as the kernel tells it. */
public final class Identity {
    /** Ticks of /proc, on every machine. */
    private static final long TICKS_PER_S = 100;
    private static final int MAX_ADDRESSES = 64;

    /** Process id as /proc counts: the machine's, or in a process namespace with a /proc of its own that one's. */
    public final long pid;
    /** Ids in the process namespaces from that of /proc to the innermost; empty = there is but one. */
    public final long[] nsPids;
    /** Start time in clock ticks since boot, as outside of any time namespace. */
    public final long startTicks;
    /** Host name (of the UTS namespace). */
    public final String host;
    /** Main class, without arguments. */
    public final String main;
    /** Role, "" = not Hadoop's. */
    public final String role;

    private Identity(long pid, long[] nsPids, long startTicks, String host, String main, String role) {
        this.pid = pid;
        this.nsPids = nsPids;
        this.startTicks = startTicks;
        this.host = host;
        this.main = main;
        this.role = role;
    }

    /** Reads /proc and the system properties. */
    public static Identity read() throws IOException {
        String stat = Cpu.text("/proc/self/stat");
        String main = mainClass(System.getProperty("sun.java.command", ""));
        long[] pids = Cpu.numbers(Cpu.text("/proc/self/status"), "NSpid:");
        return new Identity(Long.parseLong(stat.substring(0, stat.indexOf(' '))), pids.length > 1 ? pids : new long[0],
                startTicks(stat) - ticksAhead(),
                Cpu.text("/proc/sys/kernel/hostname").trim(), main, Roles.of(main));
    }

    /** Field 22 of a /proc/PID/stat line; the command in field 2 may hold blanks and parentheses. */
    public static long startTicks(String stat) {
        return Cpu.afterCommand(stat, 19);
    }

    /** By how much the time since boot is ahead of the machine's, in a time namespace. */
    private static long ticksAhead() {
        try {
            long[] offset = Cpu.numbers(Cpu.text("/proc/self/timens_offsets"), "boottime");
            return offset.length < 2 ? 0 : offset[0] * TICKS_PER_S + offset[1] / (1_000_000_000L / TICKS_PER_S);
        } catch (IOException | RuntimeException unknown) {
            // a kernel without time namespaces
            return 0;
        }
    }

    /** First word of a Java command line; for {@code -jar FILE} the file's name without its folders. */
    public static String mainClass(String command) {
        int blank = command.indexOf(' ');
        String first = blank < 0 ? command : command.substring(0, blank);
        return first.substring(first.lastIndexOf('/') + 1);
    }

    /** The task attempt that a task JVM's command line names, "" = none. */
    public static String attemptOf(String role, String command) {
        if (role.equals("YarnChild")) {
            for (String word : command.split(" ")) {
                if (word.startsWith("attempt_")) {
                    return word;
                }
            }
        }
        return "";
    }

    /** Inode of the network namespace, 0 = unknown. */
    public static long netns() {
        try {
            String link = Files.readSymbolicLink(Paths.get("/proc/self/ns/net")).toString();
            return Long.parseLong(link.substring(link.indexOf('[') + 1, link.indexOf(']')));
        } catch (IOException | RuntimeException unreadable) {
            return 0;
        }
    }

    /** Addresses of the host's interfaces. */
    public static List<String> addresses() {
        List<String> addresses = new ArrayList<String>();
        try {
            Enumeration<NetworkInterface> interfaces = NetworkInterface.getNetworkInterfaces();
            while (interfaces != null && interfaces.hasMoreElements() && addresses.size() < MAX_ADDRESSES) {
                for (InetAddress address : Collections.list(interfaces.nextElement().getInetAddresses())) {
                    String text = address.getHostAddress();
                    int scope = text.indexOf('%');
                    addresses.add(scope < 0 ? text : text.substring(0, scope));
                }
            }
        } catch (IOException none) {
            // a host without a readable interface has no address to tell
        }
        return addresses;
    }

    /** Hadoop's version from the name of its main jar on the class path, "" = not told. */
    public static String hadoopVersion(String classPath) {
        for (String jar : new String[] {"hadoop-common-", "hadoop-core-", "hadoop-mapreduce-client-core-"}) {
            for (int at = classPath.indexOf(jar); at >= 0; at = classPath.indexOf(jar, at + 1)) {
                int version = at + jar.length();
                int end = classPath.indexOf(".jar", version);
                if (end > version && Character.isDigit(classPath.charAt(version))
                        && classPath.substring(version, end).indexOf(':') < 0
                        && !classPath.substring(version, end).endsWith("tests")) {
                    return classPath.substring(version, end);
                }
            }
        }
        return "";
    }
}
