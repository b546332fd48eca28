package hadoptic.hook;

/** What is done when a patched method is entered and left. Handlers may throw: {@link Hooks} catches. */
public abstract class Handler {
    /**
     * The method begins.
     *
     * @param self the object, null in a static method
     * @param arguments all arguments where the hook point asks for them, else null
     * @param now monotonic clock, nanoseconds
     * @return what {@link #exit} gets as token
     */
    public Object enter(Object self, Object[] arguments, long now) throws Throwable {
        return arguments;
    }

    /**
     * The method ends.
     *
     * @param token what {@link #enter} returned
     * @param result what the method returns, null = nothing or thrown
     * @param thrown what it throws, null = it returns
     */
    public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {}
}
