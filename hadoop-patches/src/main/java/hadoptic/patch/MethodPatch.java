package hadoptic.patch;

import java.util.Arrays;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.commons.AdviceAdapter;

/**
 * Puts calls of {@code Hooks.enter} and {@code Hooks.exit} around the body of a method:
 *
 * <pre>
 * Object token = Hooks.enter(number, this, arguments);
 * try { body; each return: Hooks.exit(number, token, this, result, null) }
 * catch (Throwable t) { Hooks.exit(number, token, this, null, t); throw t; }
 * </pre>
 *
 * Where only the end is told, the token is the array of the arguments, and no call stands at the begin.
 *
 * In a constructor the begin is where the superclass is built, and exceptions are not told. Inserted code goes straight
 * to {@code mv}: the adapter follows the stack in constructors, and is not to follow what it did not see begin.
 */
final class MethodPatch extends AdviceAdapter {
    private static final String HOOKS = "hadoptic/hook/Hooks";
    private static final Type OBJECT = Type.getType(Object.class);
    private static final int FIRST_VERSION_WITH_FRAMES = 50;

    private final Patcher.Numbered numbered;
    private final String owner;
    private final int version;
    private final boolean isStatic;
    private final boolean isConstructor;
    private final Label bodyBegin = new Label();
    private int token = -1;

    MethodPatch(MethodVisitor next, int access, String name, String descriptor, String owner, int version,
            Patcher.Numbered numbered) {
        super(Opcodes.ASM9, next, access, name, descriptor);
        this.numbered = numbered;
        this.owner = owner;
        this.version = version;
        this.isStatic = (access & Opcodes.ACC_STATIC) != 0;
        this.isConstructor = name.equals("<init>");
    }

    @Override
    protected void onMethodEnter() {
        boolean tellsBegin = !numbered.point.exitOnly;
        if (tellsBegin) {
            push(numbered.number);
            self();
        }
        if (numbered.point.arguments) {
            loadArgArray();
        } else {
            mv.visitInsn(Opcodes.ACONST_NULL);
        }
        if (tellsBegin) {
            mv.visitMethodInsn(Opcodes.INVOKESTATIC, HOOKS, "enter",
                    "(ILjava/lang/Object;[Ljava/lang/Object;)Ljava/lang/Object;", false);
        }
        if (numbered.point.exit) {
            token = newLocal(OBJECT);
            storeLocal(token);
            mark(bodyBegin);
        } else {
            pop();
        }
    }

    @Override
    protected void onMethodExit(int opcode) {
        if (token < 0 || opcode == Opcodes.ATHROW) {
            return;
        }
        if (opcode == Opcodes.RETURN) {
            mv.visitInsn(Opcodes.ACONST_NULL);
        } else if (opcode == Opcodes.ARETURN) {
            dup();
        } else {
            if (opcode == Opcodes.LRETURN || opcode == Opcodes.DRETURN) {
                dup2();
            } else {
                dup();
            }
            box(Type.getReturnType(methodDesc));
        }
        // stack: result
        push(numbered.number);
        swap();
        loadLocal(token);
        swap();
        self();
        swap();
        // stack: number, token, this, result
        mv.visitInsn(Opcodes.ACONST_NULL);
        exitCall();
    }

    @Override
    public void visitMaxs(int maxStack, int maxLocals) {
        if (token >= 0 && !isConstructor) {
            Label handler = new Label();
            visitTryCatchBlock(bodyBegin, handler, handler, "java/lang/Throwable");
            visitLabel(handler);
            frameOfHandler();
            dup();
            push(numbered.number);
            swap();
            loadLocal(token);
            swap();
            self();
            swap();
            mv.visitInsn(Opcodes.ACONST_NULL);
            swap();
            exitCall();
            mv.visitInsn(Opcodes.ATHROW);
        }
        super.visitMaxs(maxStack, maxLocals);
    }

    private void exitCall() {
        mv.visitMethodInsn(Opcodes.INVOKESTATIC, HOOKS, "exit",
                "(ILjava/lang/Object;Ljava/lang/Object;Ljava/lang/Object;Ljava/lang/Throwable;)V", false);
    }

    private void self() {
        if (isStatic) {
            mv.visitInsn(Opcodes.ACONST_NULL);
        } else {
            loadThis();
        }
    }

    /** Of the locals only this and the token are sure: the body may have put anything into its parameters. */
    private void frameOfHandler() {
        if (version < FIRST_VERSION_WITH_FRAMES) {
            return;
        }
        Object[] locals = new Object[token + 1];
        Arrays.fill(locals, Opcodes.TOP);
        if (!isStatic) {
            locals[0] = owner;
        }
        locals[token] = "java/lang/Object";
        mv.visitFrame(Opcodes.F_NEW, locals.length, locals, 1, new Object[] {"java/lang/Throwable"});
    }
}
