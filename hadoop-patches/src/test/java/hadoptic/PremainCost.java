package hadoptic;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a JVM that only says hello pays for the agent, by the agent's own account: {@code java ... hadoptic.PremainCost
 * AGENT.jar [STARTS]}. Beside the jar may lie classes that were patched beforehand.
 */
public final class PremainCost {
    private PremainCost() {}

    /** With no argument it is the program that says hello. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            System.out.println("hello");
            return;
        }
        int starts = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 20;
        Path capture = Files.createTempDirectory("premain");
        for (int i = 0; i < starts; i++) {
            List<String> command = Arrays.asList(System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1",
                    "-javaagent:" + arguments[0] + "=out=" + capture, "-cp", System.getProperty("java.class.path"),
                    "hadoptic.PremainCost");
            new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.PIPE)
                    .redirectError(ProcessBuilder.Redirect.PIPE).start().waitFor();
        }
        List<String> ends = lastLines(capture);
        System.out.println(ends.size() + " starts; of " + sum(ends, "patched") + " classes " + sum(ends, "prepared")
                + " were patched beforehand");
        System.out.println("milliseconds               least  median    most");
        for (String[] what : new String[][] {
            {"premain on the wall", "premain_ns"}, {"premain, CPU", "premain_cpu_ns"}, {"writing, CPU", "writer_ns"},
            {"the whole JVM, CPU", "cpu_ns"}}) {
            long[] sorted = ends.stream().mapToLong(end -> number(end, what[1])).sorted().toArray();
            System.out.printf("%-24s %7.1f %7.1f %7.1f%n", what[0], sorted[0] / 1e6, sorted[sorted.length / 2] / 1e6,
                    sorted[sorted.length - 1] / 1e6);
        }
    }

    private static long sum(List<String> ends, String key) {
        return ends.stream().mapToLong(end -> number(end, key)).sum();
    }

    private static long number(String line, String key) {
        return Long.parseLong(line.replaceAll(".*\"" + key + "\":(\\d+).*", "$1"));
    }

    /** The last record of each JVM; its folder is removed. */
    private static List<String> lastLines(Path capture) throws IOException {
        List<String> ends = new ArrayList<>();
        List<Path> all;
        try (Stream<Path> files = Files.walk(capture)) {
            all = files.sorted(java.util.Comparator.reverseOrder()).collect(Collectors.toList());
        }
        for (Path file : all) {
            if (file.toString().endsWith(".jsonl")) {
                List<String> lines = Files.readAllLines(file);
                ends.add(lines.get(lines.size() - 1));
            }
            Files.delete(file);
        }
        return ends;
    }
}
