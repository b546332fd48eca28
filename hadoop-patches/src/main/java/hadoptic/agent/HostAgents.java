package hadoptic.agent;

import hadoptic.file.Inode;
import hadoptic.file.User;
import hadoptic.log.Cpu;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
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
 * Starts the packet agent and the socket agent with the first daemon of a host, waits until they are ready, starts them
 * again when they die, and has them asked to end after the last daemon.
 *
 * <p>A lock on {@code agents.lock} in the agents' folder lets one JVM at a time look and start; the file names the
 * processes that were started, so that a later JVM finds them alive and does not start others. The folder belongs to the
 * user of the first daemon: only his daemons look after the agents. Each daemon, of whatever user, leaves a mark
 * {@code daemon-PID-TICKS} in the JVMs' folder, by which the others know that the agents are still needed.
 */
public final class HostAgents {
    private static final Pattern READY = Pattern.compile("\"ready\"\\s*:\\s*true");
    private static final Pattern ENDED = Pattern.compile("\"ended\"\\s*:\\s*true");
    private static final long LOOK_EVERY_MS = 20;
    /** File times come from a clock that ticks this coarsely, in milliseconds. */
    private static final long FILE_CLOCK_MS = 20;
    /** How long a process without a command line is waited for, in milliseconds. */
    private static final long EXEC_MS = 2000;
    private static final int MAX_MANIFEST_BYTES = 1 << 20;
    private static final int MAX_MARKS = 4096;

    private final AgentsFolder folder;
    private final Path marks;
    private final Options options;
    private final User me;
    /** Whether the lock is of this user. */
    private volatile boolean ours;
    /** When each program was started, milliseconds since the epoch: an older manifest is of an earlier run. */
    private final Map<String, Long> started = new HashMap<String, Long>();

    private HostAgents(AgentsFolder folder, Path marks, Options options, User me) {
        this.folder = folder;
        this.marks = marks;
        this.options = options;
        this.me = me;
    }

    /** For a daemon that is told to look after them, null = it cannot; with the folder for the marks of daemons. */
    static HostAgents of(Options options, Identity identity, Path marks, User me) {
        try {
            if (options.agents.isEmpty()) {
                throw new IOException("option 'agents' is missing: the folder for what they write");
            }
            if (identity.nsPids.length > 0) {
                throw new IOException("this JVM has a process namespace of its own; start them outside of it");
            }
            leaveMark(marks, me);
            Path folder = options.folder(options.agents, identity.host);
            return new HostAgents(AgentsFolder.make(folder, me), marks, options, me);
        } catch (IOException | RuntimeException failure) {
            System.err.println("hadoptic: this daemon does not start the agents of the host: " + failure.getMessage());
            return null;
        }
    }

    /** Starts what is not running and waits, bounded, until all is ready. Failures are told and change nothing else. */
    public void startAndWait() {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.waitMs);
        try {
            if (!folder.isOurs()) {
                System.err.println("hadoptic: " + folder + " is another user's: his daemons look after the agents of this host");
                return;
            }
            startOnce(until, false);
        } catch (IOException | RuntimeException failure) {
            System.err.println("hadoptic: the agents of this host could not be looked after: " + failure);
        }
        waitUntilReady(until);
        if (ours && options.watchMs > 0) {
            Thread watch = new Thread(new Watch(), "hadoptic-agents");
            watch.setDaemon(true);
            watch.start();
        }
    }

    private void waitUntilReady(long until) {
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

    /** Says that a daemon is here, and takes away the marks of this user's daemons that are gone. */
    private static void leaveMark(Path marks, User me) throws IOException {
        String stat = Cpu.text("/proc/self/stat");
        Path mark = marks.resolve("daemon-" + stat.substring(0, stat.indexOf(' ')) + "-" + Identity.startTicks(stat));
        int looked = 0;
        try (DirectoryStream<Path> all = Files.newDirectoryStream(marks, "daemon-*-*")) {
            for (Path each : all) {
                Inode about = ++looked > MAX_MARKS ? null : Inode.at(each);
                String[] words = each.getFileName().toString().split("-");
                if (about != null && about.isFile() && me.owns(about) && words.length == 3 && !lives(words[1], words[2])) {
                    Files.deleteIfExists(each);
                }
                if (looked > MAX_MARKS) {
                    break;
                }
            }
        }
        if (Inode.at(mark) == null) {
            Files.createFile(mark);
        }
    }

    /** Whether a process still runs, known by its number and start time. */
    private static boolean lives(String pid, String ticks) {
        try {
            return Identity.startTicks(Cpu.text("/proc/" + Long.parseLong(pid) + "/stat")) == Long.parseLong(ticks);
        } catch (IOException | RuntimeException gone) {
            return false;
        }
    }

    /** Looks whether the agents run, until the JVM ends. What goes wrong is told once, and looked at again. */
    private final class Watch implements Runnable {
        /** Starts in a row of a program that does not stay. */
        private static final int TRIES = 5;
        private int tries;
        private boolean failureTold;

        @Override
        public void run() {
            while (tries < TRIES) {
                try {
                    Thread.interrupted();
                    sleep(options.watchMs);
                    tries = startOnce(System.nanoTime(), true) ? tries + 1 : 0;
                    failureTold = false;
                } catch (Throwable failure) {
                    tell(failure);
                }
            }
            System.err.println("hadoptic: an agent of this host dies at once; it is not started again");
        }

        private void tell(Throwable failure) {
            try {
                if (!failureTold) {
                    failureTold = true;
                    System.err.println("hadoptic: the agents of this host could not be looked after: " + failure);
                }
            } catch (Throwable again) {
                // no memory to say it
            }
        }
    }

    /** This daemon ends: somebody waits until the host has none any more, and then asks the agents to end. */
    public void leave() {
        if (!ours || options.lingerMs == 0 || wanted().isEmpty()) {
            return;
        }
        try {
            folder.own(Stopper.LOCK);
            new ProcessBuilder(detached(Stopper.command(folder, marks, (options.lingerMs + 999) / 1000)))
                    .redirectInput(new File("/dev/null"))
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(folder.own("stopper.log").toFile()))
                    .start();
        } catch (IOException failure) {
            System.err.println("hadoptic: nobody will stop the agents of this host: " + failure);
        }
    }

    /**
     * Starts what does not run. Once it has been seen running, only what died: who ended in an orderly way was asked to.
     * Returns whether something was started.
     */
    private synchronized boolean startOnce(long until, boolean again) throws IOException {
        boolean any = false;
        try (FileChannel file = FileChannel.open(folder.resolve("agents.lock"),
                new HashSet<OpenOption>(Arrays.asList(StandardOpenOption.CREATE, StandardOpenOption.READ,
                        StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
            if (!folder.isOwn(folder.resolve("agents.lock"))) {
                // of another user, perhaps of a container's: what it says would be believed, and its processes ended
                return false;
            }
            FileLock lock = lock(file, until);
            ours = true;
            if (lock == null) {
                return false;
            }
            String known = read(file);
            StringBuilder now = new StringBuilder();
            for (String[] agent : wanted()) {
                String running = running(known, agent[0]);
                if (running.isEmpty() && (!again || !ended(agent[0]))) {
                    any = true;
                    if (again) {
                        System.err.println("hadoptic: " + agent[0] + " has died and is started again");
                    }
                    running = start(agent[0], agent[1]);
                }
                now.append(running);
            }
            for (String line : now.toString().split("\n")) {
                String[] words = line.split(" ");
                if (words.length == 4) {
                    started.put(words[0], Long.parseLong(words[3]));
                }
            }
            // This JVM may end at any moment, and whoever stops the agents later reads this: it is never without them.
            if (!now.toString().equals(known)) {
                byte[] bytes = now.toString().getBytes(StandardCharsets.UTF_8);
                file.write(ByteBuffer.wrap(bytes), 0);
                file.truncate(bytes.length);
            }
        } catch (java.nio.file.AccessDeniedException others) {
            // a daemon of another user was first
        }
        return any;
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
    private String running(String known, String name) {
        for (String line : known.split("\n")) {
            String[] words = line.split(" ");
            if (words.length == 4 && words[0].equals(name) && lives(words[1], words[2]) && isAgent(words[1])) {
                return line + "\n";
            }
        }
        return "";
    }

    /** Whether a process is one that this user, or root, has started for this folder. */
    private boolean isAgent(String pid) {
        try {
            List<String> words = Arrays.asList(commandLine(pid).split("\0"));
            return (me.uid == 0 || User.ofProcess(pid) == me.uid) && words.contains("--out") && words.contains(folder.toString());
        } catch (IOException | RuntimeException gone) {
            return false;
        }
    }

    /** A process has none for a moment while it becomes another program, as setsid does; "" = it has ended, or has none for long. */
    static String commandLine(String pid) throws IOException {
        String line = Cpu.text("/proc/" + pid + "/cmdline");
        for (long waited = 0; line.isEmpty() && waited < EXEC_MS && !isZombie(pid); waited += LOOK_EVERY_MS) {
            sleep(LOOK_EVERY_MS);
            line = Cpu.text("/proc/" + pid + "/cmdline");
        }
        return line;
    }

    private static boolean isZombie(String pid) throws IOException {
        String stat = Cpu.text("/proc/" + pid + "/stat");
        char state = stat.charAt(stat.lastIndexOf(')') + 2);
        return state == 'Z' || state == 'X';
    }

    private String start(String name, String program) {
        try {
            File log = folder.own(name + ".log").toFile();
            List<String> command = detached(program, "run", "--out", folder.toString());
            long now = System.currentTimeMillis();
            Process process = new ProcessBuilder(command)
                    .redirectInput(new File("/dev/null"))
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
                    .start();
            long pid = pid(process);
            return name + " " + pid + " " + Identity.startTicks(Cpu.text("/proc/" + pid + "/stat"))
                    + " " + now + "\n";
        } catch (IOException | ReflectiveOperationException | RuntimeException failure) {
            System.err.println("hadoptic: " + name + " (" + program + ") does not start: " + failure);
            return "";
        }
    }

    /** A command in a session of its own, if that can be: what is sent to the daemon's terminal or group does not end it. */
    private static List<String> detached(String... words) {
        List<String> command = new ArrayList<String>();
        File setsid = new File("/usr/bin/setsid");
        if (setsid.canExecute()) {
            command.add(setsid.getPath());
        }
        command.addAll(Arrays.asList(words));
        return command;
    }

    static long pid(Process process) throws ReflectiveOperationException {
        try {
            return (Long) Process.class.getMethod("pid").invoke(process);
        } catch (NoSuchMethodException java8) {
            java.lang.reflect.Field pid = process.getClass().getDeclaredField("pid");
            pid.setAccessible(true);
            return pid.getInt(process);
        }
    }

    private boolean ready(String name) {
        String manifest = manifest(name);
        return READY.matcher(manifest).find() && !ENDED.matcher(manifest).find();
    }

    /** Whether a program says that it ended in an orderly way. */
    private boolean ended(String name) {
        return ENDED.matcher(manifest(name)).find();
    }

    /** What a program says of its present run, "" = nothing yet. */
    private String manifest(String name) {
        try {
            Path file = folder.resolve(name + ".json");
            Long since = started.get(name);
            if (since != null && Files.getLastModifiedTime(file).toMillis() < since - FILE_CLOCK_MS) {
                return "";
            }
            Inode about = Inode.at(file);
            if (about == null || !about.isFile() || Files.size(file) > MAX_MANIFEST_BYTES) {
                return "";
            }
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (IOException notYet) {
            return "";
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
