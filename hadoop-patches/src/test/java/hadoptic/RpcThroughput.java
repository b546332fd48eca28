package hadoptic;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.ha.HAServiceProtocol;
import org.apache.hadoop.ha.HAServiceStatus;
import org.apache.hadoop.ha.proto.HAServiceProtocolProtos;
import org.apache.hadoop.ha.protocolPB.HAServiceProtocolClientSideTranslatorPB;
import org.apache.hadoop.ha.protocolPB.HAServiceProtocolPB;
import org.apache.hadoop.ha.protocolPB.HAServiceProtocolServerSideTranslatorPB;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/**
 * How many calls of Hadoop's IPC 8 clients make that do nothing else, with the agent and without, in turns.
 *
 * <p>Server and clients of one run share a JVM, so that both sides' hooks count; each client has a connection of its own.
 * {@code compare JAR [PAIRS] [SECONDS]} prints each pair and the ratio of the rates with its 95% interval.
 */
public final class RpcThroughput {
    private static final int CLIENTS = 8;
    private static final int HANDLERS = 8;
    private static final int WARM_UP_S = 15;

    private RpcThroughput() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 3 && arguments[0].equals("run")) {
            run(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        } else if (arguments.length >= 2 && arguments[0].equals("compare")) {
            compare(arguments[1], arguments.length > 2 ? Integer.parseInt(arguments[2]) : 10,
                    arguments.length > 3 ? Integer.parseInt(arguments[3]) : 8);
        } else {
            System.err.println("usage: RpcThroughput compare AGENT.jar [PAIRS [SECONDS]]");
            System.exit(2);
        }
    }

    private static void run(int warmUp, int seconds) throws Exception {
        // without a configuration log4j would have every debug message made
        Logger.getRootLogger().setLevel(Level.ERROR);
        Configuration conf = new Configuration();
        RPC.setProtocolEngine(conf, HAServiceProtocolPB.class, ProtobufRpcEngine2.class);
        RPC.Server server = new RPC.Builder(conf).setProtocol(HAServiceProtocolPB.class)
                .setInstance(HAServiceProtocolProtos.HAServiceProtocolService.newReflectiveBlockingService(
                        new HAServiceProtocolServerSideTranslatorPB(new Idle())))
                .setBindAddress("127.0.0.1").setPort(0).setNumHandlers(HANDLERS).build();
        server.start();
        AtomicLong calls = new AtomicLong();
        for (int i = 0; i < CLIENTS; i++) {
            HAServiceProtocol client = UserGroupInformation.createRemoteUser("client" + i).doAs(
                    (PrivilegedExceptionAction<HAServiceProtocol>) () -> client(conf, server.getListenerAddress()));
            Thread thread = new Thread(() -> {
                try {
                    for (;;) {
                        client.monitorHealth();
                        calls.incrementAndGet();
                    }
                } catch (IOException failure) {
                    failure.printStackTrace();
                    System.exit(1);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(warmUp * 1000L);
        long before = calls.get();
        long used = cpu();
        long begin = System.nanoTime();
        Thread.sleep(seconds * 1000L);
        while (calls.get() - before < 2 * CLIENTS) {
            // a machine that is busy with something else
            Thread.sleep(10);
        }
        double made = calls.get() - before;
        System.out.printf(Locale.ROOT, "calls/s %.1f CPU %.3f%n", made * 1e9 / (System.nanoTime() - begin), (cpu() - used) / 1e3 / made);
        System.out.flush();
        System.exit(0);
    }

    /** CPU time of this JVM, nanoseconds. */
    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static HAServiceProtocol client(Configuration conf, InetSocketAddress address) throws IOException {
        return new HAServiceProtocolClientSideTranslatorPB(address, conf);
    }

    private static final class Idle implements HAServiceProtocol {
        @Override
        public void monitorHealth() {}

        @Override
        public void transitionToActive(StateChangeRequestInfo request) {}

        @Override
        public void transitionToStandby(StateChangeRequestInfo request) {}

        @Override
        public void transitionToObserver(StateChangeRequestInfo request) {}

        @Override
        public HAServiceStatus getServiceStatus() {
            return new HAServiceStatus(HAServiceState.ACTIVE);
        }
    }

    private static void compare(String jar, int pairs, int seconds) throws Exception {
        List<Double> rateRatios = new ArrayList<>();
        List<Double> cpuRatios = new ArrayList<>();
        for (int pair = 0; pair < pairs; pair++) {
            double[][] of = new double[2][];
            String cost = "";
            // which goes first changes from pair to pair
            for (int turn = 0; turn < 2; turn++) {
                int with = (turn + pair) % 2;
                Path capture = Files.createTempDirectory("hadoptic-rpc");
                of[with] = measure(with == 1 ? "-javaagent:" + jar + "=out=" + capture : "-Dnone", seconds);
                if (with == 1) {
                    cost = cost(capture);
                }
                remove(capture);
            }
            rateRatios.add(of[1][0] / of[0][0]);
            cpuRatios.add(of[1][1] / of[0][1]);
            System.out.printf(Locale.ROOT, "pair %d: %.0f calls/s with, %.0f without; %.1f and %.1f us of CPU a call; %s; load %s%n",
                    pair + 1, of[1][0], of[0][0], of[1][1], of[0][1], cost, load());
        }
        tell("calls/s", rateRatios);
        tell("CPU a call", cpuRatios);
    }

    private static void tell(String what, List<Double> ratios) {
        int pairs = ratios.size();
        double mean = ratios.stream().mapToDouble(Math::log).average().orElse(0);
        double square = ratios.stream().mapToDouble(r -> Math.pow(Math.log(r) - mean, 2)).sum();
        double half = pairs < 2 ? Double.NaN : student(pairs - 1) * Math.sqrt(square / (pairs - 1) / pairs);
        System.out.printf(Locale.ROOT, "%s with / without: %.3f, 95%% interval %.3f to %.3f (%d pairs)%n", what,
                Math.exp(mean), Math.exp(mean - half), Math.exp(mean + half), pairs);
    }

    /** Quantile 0.975 of Student's distribution, of a table; between its lines the wider one. */
    private static double student(int freedom) {
        double[] upTo = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
        return freedom <= 10 ? upTo[freedom - 1] : freedom < 20 ? 2.228 : freedom < 30 ? 2.086 : 2.042;
    }

    /** Calls a second, and microseconds of CPU time a call. */
    private static double[] measure(String option, int seconds) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", option, "-Xmx512m",
                "-cp", System.getProperty("java.class.path"), RpcThroughput.class.getName(), "run", "" + WARM_UP_S, "" + seconds);
        Process process = builder.redirectError(ProcessBuilder.Redirect.appendTo(new File("/dev/null"))).start();
        try (BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                if (line.startsWith("calls/s ")) {
                    process.waitFor();
                    String[] words = line.split(" ");
                    return new double[] {Double.parseDouble(words[1]), Double.parseDouble(words[3])};
                }
            }
        }
        throw new IOException("a run told no rate; try: java " + option + " ... " + RpcThroughput.class.getName() + " run 5 5");
    }

    /** Records, and what the JVM itself says that the agent cost. */
    private static String cost(Path capture) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.walk(capture)) {
            files = all.filter(p -> p.toString().endsWith(".jsonl")).collect(Collectors.toList());
        }
        List<String> lines = Files.readAllLines(files.get(0), StandardCharsets.UTF_8);
        String end = lines.get(lines.size() - 1);
        double cpu = number(end, "cpu_ns");
        return String.format(Locale.ROOT, "%d records, %.0f dropped, hooks %.1f%% and writer %.1f%% of the CPU", lines.size(),
                number(end, "dropped"), 100 * number(end, "hook_ns") / cpu, 100 * number(end, "writer_ns") / cpu);
    }

    private static double number(String line, String key) {
        Matcher found = Pattern.compile("\"" + key + "\":(\\d+)").matcher(line);
        return found.find() ? Double.parseDouble(found.group(1)) : Double.NaN;
    }

    private static String load() throws IOException {
        return new String(Files.readAllBytes(Paths.get("/proc/loadavg")), StandardCharsets.US_ASCII).split(" ")[0];
    }

    private static void remove(Path folder) throws IOException {
        List<Path> all;
        try (Stream<Path> walk = Files.walk(folder)) {
            all = walk.collect(Collectors.toList());
        }
        Collections.reverse(all);
        for (Path path : all) {
            Files.delete(path);
        }
    }
}
