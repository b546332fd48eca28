package hadoptic.agent;

import hadoptic.patch.Preparation;
import java.io.File;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Patches the classes of this Java and of Hadoop beforehand, into a file beside the agent's jar, where the agent finds it:
 *
 * <pre>java -javaagent:hadoptic-agent.jar=prepare -cp hadoptic-agent.jar hadoptic.agent.Prepare HADOOPFOLDER...</pre>
 *
 * Of folders all hadoop-*.jar are taken, at any depth, of one version or of several. The Java has to be the one that Hadoop
 * runs on. What is not in the file is patched as it loads, so an old file costs time and nothing else.
 */
public final class Prepare {
    private static final int DEPTH = 12;
    /** From premain to main, which nothing else connects. */
    private static volatile Instrumentation instrumentation;
    private static volatile File jar;

    private Prepare() {}

    /** Called by premain; public because another loader loads it. */
    public static void with(Instrumentation given, File agent) {
        instrumentation = given;
        jar = agent;
    }

    /** Folders with Hadoop's jars, or jars; ends with 2 if it could not be done. */
    public static void main(String[] arguments) throws Exception {
        if (instrumentation == null || arguments.length == 0) {
            System.err.println("usage: java -javaagent:hadoptic-agent.jar=prepare -cp hadoptic-agent.jar hadoptic.agent.Prepare"
                    + " HADOOPFOLDER...");
            System.exit(2);
        }
        try {
            Preparation preparation = new Preparation();
            preparation.addLoaded(instrumentation);
            for (String folder : arguments) {
                for (Path each : jars(Paths.get(folder))) {
                    preparation.addJar(each.toFile());
                }
            }
            File file = preparation.write(jar);
            System.out.println(file + ": " + preparation.size() + " classes are prepared"
                    + (preparation.refused().isEmpty() ? "" : ", and are patched as they load: " + preparation.refused()));
        } catch (IOException failure) {
            System.err.println("hadoptic: nothing was prepared: " + failure);
            System.exit(2);
        }
    }

    private static List<Path> jars(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return Collections.singletonList(folder);
        }
        try (Stream<Path> files = Files.find(folder, DEPTH,
                (path, about) -> about.isRegularFile() && path.getFileName().toString().matches("hadoop-.*\\.jar"),
                FileVisitOption.FOLLOW_LINKS)) {
            return files.sorted().collect(Collectors.toList());
        }
    }
}
