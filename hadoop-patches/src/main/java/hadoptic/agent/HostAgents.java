package hadoptic.agent;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * Starts the packet agent and the socket agent with the first daemon of a host, and waits until they are ready.
 *
 * <p>A lock on {@code agents.lock} in the host's folder lets one JVM at a time look and start; the file names the
 * processes that were started, so that a later JVM finds them alive and does not start others.
 */
public final class HostAgents {
    private static final Pattern READY = Pattern.compile("\"ready\"\\s*:\\s*true");
    private static final Pattern ENDED = Pattern.compile("\"ended\"\\s*:\\s*true");
    private static final long LOOK_EVERY_MS = 20;
    /** File times come from a clock that ticks this coarsely, in milliseconds. */
    private static final long FILE_CLOCK_MS = 20;

    private final Path folder;
    private final Options options;
    /** When each program was started, milliseconds since the epoch: an older manifest is of an earlier run. */
    private final Map<String, Long> started = new HashMap<String, Long>();

    /** For a host's folder. */
    public HostAgents(Path folder, Options options) {
        this.folder = folder;
        this.options = options;
    }

    /** Starts what is not running and waits, bounded, until all is ready. Failures are told and change nothing else. */
    public void startAndWait() {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.waitMs);
        try {
            startOnce(until);
        } catch (IOException | RuntimeException failure) {
            System.err.println("hadoptic: the agents of this host could not be looked after: " + failure);
        }
        for (String[] agent : wanted()) {
            while (!ready(agent[0]) && System.nanoTime() < until) {
                sleep(LOOK_EVERY_MS);
            }
            if (!ready(agent[0])) {
                System.err.println("hadoptic: " + agent[0] + " does not say that it is ready; going on without");
            }
        }
    }

    private List<String[]> wanted() {
        List<String[]> wanted = new ArrayList<String[]>();
        if (!options.sniffer.isEmpty()) {
            wanted.add(new String[] {"sniffer", options.sniffer});
        }
        if (!options.dumpingd.isEmpty()) {
            wanted.add(new String[] {"dumpingd", options.dumpingd});
        }
        return wanted;
    }

    private void startOnce(long until) throws IOException {
        try (FileChannel file = FileChannel.open(folder.resolve("agents.lock"),
                new HashSet<OpenOption>(Arrays.asList(StandardOpenOption.CREATE, StandardOpenOption.READ,
                        StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
            FileLock lock = lock(file, until);
            if (lock == null) {
                return;
            }
            String known = read(file);
            StringBuilder now = new StringBuilder();
            for (String[] agent : wanted()) {
                String running = running(known, agent[0]);
                now.append(running.isEmpty() ? start(agent[0], agent[1]) : running);
            }
            for (String line : now.toString().split("\n")) {
                String[] words = line.split(" ");
                if (words.length == 4) {
                    started.put(words[0], Long.parseLong(words[3]));
                }
            }
            file.truncate(0);
            file.write(ByteBuffer.wrap(now.toString().getBytes(StandardCharsets.UTF_8)), 0);
        } catch (java.nio.file.AccessDeniedException others) {
            // a daemon of another user was first
        }
    }

    private static FileLock lock(FileChannel file, long until) throws IOException {
        do {
            try {
                FileLock lock = file.tryLock();
                if (lock != null) {
                    return lock;
                }
            } catch (OverlappingFileLockException heldHere) {
                // by another thread of this JVM, in tests
            }
            sleep(LOOK_EVERY_MS);
        } while (System.nanoTime() < until);
        return null;
    }

    private static String read(FileChannel file) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(4096);
        file.read(bytes, 0);
        return new String(bytes.array(), 0, bytes.position(), StandardCharsets.UTF_8);
    }

    /** The line "NAME PID TICKS STARTED" of a program that still runs, "" = none. */
    private static String running(String known, String name) {
        for (String line : known.split("\n")) {
            String[] words = line.split(" ");
            if (words.length == 4 && words[0].equals(name)) {
                try {
                    if (Identity.startTicks(Identity.text("/proc/" + words[1] + "/stat")) == Long.parseLong(words[2])) {
                        return line + "\n";
                    }
                } catch (IOException | RuntimeException gone) {
                    // its process ended
                }
            }
        }
        return "";
    }

    private String start(String name, String program) {
        try {
            File log = folder.resolve(name + ".log").toFile();
            List<String> command = new ArrayList<String>();
            File setsid = new File("/usr/bin/setsid");
            if (setsid.canExecute()) {
                // a session of its own: what is sent to the daemon's terminal or group does not end it
                command.add(setsid.getPath());
            }
            command.addAll(Arrays.asList(program, "run", "--out", folder.toString()));
            long now = System.currentTimeMillis();
            Process process = new ProcessBuilder(command)
                    .redirectInput(new File("/dev/null"))
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
                    .start();
            long pid = pid(process);
            return name + " " + pid + " " + Identity.startTicks(Identity.text("/proc/" + pid + "/stat"))
                    + " " + now + "\n";
        } catch (IOException | ReflectiveOperationException | RuntimeException failure) {
            System.err.println("hadoptic: " + name + " (" + program + ") does not start: " + failure);
            return "";
        }
    }

    private static long pid(Process process) throws ReflectiveOperationException {
        try {
            return (Long) Process.class.getMethod("pid").invoke(process);
        } catch (NoSuchMethodException java8) {
            java.lang.reflect.Field pid = process.getClass().getDeclaredField("pid");
            pid.setAccessible(true);
            return pid.getInt(process);
        }
    }

    private boolean ready(String name) {
        try {
            Path file = folder.resolve(name + ".json");
            Long since = started.get(name);
            if (since != null && Files.getLastModifiedTime(file).toMillis() < since - FILE_CLOCK_MS) {
                return false;
            }
            String manifest = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
            return READY.matcher(manifest).find() && !ENDED.matcher(manifest).find();
        } catch (IOException notYet) {
            return false;
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
    }
}
