package hadoptic.log;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.IdentityHashMap;

/**
 * Writes JSON objects, one a line, as bytes; keys are given in the order in which they shall stand.
 *
 * <p>No object is made for a number or a known address: a busy server makes tens of thousands of records a second.
 */
public final class JsonLine {
    private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] SMALLEST = String.valueOf(Long.MIN_VALUE).getBytes(StandardCharsets.US_ASCII);
    /** Of a text so many characters are kept: names of classes, methods and threads may be as long as a program likes. */
    public static final int MAX_TEXT = 256;
    /** Stands behind a text that was cut: "...". */
    private static final char CUT = '\u2026';
    private static final int REMEMBERED_ADDRESSES = 1024;

    private final IdentityHashMap<InetSocketAddress, byte[]> addresses = new IdentityHashMap<InetSocketAddress, byte[]>();
    private final byte[] digits = new byte[20];
    private byte[] bytes = new byte[1 << 14];
    private int size;
    private long offset;

    /** From now on times of the monotonic clock are moved by so much, in nanoseconds, to be of the wall clock. */
    public void clock(long wallMinusMonotonic) {
        offset = wallMinusMonotonic;
    }

    /** Begins an object of a kind. */
    public JsonLine begin(String kind) {
        ascii("{\"k\":\"");
        ascii(kind);
        put('"');
        return this;
    }

    /** Ends the object and the line. */
    public void end() {
        ascii("}\n");
    }

    /** A number. */
    public JsonLine number(String key, long value) {
        key(key);
        decimal(value);
        return this;
    }

    /** A number without a sign: block ids of Hadoop 1.x are random and may be negative as Java counts. */
    public JsonLine unsigned(String key, long value) {
        if (value >= 0) {
            return number(key, value);
        }
        key(key);
        ascii(Long.toUnsignedString(value));
        return this;
    }

    /** A time of the monotonic clock, written as of the wall clock; 0 stays 0 = not seen. */
    public JsonLine time(String key, long monotonic) {
        return number(key, monotonic == 0 ? 0 : monotonic + offset);
    }

    /** A text; none = "". */
    public JsonLine string(String key, String value) {
        key(key);
        quote(value == null ? "" : value);
        return this;
    }

    /** A text that is left out where there is none. */
    public JsonLine optional(String key, String value) {
        return value == null || value.isEmpty() ? this : string(key, value);
    }

    /** A number that is left out where it is 0. */
    public JsonLine some(String key, long value) {
        return value == 0 ? this : number(key, value);
    }

    /** Texts that are left out where there are none. */
    public JsonLine some(String key, Collection<String> values) {
        return values == null || values.isEmpty() ? this : strings(key, values);
    }

    /** Numbers that are left out where there are none. */
    public JsonLine numbers(String key, long[] values) {
        if (values.length == 0) {
            return this;
        }
        key(key);
        char before = '[';
        for (long value : values) {
            put(before);
            decimal(value);
            before = ',';
        }
        put(']');
        return this;
    }

    /** Texts. */
    public JsonLine strings(String key, Iterable<String> values) {
        key(key);
        put('[');
        boolean first = true;
        for (String value : values) {
            if (!first) {
                put(',');
            }
            quote(value);
            first = false;
        }
        put(']');
        return this;
    }

    /** Bytes as hexadecimal digits; none = "". */
    public JsonLine hex(String key, byte[] value) {
        key(key);
        put('"');
        for (int i = 0; value != null && i < value.length; i++) {
            put(HEX[(value[i] >> 4) & 15]);
            put(HEX[value[i] & 15]);
        }
        put('"');
        return this;
    }

    /** An address as "ip:port", "[ip]:port" for version 6; none = "". */
    public JsonLine address(String key, InetSocketAddress value) {
        key(key);
        byte[] known = addresses.get(value);
        if (known == null) {
            known = ('"' + text(value) + '"').getBytes(StandardCharsets.US_ASCII);
            if (addresses.size() >= REMEMBERED_ADDRESSES) {
                addresses.clear();
            }
            addresses.put(value, known);
        }
        room(known.length);
        System.arraycopy(known, 0, bytes, size, known.length);
        size += known.length;
        return this;
    }

    /** An address as "ip:port", "[ip]:port" for version 6; none or unresolved = "". */
    public static String text(InetSocketAddress value) {
        InetAddress ip = value == null ? null : value.getAddress();
        if (ip == null) {
            return "";
        }
        String host = ip.getHostAddress();
        int scope = host.indexOf('%');
        host = scope < 0 ? host : host.substring(0, scope);
        return host.indexOf(':') < 0 ? host + ':' + value.getPort() : '[' + host + "]:" + value.getPort();
    }

    /** A line end of its own: what stands before it in the file may be torn. */
    public void tear() {
        put('\n');
    }

    /** Writes the bytes so far; {@link #cut}(0) forgets them. */
    public void writeTo(OutputStream out) throws IOException {
        out.write(bytes, 0, size);
    }

    /** Takes the text out. */
    public String take() {
        String taken = new String(bytes, 0, size, StandardCharsets.UTF_8);
        size = 0;
        return taken;
    }

    /** Length so far, in bytes. */
    public int length() {
        return size;
    }

    /** Forgets all after the first bytes: what was written, or a record that failed half-way. */
    public void cut(int length) {
        size = length;
    }

    private void key(String key) {
        put(',');
        put('"');
        ascii(key);
        put('"');
        put(':');
    }

    private void decimal(long value) {
        if (value == Long.MIN_VALUE) {
            for (byte b : SMALLEST) {
                put(b);
            }
            return;
        }
        long rest = Math.abs(value);
        int at = digits.length;
        do {
            digits[--at] = (byte) ('0' + rest % 10);
            rest /= 10;
        } while (rest != 0);
        if (value < 0) {
            put('-');
        }
        room(digits.length);
        System.arraycopy(digits, at, bytes, size, digits.length - at);
        size += digits.length - at;
    }

    private void ascii(String text) {
        room(text.length());
        for (int i = 0; i < text.length(); i++) {
            bytes[size++] = (byte) text.charAt(i);
        }
    }

    private void quote(String value) {
        put('"');
        int end = Math.min(value.length(), MAX_TEXT);
        for (int i = 0; i < end; i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                put('\\');
                put(c);
            } else if (c < 0x20 || c == 0x7f) {
                ascii("\\u00");
                put(HEX[c >> 4]);
                put(HEX[c & 15]);
            } else if (c < 0x80) {
                put(c);
            } else if (Character.isHighSurrogate(c) && i + 1 < end
                    && Character.isLowSurrogate(value.charAt(i + 1))) {
                utf8(Character.toCodePoint(c, value.charAt(++i)));
            } else {
                utf8(Character.isSurrogate(c) ? 0xFFFD : c);
            }
        }
        if (end < value.length()) {
            utf8(CUT);
        }
        put('"');
    }

    private void utf8(int point) {
        if (point < 0x800) {
            put(0xC0 | point >> 6);
        } else {
            if (point < 0x10000) {
                put(0xE0 | point >> 12);
            } else {
                put(0xF0 | point >> 18);
                put(0x80 | point >> 12 & 0x3F);
            }
            put(0x80 | point >> 6 & 0x3F);
        }
        put(0x80 | point & 0x3F);
    }

    private void put(int b) {
        room(1);
        bytes[size++] = (byte) b;
    }

    private void room(int more) {
        if (bytes.length - size < more) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, size + more));
        }
    }
}
