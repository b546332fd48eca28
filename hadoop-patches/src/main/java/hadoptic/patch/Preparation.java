package hadoptic.patch;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** Makes the file of {@link Prepared}: patches classes without loading them, and writes what they become. */
public final class Preparation {
    private final Patcher patcher = new Patcher(HookPoints.all(), HookPoints.tagged(), Prepared.none());
    private final Map<Long, List<byte[][]>> prepared = new TreeMap<Long, List<byte[][]>>();
    private int classes;
    private final Set<String> refused = new TreeSet<String>();

    /**
     * The classes of the JDK: as its files have them, and as the JVM gives those that are loaded before any agent, which it
     * puts together anew.
     */
    public void addLoaded(Instrumentation instrumentation) throws IOException {
        final List<Object[]> seen = new ArrayList<Object[]>();
        ClassFileTransformer onlooker = new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
                if (redefined != null && patcher.wants(redefined.getName())) {
                    seen.add(new Object[] {name, bytes});
                }
                return null;
            }
        };
        for (String owner : HookPoints.owners()) {
            try (InputStream in = ClassLoader.getSystemResourceAsStream(owner + ".class")) {
                if (in == null) {
                    continue;
                }
                add(owner, all(in));
                instrumentation.addTransformer(onlooker, true);
                instrumentation.retransformClasses(Class.forName(owner.replace('/', '.'), false, null));
            } catch (ClassNotFoundException | UnmodifiableClassException | LinkageError notOfTheJvm) {
                refused.add(owner.replace('/', '.'));
            } finally {
                instrumentation.removeTransformer(onlooker);
            }
        }
        for (Object[] loaded : seen) {
            add((String) loaded[0], (byte[]) loaded[1]);
        }
    }

    /** The classes of a jar. */
    public void addJar(File path) throws IOException {
        try (JarFile jar = new JarFile(path, false)) {
            for (Enumeration<JarEntry> entries = jar.entries(); entries.hasMoreElements();) {
                JarEntry entry = entries.nextElement();
                String file = entry.getName();
                String name = file.endsWith(".class") ? file.substring(0, file.length() - ".class".length()) : "";
                if (patcher.wantsToLoad(name)) {
                    try (InputStream in = jar.getInputStream(entry)) {
                        add(name, all(in));
                    }
                }
            }
        } catch (IOException unreadable) {
            throw new IOException(path + ": " + unreadable.getMessage(), unreadable);
        }
    }

    private void add(String name, byte[] bytes) {
        byte[] patched = patcher.patchWhole(name, bytes);
        if (patched == null) {
            refused.add(name.replace('/', '.'));
            return;
        }
        List<byte[][]> same = prepared.computeIfAbsent(Prepared.key(bytes), key -> new ArrayList<byte[][]>());
        for (byte[][] known : same) {
            if (Arrays.equals(known[0], bytes)) {
                return;
            }
        }
        same.add(new byte[][] {bytes, patched});
        classes++;
    }

    /** Classes so far. */
    public int size() {
        return classes;
    }

    /** Classes that lack a method that is expected: they are left to the JVM that loads them, which tells so. */
    public Set<String> refused() {
        return refused;
    }

    /** Writes them beside the jar, in one step and readable for all; JVMs that have the file open keep what they have. */
    public File write(File jar) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(Prepared.MAGIC);
        JarIdentity.compute(jar).write(out);
        if (classes > Prepared.MAX_CLASSES) {
            throw new IOException(classes + " classes, and at most " + Prepared.MAX_CLASSES + " can be: name fewer folders");
        }
        out.writeInt(classes);
        int offset = Prepared.HEADER_BYTES + classes * Prepared.ENTRY_BYTES;
        for (Map.Entry<Long, List<byte[][]>> each : prepared.entrySet()) {
            for (byte[][] pair : each.getValue()) {
                out.writeLong(each.getKey());
                out.writeInt(offset);
                out.writeInt(offset + pair[0].length);
                out.writeInt(pair[1].length);
                out.writeInt(Prepared.checksum(pair[1]));
                offset += pair[0].length + pair[1].length;
            }
        }
        for (List<byte[][]> same : prepared.values()) {
            for (byte[][] pair : same) {
                out.write(pair[0]);
                out.write(pair[1]);
            }
        }
        Path file = Prepared.beside(jar).toPath();
        Path unfinished = file.resolveSibling(file.getFileName() + ".new");
        Files.deleteIfExists(unfinished);
        // O_EXCL: nothing that lies there is written through
        Files.write(unfinished, bytes.toByteArray(), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        Files.setPosixFilePermissions(unfinished, PosixFilePermissions.fromString("rw-r--r--"));
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        return file.toFile();
    }

    private static byte[] all(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] part = new byte[8192];
        for (int n = in.read(part); n > 0; n = in.read(part)) {
            bytes.write(part, 0, n);
        }
        return bytes.toByteArray();
    }
}
