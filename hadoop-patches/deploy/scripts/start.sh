# Starts an agent unless it runs. NAME, PREFIX, CAPTURE, SERVICE (as whom it goes on), SYSTEMD (yes/no), WAIT (s), $@: its options.
host_folder
run=$PREFIX/run/$NAME.pid
log=$PREFIX/log/$NAME.log
wanted=$(id -u "$SERVICE") || fail "there is no user $SERVICE any more: run install again"
if [ -L "$dir" ] || [ ! -d "$dir" ] || [ "$service" != "$wanted" ] || shared $(stat -c '%g %a' "$dir"); then
    fail "$dir is not the folder of $SERVICE alone any more: run install again"
fi
is_ready() { head_of "$service" "$dir/$NAME.json" 8388608 | grep -q '"ready": true'; }
fresh=no
if ! agent "$NAME"; then
    fresh=yes
    : >"$PREFIX/run/$NAME.stamp"
    if [ "$SYSTEMD" = yes ]; then
        systemctl start "hadoptic-$NAME.service" || exit 1
        pid=$(systemctl show -p MainPID "hadoptic-$NAME.service" | cut -d= -f2)
    else
        # Where memory is short, Hadoop is not what the kernel ends.
        set -- sh -c 'echo 500 >/proc/self/oom_score_adj; exec "$@"' sh "$PREFIX/bin/$NAME" run --out "$dir" --user "$SERVICE" "$@"
        if command -v setsid >/dev/null; then set -- setsid "$@"; else set -- nohup "$@"; fi
        "$@" </dev/null >>"$log" 2>&1 &
        pid=$!
    fi
    born=$(ticks "$pid")
    printf '%s %s %s\n' "$pid" "$born" "$(date +%s)" >"$run.new" && mv -f "$run.new" "$run"
    waited=0
    until [ "$dir/$NAME.json" -nt "$PREFIX/run/$NAME.stamp" ] && is_ready; do
        if ! lives "$pid" "$born"; then
            rm -f "$run"
            # A systemd before 240 knows no log files of units.
            [ -f "$log" ] || journalctl -q -n 3 -o cat -u "hadoptic-$NAME.service" >"$log" 2>/dev/null
            fail "$NAME ended at once: $(tail -n 3 "$log" | tr '\n' ' ')"
        fi
        [ "$waited" -lt $((WAIT * 10)) ] || fail "$NAME does not say that it is ready within $WAIT s: see $log"
        sleep 0.1
        waited=$((waited + 1))
    done
fi
say pid "$pid"
say ticks "$born"
say began "$fresh"
say end start
