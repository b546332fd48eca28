package hadoptic.hook;

/** Finds arguments by what they are: their places differ between the versions of Hadoop. */
final class Arguments {
    private Arguments() {}

    /** The first argument whose class, or one above it, has this simple name; null = none. */
    static Object named(Object[] arguments, String simpleName) {
        for (Object argument : arguments) {
            for (Class<?> c = argument == null ? null : argument.getClass(); c != null; c = c.getSuperclass()) {
                String name = c.getName();
                if (name.endsWith(simpleName)
                        && (name.length() == simpleName.length()
                                || ".$".indexOf(name.charAt(name.length() - simpleName.length() - 1)) >= 0)) {
                    return argument;
                }
            }
        }
        return null;
    }

    /** The n-th (from 0) argument that is a text; "" = none. */
    static String text(Object[] arguments, int n) {
        int seen = 0;
        for (Object argument : arguments) {
            if (argument instanceof String && seen++ == n) {
                return (String) argument;
            }
        }
        return "";
    }

    /** The n-th (from 0) argument that is a long; 0 = none. */
    static long number(Object[] arguments, int n) {
        int seen = 0;
        for (Object argument : arguments) {
            if (argument instanceof Long && seen++ == n) {
                return (Long) argument;
            }
        }
        return 0;
    }
}
