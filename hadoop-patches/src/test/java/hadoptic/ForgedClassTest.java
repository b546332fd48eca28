package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.zip.CRC32;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.objectweb.asm.Attribute;
import org.objectweb.asm.ByteVector;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Nobody gets a class of his own into others' JVMs by way of the classes that are patched beforehand. */
class ForgedClassTest {
    /** A class that is patched; of its methods it needs but a constructor. */
    private static final String NAME = "org/apache/hadoop/mapred/ShuffleHandler$ReduceContext";

    @TempDir
    Path built;

    private Path genuine;

    @BeforeEach
    void build() throws Exception {
        Jvm.build(built);
        genuine = Files.createDirectories(built.resolve(NAME).getParent()).resolve(built.resolve(NAME).getFileName() + ".class");
        Files.write(genuine, program("genuine"));
    }

    /** A program that says a word, and ends with four bytes that mean nothing. */
    private static byte[] program(String word) {
        ClassWriter type = new ClassWriter(0);
        type.visit(Opcodes.V1_8, Opcodes.ACC_PUBLIC, NAME, null, "java/lang/Object", null);
        MethodVisitor made = type.visitMethod(Opcodes.ACC_PUBLIC, "<init>", "()V", null, null);
        made.visitCode();
        made.visitVarInsn(Opcodes.ALOAD, 0);
        made.visitMethodInsn(Opcodes.INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
        made.visitInsn(Opcodes.RETURN);
        made.visitMaxs(1, 1);
        made.visitEnd();
        MethodVisitor main = type.visitMethod(Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC, "main", "([Ljava/lang/String;)V", null, null);
        main.visitCode();
        main.visitFieldInsn(Opcodes.GETSTATIC, "java/lang/System", "out", "Ljava/io/PrintStream;");
        main.visitLdcInsn("it is " + word);
        main.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/io/PrintStream", "println", "(Ljava/lang/String;)V", false);
        main.visitInsn(Opcodes.RETURN);
        main.visitMaxs(2, 1);
        main.visitEnd();
        type.visitAttribute(new Attribute("Padding") {
            @Override
            protected ByteVector write(ClassWriter in, byte[] code, int length, int stack, int locals) {
                return new ByteVector(4).putInt(0);
            }
        });
        type.visitEnd();
        return type.toByteArray();
    }

    private static int checksum(byte[] bytes, int length) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, length);
        return (int) crc.getValue();
    }

    /** Sets the last four bytes so that the checksum is this one. */
    private static void force(byte[] bytes, int checksum) {
        int[] table = new int[256];
        for (int i = 0; i < 256; i++) {
            int c = i;
            for (int bit = 0; bit < 8; bit++) {
                c = (c & 1) != 0 ? c >>> 1 ^ 0xEDB88320 : c >>> 1;
            }
            table[i] = c;
        }
        int state = ~checksum;
        for (int step = 0; step < 4; step++) {
            int i = 0;
            while (table[i] >>> 24 != state >>> 24) {
                i++;
            }
            state = (state ^ table[i]) << 8 | i;
        }
        int last = state ^ ~checksum(bytes, bytes.length - 4);
        for (int i = 0; i < 4; i++) {
            bytes[bytes.length - 4 + i] = (byte) (last >>> 8 * i);
        }
    }

    private Path jar(Path path, byte[] type) throws Exception {
        try (OutputStream file = Files.newOutputStream(path); JarOutputStream jar = new JarOutputStream(file)) {
            jar.putNextEntry(new JarEntry(NAME + ".class"));
            jar.write(type);
        }
        return path;
    }

    private static byte[] forged(byte[] genuine) {
        byte[] forged = program("forged!");
        force(forged, checksum(genuine, genuine.length));
        assertEquals(genuine.length, forged.length);
        assertEquals(checksum(genuine, genuine.length), checksum(forged, forged.length));
        assertFalse(Arrays.equals(genuine, forged));
        return forged;
    }

    private String prepare(Path... jars) throws Exception {
        List<String> command = Jvm.command(built, "prepare", "hadoptic.agent.Prepare");
        command.set(command.indexOf(built.toString()), built.resolve("agent.jar").toString());
        for (Path jar : jars) {
            command.add(jar.toString());
        }
        return Jvm.said(command);
    }

    private String run() throws Exception {
        return Jvm.said(Jvm.command(built, "out=" + built.resolve("jvm"), NAME.replace('/', '.')));
    }

    @Test
    void aForgedClassOfTheSameChecksumAndLengthIsNotRunInPlaceOfTheGenuineOne() throws Exception {
        prepare(jar(built.resolve("hadoop-x.jar"), forged(Files.readAllBytes(genuine))));
        assertTrue(run().contains("it is genuine"));
        // and both are known where both are prepared
        prepare(built.resolve("hadoop-x.jar"), jar(built.resolve("hadoop-y.jar"), Files.readAllBytes(genuine)));
        assertTrue(run().contains("it is genuine"));
        List<String> lines = Jvm.lines(built.resolve("jvm"));
        assertTrue(Jvm.sum(lines.subList(lines.size() - 1, lines.size()), "end", "prepared") > 0, lines.toString());
        Files.write(genuine, forged(Files.readAllBytes(genuine)));
        assertTrue(run().contains("it is forged!"));
    }

    @Test
    void aJarThatAnotherUserCouldChangeIsLeftOut() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        byte[] type = Files.readAllBytes(genuine);
        Path his = jar(Files.createDirectory(built.resolve("his")).resolve("hadoop-a.jar"), type);
        Files.setAttribute(his, "unix:uid", Jvm.NOBODY);
        Path inHis = jar(Files.createDirectory(built.resolve("folder")).resolve("hadoop-b.jar"), type);
        Files.setAttribute(inHis.getParent(), "unix:uid", Jvm.NOBODY);
        Path writable = jar(Files.createDirectory(built.resolve("open")).resolve("hadoop-c.jar"), type);
        Files.setPosixFilePermissions(writable.getParent(), PosixFilePermissions.fromString("rwxrwxrwx"));
        Path linked = Files.createSymbolicLink(built.resolve("hadoop-d.jar"), his);
        String said = prepare(his, inHis, writable, linked, built);
        for (Path each : Arrays.asList(his, inHis.getParent(), writable.getParent())) {
            assertTrue(said.contains(each.toString()), said);
        }
        int prepared = Integer.parseInt(said.replaceAll("(?s).*patches: (\\d+) classes.*", "$1"));
        Path ours = jar(Files.createDirectory(built.resolve("ours")).resolve("hadoop-e.jar"), type);
        assertTrue(prepare(ours).contains("patches: " + (prepared + 1) + " classes"));
    }

    @Test
    void patchesOfAnotherUserOrThatOthersMayWriteAreNotBelieved() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        prepare(jar(built.resolve("hadoop-x.jar"), Files.readAllBytes(genuine)));
        Path patches = built.resolve("agent.jar.patches");
        assertFalse(run().contains("is not used"));
        Files.setPosixFilePermissions(patches, PosixFilePermissions.fromString("rw-rw-rw-"));
        assertTrue(run().contains("others may write to it"));
        Files.setPosixFilePermissions(patches, PosixFilePermissions.fromString("rw-r--r--"));
        Files.setAttribute(patches, "unix:uid", Jvm.NOBODY);
        assertTrue(run().contains("belongs to user 65534"));
        Files.setAttribute(patches, "unix:uid", 0);
        Files.move(patches, built.resolve("elsewhere"));
        Files.createSymbolicLink(patches, built.resolve("elsewhere"));
        assertTrue(run().contains("a link to one"));
    }

    @Test
    void aPipeInPlaceOfThePatchesDoesNotHangTheStart() throws Exception {
        Jvm.said(Arrays.asList("mkfifo", built.resolve("agent.jar.patches").toString()));
        assertTrue(run().contains("it is genuine"));
    }

    @Test
    void whatAnOlderVersionPreparedIsNotUsedAndMadeAnew() throws Exception {
        Path patches = built.resolve("agent.jar.patches");
        byte[] old = new byte[100];
        System.arraycopy("hadoptid".getBytes("US-ASCII"), 0, old, 0, 8);
        Files.write(patches, old);
        assertTrue(run().contains("was not written by this version"));
        prepare(jar(built.resolve("hadoop-x.jar"), Files.readAllBytes(genuine)));
        assertFalse(run().contains("is not used"));
    }

    @Test
    void aCopyOfTheJarIsTheSameJarAndAChangedOneIsNot() throws Exception {
        prepare(jar(built.resolve("hadoop-x.jar"), Files.readAllBytes(genuine)));
        Path jar = built.resolve("agent.jar");
        Files.setLastModifiedTime(jar, java.nio.file.attribute.FileTime.fromMillis(1_000_000));
        assertFalse(run().contains("is not used"), "the same bytes");
        byte[] bytes = Files.readAllBytes(jar);
        // in a class that no JVM of this test loads
        String name = "hadoptic/agent/Attach.class";
        int entry = new String(bytes, StandardCharsets.ISO_8859_1).indexOf(name);
        bytes[entry + name.length() + 20] ^= 1;
        Files.write(jar, bytes);
        Files.setLastModifiedTime(jar, java.nio.file.attribute.FileTime.fromMillis(2_000_000));
        assertTrue(run().contains("another agent"));
    }
}
