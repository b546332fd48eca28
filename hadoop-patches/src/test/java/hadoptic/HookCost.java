package hadoptic;

import hadoptic.hook.Handler;
import hadoptic.hook.Hooks;
import hadoptic.log.Buffer;

/** What a hook costs that does nothing, beside the time that it adds up itself: prints nanoseconds for an enter with an exit. */
public final class HookCost {
    private HookCost() {}

    public static void main(String[] arguments) {
        Hooks.install(new Handler[] {new Handler() {}}, new Buffer(16));
        for (int round = 0; round < 10; round++) {
            int hooks = 5_000_000;
            long counted = Hooks.nanoseconds();
            long begin = System.nanoTime();
            for (int i = 0; i < hooks; i++) {
                Object token = Hooks.enter(0, "", null);
                Hooks.exit(0, token, "", null, null);
            }
            double all = (double) (System.nanoTime() - begin) / hooks;
            System.out.printf("%.1f ns, of them counted %.1f%n", all, (double) (Hooks.nanoseconds() - counted) / hooks);
        }
    }
}
