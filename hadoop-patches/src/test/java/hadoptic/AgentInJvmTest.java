package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.commons.AdviceAdapter;
import org.objectweb.asm.commons.ClassRemapper;
import org.objectweb.asm.commons.SimpleRemapper;

/** The agent in JVMs of its own: what they record, and who starts the other agents of the host. */
class AgentInJvmTest {
    private static final String TASK = "org/apache/hadoop/mapred/Task";
    static final String DAEMON = "org.apache.hadoop.hdfs.qjournal.server.JournalNode";

    @TempDir
    static Path built;

    @TempDir
    Path capture;

    /** A jar like the one that is delivered, only with ASM under its own name. */
    @BeforeAll
    static void buildJar() throws Exception {
        buildJar(built);
    }

    static void buildJar(Path built) throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", "hadoptic.agent.Agent");
        manifest.getMainAttributes().putValue("Agent-Class", "hadoptic.agent.Agent");
        manifest.getMainAttributes().putValue("Main-Class", "hadoptic.agent.Attach");
        manifest.getMainAttributes().putValue("Can-Retransform-Classes", "true");
        try (OutputStream file = Files.newOutputStream(built.resolve("agent.jar"));
                JarOutputStream jar = new JarOutputStream(file, manifest)) {
            Path classes = folderOf(hadoptic.agent.Agent.class);
            try (Stream<Path> all = Files.walk(classes)) {
                for (Path c : all.filter(Files::isRegularFile).collect(Collectors.toList())) {
                    jar.putNextEntry(new JarEntry(classes.relativize(c).toString()));
                    jar.write(Files.readAllBytes(c));
                }
            }
            for (Class<?> ofJar : Arrays.asList(ClassReader.class, AdviceAdapter.class)) {
                try (java.util.zip.ZipFile zip = new java.util.zip.ZipFile(folderOf(ofJar).toFile())) {
                    for (java.util.zip.ZipEntry entry : java.util.Collections.list(zip.entries())) {
                        if (entry.getName().startsWith("org/objectweb/") && !entry.isDirectory()) {
                            jar.putNextEntry(new JarEntry(entry.getName()));
                            jar.write(PatchedClassesTest.bytes(zip.getInputStream(entry)));
                        }
                    }
                }
            }
        }
        // A class of another shape under the name of one of Hadoop's, as a later version may bring it.
        ClassWriter changed = new ClassWriter(0);
        new ClassReader(PatchedClassesTest.original("hadoptic/PatchedClassesTest$Changed")).accept(
                new ClassRemapper(changed, new SimpleRemapper("hadoptic/PatchedClassesTest$Changed", TASK)), 0);
        Path task = built.resolve(TASK + ".class");
        Files.createDirectories(task.getParent());
        Files.write(task, changed.toByteArray());
        // The same program under the name of a daemon: the role is told by the main class.
        ClassWriter daemon = new ClassWriter(0);
        new ClassReader(PatchedClassesTest.original("hadoptic/SocketProgram")).accept(
                new ClassRemapper(daemon, new SimpleRemapper("hadoptic/SocketProgram", DAEMON.replace('.', '/'))), 0);
        Path file = built.resolve(DAEMON.replace('.', '/') + ".class");
        Files.createDirectories(file.getParent());
        Files.write(file, daemon.toByteArray());
    }

    /** The class path of the tests, where the agent's own classes are not to be found beside its jar. */
    static String classPath() {
        String agent = folderOf(hadoptic.agent.Agent.class).toString();
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(part -> !part.equals(agent)).collect(Collectors.joining(File.pathSeparator));
    }

    private static Path folderOf(Class<?> type) {
        try {
            return Paths.get(type.getProtectionDomain().getCodeSource().getLocation().toURI());
        } catch (java.net.URISyntaxException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    private Process java(String options, String main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(Arrays.asList(
                System.getProperty("java.home") + "/bin/java",
                "-javaagent:" + built.resolve("agent.jar") + "=linger_ms=0,keep_free=0,agents=" + capture.resolve("agents")
                        + ",out=" + capture.resolve("jvm") + options,
                "-cp", built + File.pathSeparator + folderOf(SocketProgram.class), main));
        command.addAll(Arrays.asList(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        if (!command.contains("stay")) {
            builder.redirectOutput(File.createTempFile("jvm", ".out", built.toFile()));
        }
        return builder.start();
    }

    private static void finish(Process process) throws Exception {
        assertTrue(process.waitFor(60, TimeUnit.SECONDS), "JVM does not end");
        assertEquals(0, process.exitValue());
    }

    private List<String> lines(String pattern) throws IOException {
        List<String> lines = new ArrayList<>();
        try (Stream<Path> all = Files.walk(capture)) {
            for (Path p : all.filter(p -> p.getFileName().toString().matches(pattern)).collect(Collectors.toList())) {
                lines.addAll(Files.readAllLines(p, StandardCharsets.UTF_8));
            }
        }
        return lines;
    }

    private static long count(List<String> lines, String part) {
        return lines.stream().filter(line -> line.contains(part)).count();
    }

    @Test
    void recordsEachConnectionAtBothEndsWhicheverWayItIsMade() throws Exception {
        finish(java("", "hadoptic.SocketProgram", "sockets"));
        List<String> lines = lines("jvm-.*\\.jsonl");
        assertTrue(lines.get(0).startsWith("{\"k\":\"header\""), lines.get(0));
        assertTrue(lines.get(lines.size() - 1).startsWith("{\"k\":\"end\""), "no end");
        assertEquals(SocketProgram.CONNECTIONS, count(lines, "\"k\":\"open\""));
        assertEquals(SocketProgram.CONNECTIONS, count(lines, "\"k\":\"accept\""));
        assertEquals(SocketProgram.LISTENERS, count(lines, "\"k\":\"listen\""));
        for (String line : lines) {
            if (line.contains("\"k\":\"open\"")) {
                String local = line.replaceAll(".*\"local\":\"([^\"]*)\".*", "$1");
                String remote = line.replaceAll(".*\"remote\":\"([^\"]*)\".*", "$1");
                assertEquals(1, lines.stream().filter(other -> other.contains("\"k\":\"accept\"")
                        && other.contains("\"local\":\"" + remote + "\",\"remote\":\"" + local + "\"")).count(), line);
            }
        }
    }

    @Test
    void aHaltedJvmLosesNothingThatHappenedBefore() throws Exception {
        finish(java(",flush_ms=60000", "hadoptic.SocketProgram", "sockets", "halt"));
        List<String> lines = lines("jvm-.*\\.jsonl");
        assertEquals(SocketProgram.CONNECTIONS, count(lines, "\"k\":\"open\""));
        assertEquals(0, count(lines, "\"k\":\"end\""));
    }

    @Test
    void aFolderThatCannotBeWrittenLeavesTheJvmAlone() throws Exception {
        Path file = Files.createFile(Files.createDirectory(capture.resolve("jvm")).resolve("file"));
        Process process = java("/file", "hadoptic.SocketProgram", "sockets");
        finish(process);
        assertTrue(Files.isRegularFile(file));
    }

    @Test
    void twoDaemonsThatStartAtOnceStartEachAgentOnce() throws Exception {
        Path program = agentProgram("0.5");
        String options = ",sniffer=" + program + ",dumpingd=" + program + ",wait_ms=30000";
        Process first = java(options, DAEMON, "wait");
        Process second = java(options, DAEMON, "wait");
        finish(first);
        finish(second);
        assertEquals(2, lines("started\\.txt").size(), "one start for sniffer, one for dumpingd");
        // each waited until both were ready before its main class began
        assertEquals(2, lines("main\\.txt").stream().filter("ready"::equals).count());
        Process third = java(options, DAEMON, "wait");
        finish(third);
        assertEquals(2, lines("started\\.txt").size(), "they still run: not started again");
        stop();
    }

    @Test
    void whatAnEarlierRunLeftDoesNotPassForReady() throws Exception {
        Path folder = Files.createDirectory(capture.resolve("agents"));
        for (String name : Arrays.asList("sniffer", "dumpingd")) {
            Path manifest = Files.write(folder.resolve(name + ".json"), "{\"ready\": true}".getBytes("US-ASCII"));
            Files.setLastModifiedTime(manifest, java.nio.file.attribute.FileTime.fromMillis(1_000_000));
        }
        Path program = agentProgram("0.3");
        finish(java(",sniffer=" + program + ",dumpingd=" + program + ",wait_ms=30000", DAEMON, "wait"));
        assertEquals(Arrays.asList("ready"), lines("main\\.txt"));
        stop();
    }

    @Test
    void anAgentThatDoesNotStartOrDoesNotGetReadyStopsNothing() throws Exception {
        finish(java(",sniffer=/no/such/program,dumpingd=/bin/true,wait_ms=200", DAEMON, "sockets"));
        assertFalse(lines("jvm-.*\\.jsonl").isEmpty());
    }

    @Test
    void tasksAndClientsStartNoAgents() throws Exception {
        Path program = agentProgram("0");
        finish(java(",sniffer=" + program + ",dumpingd=" + program, "hadoptic.SocketProgram", "sockets"));
        assertEquals(0, lines("started\\.txt").size());
    }

    @Test
    void anAgentThatDiesIsStartedAgainAndOneThatEndsIsNot() throws Exception {
        Path program = agentProgram("0");
        Process daemon = java(",sniffer=" + program + ",dumpingd=" + program + ",watch_ms=50,linger_ms=0", DAEMON, "stay");
        List<String> first = startedOnes(2);
        new ProcessBuilder("kill", "-9", first.get(0)).start().waitFor();
        List<String> later = startedOnes(3);
        assertTrue(alive(later.get(2)));
        // who was asked to end has ended in an orderly way
        new ProcessBuilder("kill", later.get(2)).start().waitFor();
        Thread.sleep(1000);
        assertEquals(3, lines("started\\.txt").size());
        release(daemon);
        stop();
    }

    @Test
    void agentsAreAskedToEndAfterTheLastDaemonOfTheHost() throws Exception {
        Path program = agentProgram("0");
        String options = ",sniffer=" + program + ",dumpingd=" + program + ",watch_ms=50,linger_ms=1000";
        Process first = java(options, DAEMON, "stay");
        List<String> agents = startedOnes(2);
        Process second = java(options, DAEMON, "stay");
        assertTrue(second.getInputStream().read() > 0);
        release(first);
        Thread.sleep(3000);
        assertTrue(alive(agents.get(0)) && alive(agents.get(1)), "a daemon is still there");
        release(second);
        for (int i = 0; i < 200 && (alive(agents.get(0)) || alive(agents.get(1))); i++) {
            Thread.sleep(100);
        }
        assertFalse(alive(agents.get(0)) || alive(agents.get(1)));
        assertEquals(2, lines("started\\.txt").size());
    }

    @Test
    void marksThatOthersHavePlantedKeepNoAgents() throws Exception {
        org.junit.jupiter.api.Assumptions.assumeTrue(Jvm.isRoot(), "a second user needs root");
        Path shared = Files.createDirectory(capture.resolve("jvm"));
        Files.setAttribute(shared, "unix:mode", 03777);
        for (int i = 0; i < 5000; i++) {
            Files.setAttribute(Files.createFile(shared.resolve("daemon-" + i + "-0")), "unix:uid", Jvm.NOBODY);
        }
        Process other = new ProcessBuilder("sleep", "100").start();
        try {
            String pid = String.valueOf(Process.class.getMethod("pid").invoke(other));
            String stat = new String(Files.readAllBytes(Paths.get("/proc", pid, "stat")), StandardCharsets.UTF_8);
            Path planted = shared.resolve("daemon-" + pid + "-" + hadoptic.agent.Identity.startTicks(stat));
            Files.createFile(planted);
            Files.setAttribute(planted, "unix:uid", Jvm.NOBODY);
            Path program = agentProgram("0");
            Process daemon = java(",sniffer=" + program + ",dumpingd=" + program + ",watch_ms=50,linger_ms=1000", DAEMON, "stay");
            List<String> agents = startedOnes(2);
            release(daemon);
            for (int i = 0; i < 200 && (alive(agents.get(0)) || alive(agents.get(1))); i++) {
                Thread.sleep(100);
            }
            assertFalse(alive(agents.get(0)) || alive(agents.get(1)));
            assertTrue(other.isAlive());
        } finally {
            other.destroyForcibly();
            stop();
        }
    }

    @Test
    void aDaemonThatIsRestartedInTimeKeepsTheAgents() throws Exception {
        Path program = agentProgram("0");
        String options = ",sniffer=" + program + ",dumpingd=" + program + ",watch_ms=50,linger_ms=5000";
        Process before = java(options, DAEMON, "stay");
        List<String> agents = startedOnes(2);
        release(before);
        Process after = java(options, DAEMON, "stay");
        assertTrue(after.getInputStream().read() > 0);
        Thread.sleep(7000);
        assertEquals(agents, lines("started\\.txt"), "neither started again");
        assertTrue(alive(agents.get(0)) && alive(agents.get(1)), "nor asked to end");
        release(after);
        stop();
    }

    @Test
    void aMethodThatIsMissingIsToldOnceInTheRecordAndInTheLog() throws Exception {
        Process process = java("", "hadoptic.SocketProgram", "load", "stay");
        String said = "";
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
        try (BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            said = out.lines().collect(Collectors.joining("\n"));
        }
        finish(process);
        List<String> drift = lines("jvm-.*\\.jsonl").stream().filter(l -> l.contains("\"k\":\"drift\"")).collect(Collectors.toList());
        assertEquals(1, drift.size(), drift.toString());
        assertTrue(drift.get(0).contains("\"class\":\"org.apache.hadoop.mapred.Task\",\"method\":\"setPhase\""), drift.toString());
        assertEquals(2, said.split("has no method setPhase", -1).length, said);
    }

    @Test
    void recordsAJvmToWhichItIsAttached() throws Exception {
        Process running = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-cp",
                folderOf(SocketProgram.class).toString(), "hadoptic.SocketProgram", "stay", "sockets")
                .redirectErrorStream(true).start();
        String pid = new BufferedReader(new InputStreamReader(running.getInputStream(), StandardCharsets.US_ASCII)).readLine();
        Process attach = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-jar",
                built.resolve("agent.jar").toString(), pid, "out=" + capture)
                .redirectErrorStream(true).redirectOutput(File.createTempFile("attach", ".out", built.toFile())).start();
        finish(attach);
        release(running);
        List<String> lines = lines("jvm-.*\\.jsonl");
        assertEquals(SocketProgram.CONNECTIONS, count(lines, "\"k\":\"open\""));
        assertEquals(SocketProgram.CONNECTIONS, count(lines, "\"k\":\"accept\""));
        assertEquals(1, count(lines, "\"k\":\"end\""));
    }

    /** Lets a program that stays go on, and waits until it has ended. */
    private static void release(Process process) throws Exception {
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
        finish(process);
    }

    /** Process ids of the agents, when so many have been started. */
    private List<String> startedOnes(int count) throws Exception {
        for (int i = 0; i < 300 && lines("started\\.txt").size() < count; i++) {
            Thread.sleep(100);
        }
        List<String> pids = lines("started\\.txt");
        assertEquals(count, pids.size());
        return pids;
    }

    private static boolean alive(String pid) throws IOException {
        Path stat = Paths.get("/proc", pid, "stat");
        try {
            // a process that nobody has waited for yet does not live
            return !new String(Files.readAllBytes(stat), StandardCharsets.UTF_8).replaceAll(".*\\) ", "").startsWith("Z");
        } catch (java.nio.file.NoSuchFileException gone) {
            return false;
        }
    }

    /** Stands for an agent: notes its start, gets ready after a while, and stays. */
    private Path agentProgram(String seconds) throws IOException {
        Path program = Files.createTempFile(built, "agent", ".sh", PosixFilePermissions.asFileAttribute(
                PosixFilePermissions.fromString("rwx------")));
        Files.write(program, Arrays.asList("#!/bin/sh",
                "[ \"$1 $2\" = 'run --out' ] || exit 2",
                "cd \"$3\" || exit 1",
                // before anybody can know of it and end it
                "trap 'echo {\\\"ended\\\": true} | tee sniffer.json >dumpingd.json; kill $!; exit 0' TERM",
                "echo $$ >> started.txt && sleep " + seconds,
                "echo '{\"ready\": true, \"ended\": false}' > sniffer.json",
                "echo '{\"ready\": true, \"ended\": false}' > dumpingd.json",
                "sleep 120 & wait"));
        return program;
    }

    private void stop() throws Exception {
        for (String pid : lines("started\\.txt")) {
            new ProcessBuilder("kill", "-9", pid).start().waitFor();
        }
    }
}
