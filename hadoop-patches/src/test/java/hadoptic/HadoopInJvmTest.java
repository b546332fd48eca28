package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Hadoop 3.4.2's own classes in a JVM with the agent: what is recorded of their calls and of their waiting. */
class HadoopInJvmTest {
    @TempDir
    static Path built;

    @TempDir
    Path capture;

    private final List<String> said = new ArrayList<>();

    @BeforeAll
    static void buildJar() throws Exception {
        AgentInJvmTest.buildJar(built);
    }

    /** Runs a program to its end and returns its records. */
    private List<String> records(Class<?> program, String... arguments) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        command.add("-javaagent:" + built.resolve("agent.jar") + "=keep_free=0,out=" + capture);
        command.add("-cp");
        command.add(AgentInJvmTest.classPath());
        command.add(program.getName());
        for (String argument : arguments) {
            command.add(argument);
        }
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        try (BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                said.add(line);
            }
        }
        assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), said.toString());
        try (Stream<Path> all = Files.walk(capture)) {
            Path file = all.filter(p -> p.toString().endsWith(".jsonl")).findFirst().get();
            return Files.readAllLines(file, StandardCharsets.UTF_8);
        }
    }

    private static List<String> of(List<String> lines, String kind) {
        return lines.stream().filter(line -> line.startsWith("{\"k\":\"" + kind + "\"")).collect(Collectors.toList());
    }

    private static long number(String line, String key) {
        return Long.parseLong(line.replaceAll(".*\"" + key + "\":(\\d+).*", "$1"));
    }

    private static String text(String line, String key) {
        return line.replaceAll(".*\"" + key + "\":\"([^\"]*)\".*", "$1");
    }

    @Test
    void aConnectionOfHadoopsCallsTellsItsProtocolAtBothEndsAndACallItsTimeInTheQueue() throws Exception {
        List<String> lines = records(RpcThroughput.class, "run", "0", "1");
        List<String> uses = of(lines, "use");
        assertEquals(16, uses.size(), "8 connections, 2 ends");
        for (String use : uses) {
            assertEquals("rpc", text(use, "purpose"));
            assertTrue(text(use, "protocol").startsWith("org.apache.hadoop.ha."), use);
            String mirrored = "\"local\":\"" + text(use, "remote") + "\",\"remote\":\"" + text(use, "local") + "\"";
            String side = text(use, "side").equals("client") ? "server" : "client";
            assertEquals(1, uses.stream().filter(u -> u.contains(mirrored) && text(u, "side").equals(side)).count(), use);
        }
        assertEquals("rpc", text(of(lines, "listen").get(0), "purpose"));
        List<String> calls = of(lines, "rpc");
        assertTrue(calls.size() > 8, said.toString());
        for (String call : calls) {
            assertTrue(number(call, "received") <= number(call, "queued"), call);
            assertTrue(number(call, "queued") <= number(call, "begin"), call);
            assertEquals("monitorHealth", text(call, "method"));
        }
        // the client's thread of each connection waits for responses
        assertTrue(of(lines, "wait").stream().mapToLong(line -> number(line, "reads")).sum() > 0);
        assertTrue(of(lines, "drift").isEmpty());
    }

    @Test
    void timeBlockedInReadsAndWritesIsAddedUpByConnection() throws Exception {
        List<String> waits = of(records(WaitProgram.class), "wait");
        for (String line : said) {
            String[] words = line.split(" ");
            if (words.length != 2) {
                continue;
            }
            String key = words[0].equals("full") ? "write_ns" : "read_ns";
            long blocked = waits.stream().filter(w -> text(w, "local").endsWith(":" + words[1]))
                    .mapToLong(w -> number(w, key)).sum();
            assertTrue(blocked > WaitProgram.PAUSE_MS * 500_000L, line + ": " + waits);
            assertTrue(blocked < 60_000_000_000L, line + ": " + waits);
        }
        assertEquals(3, said.stream().filter(line -> line.matches("(plain|channel|full) \\d+")).count(), said.toString());
    }

    @Test
    void theLastRecordSaysWhatTheAgentCost() throws Exception {
        List<String> lines = records(WaitProgram.class);
        String end = lines.get(lines.size() - 1);
        long cpu = number(end, "cpu_ns");
        assertTrue(cpu > 0, end);
        for (String part : new String[] {"hook_ns", "premain_ns", "patch_ns", "writer_ns"}) {
            assertTrue(number(end, part) > 0, end);
        }
        assertTrue(number(end, "stall_ns") <= number(end, "hook_ns"), end);
        assertTrue(of(lines, "clock").stream().anyMatch(line -> line.contains("\"cpu_ns\":")), "sums are told while it runs");
    }
}
