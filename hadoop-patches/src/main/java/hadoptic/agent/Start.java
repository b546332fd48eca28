package hadoptic.agent;

import hadoptic.file.User;
import hadoptic.hook.BlockClientHandlers;
import hadoptic.hook.Hooks;
import hadoptic.hook.Tags;
import hadoptic.hook.TaskHandlers;
import hadoptic.hook.Waits;
import hadoptic.log.Buffer;
import hadoptic.log.DiskQuota;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import hadoptic.log.Writer;
import hadoptic.patch.HookPoints;
import hadoptic.patch.Patcher;
import hadoptic.patch.Prepared;
import java.io.File;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What the agent does before the main class starts. */
public final class Start {
    private Start() {}

    /** Starts the agent, late = in a JVM that runs already; what it throws leaves the JVM without an agent. */
    public static void run(String arguments, File jar, Instrumentation instrumentation, long begin, boolean late)
            throws Throwable {
        Costs costs = new Costs();
        Options options = Options.parse(arguments);
        for (String problem : options.problems) {
            System.err.println("hadoptic: " + problem);
        }
        if (options.out.isEmpty()) {
            throw new IllegalArgumentException("option 'out' is missing; use -javaagent:JAR=out=FOLDER");
        }
        if (Hooks.areInstalled()) {
            throw new IllegalStateException("this JVM is recorded already");
        }
        User me = User.read();
        Identity identity = Identity.read();
        Path shared = options.folder(options.out, identity.host);
        String name = "jvm-" + identity.pid + "-" + identity.startTicks + ".jsonl";
        Path folder = RecordFolder.make(shared, me, name);
        String container = System.getenv("CONTAINER_ID");
        Buffer buffer = new Buffer(options.buffer);
        Writer writer = new Writer(folder.resolve(name), new DiskQuota(folder, me, options.limit, options.keepFree), buffer,
                new Header(identity, begin, container), new Sums(costs), options.flushMs);
        Patcher patcher = new Patcher(HookPoints.all(), HookPoints.tagged(), Prepared.of(jar));
        HostAgents agents = null;
        try {
            Hooks.install(patcher.handlers(), buffer);
            if (late) {
                Tags.attached();
            }
            Hooks.writer(writer);
            TaskHandlers.knownFromStart(
                    Identity.attemptOf(identity.role, System.getProperty("sun.java.command", "")),
                    container == null ? "" : container, begin);
            patch(instrumentation, patcher);
            writer.start();
            if (Roles.isDaemon(identity.role) && !(options.sniffer + options.dumpingd).isEmpty()) {
                agents = HostAgents.of(options, identity, shared, me);
            }
            Runtime.getRuntime().addShutdownHook(new Thread(new Ending(writer, buffer, costs, agents), "hadoptic-ending"));
            costs.started(begin);
        } catch (Throwable failure) {
            // what is patched stays so and does nothing
            instrumentation.removeTransformer(patcher);
            Hooks.turnOff();
            writer.abandon();
            throw failure;
        }
        if (agents != null) {
            agents.startAndWait();
        }
    }

    private static void patch(Instrumentation instrumentation, Patcher patcher) throws Exception {
        instrumentation.addTransformer(patcher, true);
        List<Class<?>> loaded = new ArrayList<Class<?>>();
        for (Class<?> c : instrumentation.getAllLoadedClasses()) {
            if (patcher.wants(c.getName())) {
                loaded.add(c);
            }
        }
        try {
            if (!loaded.isEmpty()) {
                instrumentation.retransformClasses(loaded.toArray(new Class<?>[0]));
            }
        } catch (LinkageError | InternalError oneOfThem) {
            // all of them were left as they are: each by itself
            for (Class<?> c : loaded) {
                try {
                    instrumentation.retransformClasses(c);
                } catch (LinkageError | InternalError refused) {
                    System.err.println("hadoptic: class " + c.getName() + " is not patched: " + refused);
                }
            }
        }
    }

    /** What is told from time to time and not when it happens. */
    private static final class Sums implements Writer.Sampler {
        private final Costs costs;

        Sums(Costs costs) {
            this.costs = costs;
        }

        @Override
        public void sample() {
            BlockClientHandlers.sample(false);
            Waits.sample(false);
        }

        @Override
        public void tell(JsonLine clock) {
            costs.tell(clock);
        }
    }

    private static final class Header implements Record {
        private final Identity identity;
        private final long begin;
        private final String container;

        Header(Identity identity, long begin, String container) {
            this.identity = identity;
            this.begin = begin;
            this.container = container;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("header").time("t", begin).number("version", 1).number("pid", identity.pid)
                    .numbers("ns_pid", identity.nsPids).number("start_ticks", identity.startTicks).number("netns", Identity.netns())
                    .string("host", identity.host).strings("addresses", Identity.addresses())
                    .string("main", identity.main).string("role", identity.role)
                    .string("hadoop", Identity.hadoopVersion(System.getProperty("java.class.path", "")))
                    .string("java", System.getProperty("java.version", ""))
                    .optional("container", container).end();
        }
    }
}
