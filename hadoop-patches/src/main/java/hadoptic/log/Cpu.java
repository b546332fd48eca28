package hadoptic.log;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.StringTokenizer;

/** What /proc tells, first of all CPU time: Java's own way to ask costs more than all the rest of the agent's start. */
public final class Cpu {
    /** Ticks of /proc: the kernel counts 100 a second for programs, on every machine. */
    private static final long NS_PER_TICK = 10_000_000L;

    private Cpu() {}

    /** CPU time of this process in nanoseconds, in steps of 10 ms; 0 = unknown. */
    public static long ofProcess() {
        try {
            String stat = text("/proc/self/stat");
            return NS_PER_TICK * (afterCommand(stat, 11) + afterCommand(stat, 12));
        } catch (IOException | RuntimeException unreadable) {
            return 0;
        }
    }

    /** CPU time of the calling thread in nanoseconds, as of the kernel's last tick (1 to 10 ms ago); 0 = unknown. */
    public static long ofThread() {
        try {
            String text = text("/proc/thread-self/schedstat");
            return Long.parseLong(text.substring(0, text.indexOf(' ')));
        } catch (IOException | RuntimeException unreadable) {
            return 0;
        }
    }

    /**
     * Of the calling thread: nanoseconds in which it ran, as of the kernel's last tick, and in which it could have run and had no
     * processor; 0 = unknown.
     */
    public static long[] ranAndReady() {
        try {
            String text = text("/proc/thread-self/schedstat");
            int space = text.indexOf(' ');
            return new long[] {
                Long.parseLong(text.substring(0, space)),
                Long.parseLong(text.substring(space + 1, text.indexOf(' ', space + 1)))};
        } catch (IOException | RuntimeException unreadable) {
            return new long[2];
        }
    }

    /** Of the threads that live: nanoseconds in which they ran, and in which they could have run and had no processor. */
    public static long[] ranAndWaited() {
        long[] sums = new long[2];
        String[] threads = new File("/proc/self/task").list();
        for (int i = 0; threads != null && i < threads.length; i++) {
            try {
                String[] words = text("/proc/self/task/" + threads[i] + "/schedstat").split(" ");
                sums[0] += Long.parseLong(words[0]);
                sums[1] += Long.parseLong(words[1]);
            } catch (IOException | RuntimeException ended) {
                // it is not there any more
            }
        }
        return sums;
    }

    /** A number of a /proc/PID/stat line, counted from 0 behind the command, which may hold blanks and parentheses. */
    public static long afterCommand(String stat, int field) {
        int at = stat.lastIndexOf(')') + 2;
        for (int i = 0; i < field; i++) {
            at = stat.indexOf(' ', at) + 1;
        }
        int end = stat.indexOf(' ', at);
        return Long.parseLong(end < 0 ? stat.substring(at).trim() : stat.substring(at, end));
    }

    /** The numbers of the line that begins with this word, in a text of the kernel's; none = there is no such line. */
    public static long[] numbers(String text, String word) {
        int begin = ("\n" + text).indexOf("\n" + word);
        if (begin < 0) {
            return new long[0];
        }
        int end = text.indexOf('\n', begin);
        StringTokenizer words = new StringTokenizer(text.substring(begin + word.length(), end < 0 ? text.length() : end));
        long[] numbers = new long[words.countTokens()];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = Long.parseLong(words.nextToken());
        }
        return numbers;
    }

    /** A small text file of the kernel. */
    public static String text(String path) throws IOException {
        try (InputStream in = new FileInputStream(path)) {
            byte[] part = new byte[1024];
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(part.length);
            for (int n = in.read(part); n > 0; n = in.read(part)) {
                bytes.write(part, 0, n);
            }
            return new String(bytes.toByteArray(), StandardCharsets.UTF_8);
        }
    }
}
