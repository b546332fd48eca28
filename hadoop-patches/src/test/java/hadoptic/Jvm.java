package hadoptic;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** JVMs with the agent, of this user and of another one, and what they leave. */
final class Jvm {
    /** A user without rights, as all systems have him. */
    static final int NOBODY = 65534;

    private Jvm() {}

    static boolean isRoot() throws IOException {
        return Files.getAttribute(Paths.get("/proc/self"), "unix:uid").equals(0);
    }

    /** Lays jar and programs into a folder that all users may read. */
    static void build(Path built) throws Exception {
        AgentInJvmTest.buildJar(built);
        Path classes = Files.createDirectories(built.resolve("hadoptic"));
        for (Class<?> program : Arrays.asList(SocketProgram.class, PremainCost.class, HungryProgram.class)) {
            String name = program.getSimpleName();
            Path folder = Paths.get(program.getProtectionDomain().getCodeSource().getLocation().toURI()).resolve("hadoptic");
            try (Stream<Path> files = Files.list(folder)) {
                for (Path file : files.filter(f -> f.getFileName().toString().matches(name + "(\\$.*)?\\.class"))
                        .collect(Collectors.toList())) {
                    Files.write(classes.resolve(file.getFileName()), Files.readAllBytes(file));
                }
            }
        }
        Files.setPosixFilePermissions(built, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /** The command of a JVM with an agent that is given these options. One that records needs no room on this machine's disk. */
    static List<String> command(Path built, String options, String main, String... arguments) {
        String limits = options.contains("out=") ? ",keep_free=0" : "";
        List<String> command = new ArrayList<>(Arrays.asList(System.getProperty("java.home") + "/bin/java", "-Xshare:auto",
                "-javaagent:" + built.resolve("agent.jar") + "=" + options + limits, "-cp", built.toString(), main));
        command.addAll(Arrays.asList(arguments));
        return command;
    }

    /** The same as another user. */
    static List<String> as(int uid, List<String> command) {
        List<String> all = new ArrayList<>(Arrays.asList("setpriv", "--reuid=" + uid, "--regid=" + uid, "--clear-groups"));
        all.addAll(command);
        return all;
    }

    /** Runs a command to its end, which has to be 0, and returns what it said. */
    static String said(List<String> command) throws Exception {
        Path out = Files.createTempFile("jvm", ".out");
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile())
                    .redirectInput(new java.io.File("/dev/null")).start();
            boolean ended = process.waitFor(90, TimeUnit.SECONDS);
            process.destroyForcibly();
            assertTrue(ended, "does not end: " + command);
            String said = new String(Files.readAllBytes(out), StandardCharsets.UTF_8);
            assertTrue(process.exitValue() == 0, process.exitValue() + ": " + said);
            return said;
        } finally {
            Files.delete(out);
        }
    }

    /** Files with records below a folder. */
    static List<Path> records(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(p -> p.toString().endsWith(".jsonl")).sorted().collect(Collectors.toList());
        }
    }

    /** Their lines. */
    static List<String> lines(Path folder) throws IOException {
        List<String> lines = new ArrayList<>();
        for (Path file : records(folder)) {
            lines.addAll(Files.readAllLines(file, StandardCharsets.UTF_8));
        }
        return lines;
    }

    /** Owner, group and permissions: "0:0 750". */
    static String about(Path path) throws IOException {
        java.util.Map<String, Object> of = Files.readAttributes(path, "unix:uid,gid,mode", java.nio.file.LinkOption.NOFOLLOW_LINKS);
        return of.get("uid") + ":" + of.get("gid") + " " + Integer.toOctalString((Integer) of.get("mode") & 07777);
    }

    /** The sum of a number over all lines that have it. */
    static long sum(List<String> lines, String kind, String key) {
        long sum = 0;
        for (String line : lines) {
            if (line.contains("\"k\":\"" + kind + "\"") && line.contains("\"" + key + "\":")) {
                sum += Long.parseLong(line.replaceAll(".*\"" + key + "\":(\\d+).*", "$1"));
            }
        }
        return sum;
    }
}
