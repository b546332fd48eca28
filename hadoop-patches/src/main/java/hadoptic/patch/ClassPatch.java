package hadoptic.patch;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Patches the methods of one class, and gives it a place for a tag where wanted. */
final class ClassPatch extends ClassVisitor {
    private static final String TAGGED = "hadoptic/hook/Tagged";
    private static final String TAG = "hadoptic$tag";
    private static final String OBJECT = "Ljava/lang/Object;";

    private final List<Patcher.Numbered> points;
    private final Set<HookPoint> found = new HashSet<HookPoint>();
    private final boolean tag;
    private String name;
    private int version;

    ClassPatch(ClassWriter next, List<Patcher.Numbered> points, boolean tag) {
        super(Opcodes.ASM9, next);
        this.points = points;
        this.tag = tag;
    }

    /** Points that were expected and are not there. */
    List<HookPoint> missing() {
        List<HookPoint> missing = new ArrayList<HookPoint>();
        for (Patcher.Numbered numbered : points) {
            if (numbered.point.expected && !found.contains(numbered.point) && !isReplaced(numbered.point.method)) {
                missing.add(numbered.point);
            }
        }
        return missing;
    }

    private boolean isReplaced(String method) {
        for (HookPoint there : found) {
            if (there.replaces(method)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void visit(int version, int access, String name, String signature, String superName, String[] interfaces) {
        this.name = name;
        this.version = version & 0xffff;
        String[] all = interfaces;
        if (tag) {
            int n = interfaces == null ? 0 : interfaces.length;
            all = new String[n + 1];
            for (int i = 0; i < n; i++) {
                all[i] = interfaces[i];
            }
            all[n] = TAGGED;
        }
        // A generic signature would name the interfaces again; it is not needed to run.
        super.visit(version, access, name, tag ? null : signature, superName, all);
    }

    @Override
    public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] exceptions) {
        MethodVisitor next = super.visitMethod(access, method, descriptor, signature, exceptions);
        if ((access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE | Opcodes.ACC_BRIDGE)) != 0) {
            return next;
        }
        for (Patcher.Numbered numbered : points) {
            if (numbered.point.matches(method, descriptor)) {
                found.add(numbered.point);
                return new MethodPatch(next, access, method, descriptor, name, version, numbered);
            }
        }
        return next;
    }

    @Override
    public void visitEnd() {
        if (tag) {
            addTag();
        }
        super.visitEnd();
    }

    private void addTag() {
        FieldVisitor field = super.visitField(
                Opcodes.ACC_PRIVATE | Opcodes.ACC_VOLATILE | Opcodes.ACC_TRANSIENT | Opcodes.ACC_SYNTHETIC, TAG, OBJECT, null, null);
        field.visitEnd();
        MethodVisitor get = super.visitMethod(
                Opcodes.ACC_PUBLIC | Opcodes.ACC_SYNTHETIC, TAG, "()" + OBJECT, null, null);
        get.visitCode();
        get.visitVarInsn(Opcodes.ALOAD, 0);
        get.visitFieldInsn(Opcodes.GETFIELD, name, TAG, OBJECT);
        get.visitInsn(Opcodes.ARETURN);
        get.visitMaxs(1, 1);
        get.visitEnd();
        MethodVisitor set = super.visitMethod(
                Opcodes.ACC_PUBLIC | Opcodes.ACC_SYNTHETIC, TAG, "(" + OBJECT + ")V", null, null);
        set.visitCode();
        set.visitVarInsn(Opcodes.ALOAD, 0);
        set.visitVarInsn(Opcodes.ALOAD, 1);
        set.visitFieldInsn(Opcodes.PUTFIELD, name, TAG, OBJECT);
        set.visitInsn(Opcodes.RETURN);
        set.visitMaxs(2, 2);
        set.visitEnd();
    }
}
