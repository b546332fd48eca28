package hadoptic.hook;

/** Names of called methods, out of requests of Hadoop's RPC engines. */
final class RpcMethods {
    private RpcMethods() {}

    /**
     * Name of the method that a request calls, "" = unknown. Reads fields only: asking a protobuf request for its
     * header parses its buffer, and {@code RPC$Invocation.toString()} may print parameters.
     */
    static String nameOf(Object request) throws ReflectiveOperationException {
        Object name = Fields.get(request, "methodName");
        if (name == null) {
            Object header = Fields.get(request, "requestHeader");
            name = header == null ? null : Fields.call(header, "getMethodName");
        }
        return name == null ? "" : name.toString();
    }
}
