package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.file.User;
import hadoptic.log.Buffer;
import hadoptic.log.DiskQuota;
import hadoptic.log.Record;
import hadoptic.log.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever the agent meets, the JVM goes on, and so does its recording. */
class SurvivalTest {
    @TempDir
    static Path built;

    @TempDir
    Path capture;

    @BeforeAll
    static void build() throws Exception {
        Jvm.build(built);
    }

    private List<String> java(String option, String main, String... arguments) {
        List<String> command = Jvm.command(built, "flush_ms=50,out=" + capture.resolve("jvm"), main, arguments);
        command.addAll(1, Arrays.asList(option.split(" ")));
        return command;
    }

    @Test
    void aJvmThatRanOutOfMemoryAndRecoversIsRecordedOn() throws Exception {
        String said = Jvm.said(java("-Xmx24m -XX:+UseSerialGC", "hadoptic.HungryProgram"));
        assertTrue(said.contains("recovered"), said);
        List<String> lines = Jvm.lines(capture);
        assertTrue(lines.get(0).startsWith("{\"k\":\"header\""), lines.get(0));
        assertTrue(lines.get(lines.size() - 1).startsWith("{\"k\":\"end\""), lines.get(lines.size() - 1));
        List<String> opens = lines.stream().filter(line -> line.contains("\"k\":\"open\"")).collect(Collectors.toList());
        assertEquals(2, opens.size(), "before and after: " + lines);
        long hungry = lines.stream().filter(line -> line.contains("\"name\":\"hungry\"")).count();
        long dropped = Jvm.sum(lines, "clock", "dropped");
        assertTrue(hungry == 64 || dropped > 0, hungry + " of 64 records and " + dropped + " dropped");
    }

    @Test
    void anErrorInTheWritersThreadCostsItsBatchAndNotTheThread() throws Exception {
        for (Error error : new Error[] {new OutOfMemoryError("x"), new StackOverflowError(), new NoClassDefFoundError("x"),
            new ThreadDeath()}) {
            Path file = capture.resolve("jvm-" + error.getClass().getSimpleName() + ".jsonl");
            Buffer buffer = new Buffer(100);
            Record good = line -> line.begin("x").end();
            Writer writer = new Writer(file, new DiskQuota(file, User.read(), 0, 0), buffer, line -> line.begin("header").end(),
                    () -> {}, 10);
            writer.start();
            buffer.add(good);
            writer.flush(10_000);
            buffer.add(good);
            buffer.add(line -> {
                throw error;
            });
            writer.flush(10_000);
            buffer.add(good);
            writer.flush(10_000);
            writer.close(line -> line.begin("end").end(), 10_000);
            List<String> lines = Files.readAllLines(file);
            long there = lines.stream().filter(line -> line.contains("\"x\"")).count();
            assertEquals(4, there + Jvm.sum(lines, "clock", "dropped"), error + " " + lines);
            assertTrue(there >= 2, error + " " + lines);
            assertEquals("{\"k\":\"end\"}", lines.get(lines.size() - 1));
        }
    }

    @Test
    void aRecordThatIsTooLongForAnyReaderIsDropped() throws Exception {
        Path file = capture.resolve("jvm-1-1.jsonl");
        Buffer buffer = new Buffer(100);
        Writer writer = new Writer(file, new DiskQuota(file, User.read(), 0, 0), buffer, line -> line.begin("header").end(),
                () -> {}, 60_000);
        buffer.add(line -> line.begin("x").strings("s", Collections.nCopies(10_000, "0123456789")).end());
        writer.start();
        writer.close(line -> line.begin("end").end(), 10_000);
        assertTrue(Files.size(file) < 1 << 16);
        assertEquals(1, buffer.dropped());
    }

    @Test
    void anArgumentOfAHundredKilobytesIsCutAndMarked() throws Exception {
        // as many slashes as a path may have names, then one that is longer than any file's
        String name = String.join("", Collections.nCopies(100_000, "a"));
        Path file = capture.resolve("jvm");
        List<String> command = java("-Dsun.java.command=" + name, "hadoptic.PremainCost");
        Jvm.said(command);
        List<String> lines = Jvm.lines(file);
        assertTrue(lines.get(0).length() < 4096, "" + lines.get(0).length());
        String role = lines.get(0).replaceAll(".*\"main\":\"([^\"]*)\".*", "$1");
        assertTrue(role.startsWith("hadoptic.PremainCost") || role.equals(name.substring(0, 256) + "\u2026"), role);
    }

    private void helloIn(List<String> command, String expected) throws Exception {
        String said = Jvm.said(command);
        assertTrue(said.contains("hello"), said);
        assertTrue(said.contains(expected), said);
    }

    @Test
    void whateverPremainMeetsTheProgramRuns() throws Exception {
        helloIn(Jvm.command(built, "", "hadoptic.PremainCost"), "option 'out' is missing");
        helloIn(Jvm.command(built, "out=/proc/nothing/here", "hadoptic.PremainCost"), "agent is off");
        helloIn(Jvm.command(built, "out=/dev/null", "hadoptic.PremainCost"), "agent is off");
        helloIn(Jvm.command(built, "out=" + String.join("", Collections.nCopies(10_000, "x")), "hadoptic.PremainCost"),
                "agent is off");
        helloIn(Jvm.command(built, "out=\0", "hadoptic.PremainCost").stream().map(word -> word.replace("\0", capture + "/%h%n"))
                .collect(Collectors.toList()), "");
        // no memory for the agent from its first moment on
        List<String> small = java("-Xmx2m -XX:+UseSerialGC -Xss256k", "hadoptic.PremainCost");
        helloIn(small, "");
    }

    @Test
    void aJvmWithoutProcRuns() throws Exception {
        org.junit.jupiter.api.Assumptions.assumeTrue(Jvm.isRoot(), "a file system in place of /proc needs root");
        helloIn(Arrays.asList("unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs none /proc && "
                + "export LD_LIBRARY_PATH=" + System.getProperty("java.home") + "/lib && exec " + String.join(" ", java("-Dx=y", "hadoptic.PremainCost"))), "agent is off");
    }

    @Test
    void aJarFromWhichClassesAreMissingLeavesTheJvmAlone() throws Exception {
        for (String missing : Arrays.asList("hadoptic/log/Writer.class", "hadoptic/hook/Hooks.class", "hadoptic/agent/Start.class",
                "hadoptic/patch/HookPoints.class", "hadoptic/hook/Tagged.class", "hadoptic/agent/Ending.class")) {
            Path jar = capture.resolve("broken.jar");
            try (java.util.zip.ZipFile whole = new java.util.zip.ZipFile(built.resolve("agent.jar").toFile());
                    java.util.zip.ZipOutputStream broken = new java.util.zip.ZipOutputStream(Files.newOutputStream(jar))) {
                for (java.util.zip.ZipEntry entry : Collections.list(whole.entries())) {
                    if (!entry.getName().equals(missing)) {
                        broken.putNextEntry(new java.util.zip.ZipEntry(entry.getName()));
                        broken.write(PatchedClassesTest.bytes(whole.getInputStream(entry)));
                    }
                }
            }
            List<String> command = new ArrayList<>(java("-Dx=y", "hadoptic.PremainCost"));
            command.replaceAll(word -> word.replace("agent.jar", "../" + capture.getFileName() + "/broken.jar"));
            String said = Jvm.said(command);
            assertTrue(said.contains("hello"), missing + ": " + said);
        }
    }

    @Test
    void anInterruptDoesNotEndTheWritersFile() throws Exception {
        Path file = capture.resolve("jvm-1-1.jsonl");
        Buffer buffer = new Buffer(100);
        Writer writer = new Writer(file, new DiskQuota(file, User.read(), 0, 0), buffer, line -> line.begin("header").end(),
                () -> {}, 10);
        writer.start();
        for (int i = 0; i < 20; i++) {
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().equals("hadoptic-writer")) {
                    thread.interrupt();
                }
            }
            buffer.add(line -> line.begin("x").end());
            writer.flush(10_000);
        }
        writer.close(line -> line.begin("end").end(), 10_000);
        String all = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        assertEquals(20, all.split("\"x\"", -1).length - 1, all);
    }
}
