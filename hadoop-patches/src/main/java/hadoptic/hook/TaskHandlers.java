package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Task attempts and their phases. A 1.x child runs several attempts one after the other. */
public final class TaskHandlers {
    /** Attempts that run in this JVM now: task objects are also made by masters, which do not run them. */
    private static final Set<String> RUNNING = ConcurrentHashMap.newKeySet();
    private static volatile String lastAttempt = "";
    private static volatile String container = "";

    private TaskHandlers() {}

    /** What the command line and the environment tell before the task is there. */
    public static void knownFromStart(String attempt, String inContainer, long now) {
        container = inContainer;
        if (!attempt.isEmpty()) {
            lastAttempt = attempt;
            Hooks.record(new Attempt(now, attempt));
        }
    }

    private static final class Attempt implements Record {
        private final long t;
        private final String attempt;

        Attempt(long t, String attempt) {
            this.t = t;
            this.attempt = attempt;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("attempt").time("t", t).string("attempt", attempt).optional("container", container).end();
        }
    }

    private static final class Phase implements Record {
        private final long thread = Thread.currentThread().getId();
        private final long t;
        private final String attempt;
        private final String phase;

        Phase(long t, String attempt, String phase) {
            this.t = t;
            this.attempt = attempt;
            this.phase = phase;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("phase").time("t", t).number("th", thread).string("attempt", attempt).string("phase", phase).end();
        }
    }

    private static String attemptOf(Object task) throws IllegalAccessException {
        Object id = Fields.get(task, "taskId", "reduceId");
        return id == null ? "" : id.toString();
    }

    /** {@code MapTask.run} and {@code ReduceTask.run}. */
    public static final class Runs extends Handler {
        private final String firstPhase;

        /** With the phase in which it begins. */
        public Runs(String firstPhase) {
            this.firstPhase = firstPhase;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            String attempt = attemptOf(self);
            if (!attempt.equals(lastAttempt)) {
                lastAttempt = attempt;
                Hooks.record(new Attempt(now, attempt));
            }
            RUNNING.add(attempt);
            Hooks.record(new Phase(now, attempt, firstPhase));
            Hooks.hurry();
            return attempt;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            if (token != null) {
                RUNNING.remove(token);
                Hooks.record(new Phase(now, (String) token, "end"));
                Hooks.hurry();
            }
        }
    }

    /** {@code Task.setPhase(Phase)}: sort and reduce; how a task begins is seen by {@link Runs}. */
    public static final class Enters extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            String phase = String.valueOf(arguments[0]);
            if (phase.equals("SORT") || phase.equals("REDUCE")) {
                note(self, phase.equals("SORT") ? "sort" : "reduce", now);
            }
            return null;
        }
    }

    /** A method whose begin is the begin of a phase. */
    public static final class Begins extends Handler {
        private final String phase;

        /** Of this name. */
        public Begins(String phase) {
            this.phase = phase;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            note(self, phase, now);
            return null;
        }
    }

    private static final class Work implements Record {
        private final long thread = Thread.currentThread().getId();
        private final long begin;
        private final long end;
        private final String attempt;
        private final String work;

        Work(long begin, long end, String attempt, String work) {
            this.begin = begin;
            this.end = end;
            this.attempt = attempt;
            this.work = work;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("work").time("t0", begin).time("t1", end).number("th", thread).string("attempt", attempt)
                    .string("work", work).end();
        }
    }

    /** A part of a task that has a begin and an end: a spill of a map's buffer, a merge. */
    public static final class Works extends Handler {
        private final String work;

        /** Of this name. */
        public Works(String work) {
            this.work = work;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return now;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (token != null) {
                String attempt = attemptOf(Fields.get(self, "mapTask", "this$0"));
                Hooks.record(new Work((Long) token, now, attempt.isEmpty() ? lastAttempt : attempt, work));
            }
        }
    }

    private static void note(Object holder, String phase, long now) throws IllegalAccessException {
        String attempt = attemptOf(holder);
        if (RUNNING.contains(attempt)) {
            Hooks.record(new Phase(now, attempt, phase));
            Hooks.hurry();
        }
    }
}
