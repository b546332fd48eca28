# Starts an agent unless it runs. NAME, PREFIX, CAPTURE, OWNER ("" = root), SYSTEMD (yes/no), WAIT (s), $@: its options.
host=$(uname -n)
dir=$CAPTURE/$host
run=$PREFIX/run/$NAME.pid
log=$PREFIX/log/$NAME.log
if [ -L "$dir" ] || [ ! -d "$dir" ] || [ "$(stat -c %u "$dir")" != 0 ]; then
    fail "$dir is not root's folder any more: run install again"
fi
fresh=no
if ! agent "$NAME"; then
    fresh=yes
    : >"$PREFIX/run/$NAME.stamp"
    if [ "$SYSTEMD" = yes ]; then
        systemctl start "hadoptic-$NAME.service" || exit 1
        pid=$(systemctl show -p MainPID "hadoptic-$NAME.service" | cut -d= -f2)
    else
        set -- "$PREFIX/bin/$NAME" run --out "$dir" "$@"
        [ -z "$OWNER" ] || set -- setpriv --reuid="$OWNER" --regid="$(id -g "$OWNER")" --init-groups "$@"
        if command -v setsid >/dev/null; then set -- setsid "$@"; else set -- nohup "$@"; fi
        "$@" </dev/null >>"$log" 2>&1 &
        pid=$!
    fi
    born=$(ticks "$pid")
    printf '%s %s %s\n' "$pid" "$born" "$(date +%s)" >"$run.new" && mv -f "$run.new" "$run"
    waited=0
    until [ "$dir/$NAME.json" -nt "$PREFIX/run/$NAME.stamp" ] && grep -q '"ready": true' "$dir/$NAME.json"; do
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
