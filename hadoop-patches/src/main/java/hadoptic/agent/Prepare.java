package hadoptic.agent;

import hadoptic.file.Inode;
import hadoptic.file.Trust;
import hadoptic.patch.Preparation;
import java.io.File;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.EnumSet;
import java.util.Set;
import java.util.TreeSet;

/**
 * Patches the classes of this Java and of Hadoop beforehand, into a file beside the agent's jar, where the agent finds it:
 *
 * <pre>java -javaagent:hadoptic-agent.jar=prepare -cp hadoptic-agent.jar hadoptic.agent.Prepare HADOOPFOLDER...</pre>
 *
 * Of folders all hadoop-*.jar are taken, at any depth, of one version or of several, which only root can change, or the owner
 * of the agent's jar. The Java has to be the one that Hadoop
 * runs on. What is not in the file is patched as it loads, so an old file costs time and nothing else.
 */
public final class Prepare {
    private static final int DEPTH = 12;
    private static final int MAX_TOLD = 100;
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
            Jars jars = new Jars(Inode.at(jar.toPath().toRealPath()).uid);
            for (String folder : arguments) {
                jars.add(Paths.get(folder));
            }
            for (Path each : jars.found) {
                preparation.addJar(each.toFile());
            }
            for (String refusal : jars.leftOut) {
                System.out.println("left out, its classes are patched as they load: " + refusal);
            }
            File file = preparation.write(jar);
            System.out.println(file + ": " + preparation.size() + " classes are prepared"
                    + (preparation.refused().isEmpty() ? "" : ", and are patched as they load: " + preparation.refused()));
        } catch (IOException failure) {
            System.err.println("hadoptic: nothing was prepared: " + failure);
            System.exit(2);
        }
    }

    /**
     * Jars that nobody can change but root and the owner of the agent. What a class becomes is run in place of it in every
     * JVM of the host: nothing is taken from where another user could have put it.
     */
    private static final class Jars extends SimpleFileVisitor<Path> {
        private final Set<Path> found = new TreeSet<Path>();
        private final Set<String> leftOut = new TreeSet<String>();
        private final int owner;

        Jars(int owner) {
            this.owner = owner;
        }

        /** Those in a folder, or a jar. */
        void add(Path path) throws IOException {
            Path real = path.toRealPath();
            if (Files.isDirectory(real)) {
                Files.walkFileTree(real, EnumSet.of(FileVisitOption.FOLLOW_LINKS), DEPTH, this);
            } else if (isTrusted(real)) {
                found.add(real);
            }
        }

        private boolean isTrusted(Path real) throws IOException {
            String refusal = Trust.refusal(real, owner);
            if (refusal != null && leftOut.size() < MAX_TOLD) {
                leftOut.add(refusal.startsWith(real.toString()) ? refusal : real + ": " + refusal);
            }
            return refusal == null;
        }

        @Override
        public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes about) throws IOException {
            return isTrusted(folder.toRealPath()) ? FileVisitResult.CONTINUE : FileVisitResult.SKIP_SUBTREE;
        }

        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes about) throws IOException {
            if (about.isRegularFile() && file.getFileName().toString().matches("hadoop-.*\\.jar")) {
                Path real = file.toRealPath();
                if (isTrusted(real)) {
                    found.add(real);
                }
            }
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFileFailed(Path file, IOException failure) {
            return FileVisitResult.CONTINUE;
        }
    }
}
