package hadoptic.patch;

import hadoptic.hook.Handler;

/** A method of a class that is patched, and what is called when it begins and ends. */
public final class HookPoint {
    /** Class, as in byte code: "java/net/Socket". */
    final String owner;
    /** Method; "&lt;init&gt;" = constructors. */
    final String method;
    /** What is called. */
    final Handler handler;
    /** Accepted descriptors end with one of these; empty = all. */
    private String[] descriptorEnds = {};
    /** What accepted descriptors contain. */
    private String descriptorPart = "";
    /** Whether the end is told too, by return and by exception. */
    boolean exit;
    /** Whether only the end is told; it gets the arguments as token. */
    boolean exitOnly;
    /** Whether the arguments are handed over. */
    boolean arguments;
    /** Whether its absence is told; not where only some versions have it. */
    boolean expected = true;
    /** Methods of other versions in whose place it stands: where it is, they are not missing. */
    private String[] replaced = {};

    private HookPoint(String owner, String method, Handler handler) {
        this.owner = owner;
        this.method = method;
        this.handler = handler;
    }

    /** A point whose begin only is told, without arguments. */
    static HookPoint at(String owner, String method, Handler handler) {
        return new HookPoint(owner, method, handler);
    }

    /** The end is told too. */
    HookPoint withExit() {
        exit = true;
        return this;
    }

    /** The end is told, and the begin is not: for handlers that do nothing there. */
    HookPoint exitOnly() {
        exit = true;
        exitOnly = true;
        return this;
    }

    /** The arguments are handed over. */
    HookPoint withArguments() {
        arguments = true;
        return this;
    }

    /** Only some versions have it. */
    HookPoint optional() {
        expected = false;
        return this;
    }

    /** Another version has it instead of these methods of the same class. */
    HookPoint insteadOf(String... methods) {
        replaced = methods;
        return optional();
    }

    /** Whether the presence of this one explains that a method is not there. */
    boolean replaces(String missing) {
        for (String name : replaced) {
            if (name.equals(missing)) {
                return true;
            }
        }
        return false;
    }

    /** Only methods whose descriptor ends with one of these. */
    HookPoint ending(String... ends) {
        descriptorEnds = ends;
        return this;
    }

    /** Only methods whose descriptor contains this. */
    HookPoint containing(String part) {
        descriptorPart = part;
        return this;
    }

    /** Whether a method is meant. */
    boolean matches(String name, String descriptor) {
        if (!name.equals(method) || !descriptor.contains(descriptorPart)) {
            return false;
        }
        for (String end : descriptorEnds) {
            if (descriptor.endsWith(end)) {
                return true;
            }
        }
        return descriptorEnds.length == 0;
    }
}
