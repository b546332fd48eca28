package hadoptic.hook;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.ConcurrentHashMap;

/** Reads fields and calls methods without arguments of Hadoop's objects, whose classes this loader cannot see. */
public final class Fields {
    private static final Object NONE = new Object();
    private static final ClassValue<ConcurrentHashMap<String, Object>> KNOWN =
            new ClassValue<ConcurrentHashMap<String, Object>>() {
                @Override
                protected ConcurrentHashMap<String, Object> computeValue(Class<?> type) {
                    return new ConcurrentHashMap<String, Object>();
                }
            };

    private Fields() {}

    /** Value of the first of these fields that the object has; null = none or empty. */
    public static Object get(Object target, String... names) throws IllegalAccessException {
        for (String name : names) {
            Object field = target == null ? NONE : field(target.getClass(), name);
            if (field != NONE) {
                return ((Field) field).get(target);
            }
        }
        return null;
    }

    /** Value of a numeric field. */
    public static long number(Object target, String name, long otherwise) throws IllegalAccessException {
        Object value = get(target, name);
        return value instanceof Number ? ((Number) value).longValue() : otherwise;
    }

    /** Result of a method without arguments; null = it returns null, or there is none of that name. */
    public static Object call(Object target, String name) throws ReflectiveOperationException {
        Object method = target == null ? NONE : method(target.getClass(), name);
        return method == NONE ? null : ((Method) method).invoke(target);
    }

    /** Result of a method without arguments that returns a number. */
    public static long numberOf(Object target, String name, long otherwise) throws ReflectiveOperationException {
        Object value = call(target, name);
        return value instanceof Number ? ((Number) value).longValue() : otherwise;
    }

    private static Object field(Class<?> type, String name) {
        ConcurrentHashMap<String, Object> known = KNOWN.get(type);
        Object field = known.get(name);
        if (field == null) {
            field = findField(type, name);
            known.put(name, field);
        }
        return field;
    }

    private static Object findField(Class<?> type, String name) {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            try {
                Field field = c.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException higher) {
                // perhaps in the superclass
            }
        }
        return NONE;
    }

    private static Object method(Class<?> type, String name) {
        ConcurrentHashMap<String, Object> known = KNOWN.get(type);
        String key = name + "()";
        Object method = known.get(key);
        if (method == null) {
            method = findMethod(type, name);
            known.put(key, method);
        }
        return method;
    }

    private static Object findMethod(Class<?> type, String name) {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            try {
                Method method = c.getDeclaredMethod(name);
                method.setAccessible(true);
                return method;
            } catch (NoSuchMethodException higher) {
                // perhaps in the superclass
            }
        }
        try {
            Method method = type.getMethod(name);
            method.setAccessible(true);
            return method;
        } catch (NoSuchMethodException none) {
            return NONE;
        }
    }
}
