# Asks an agent to end and waits until it has. NAME, PREFIX, CAPTURE, SYSTEMD, WAIT (s).
host_folder
run=$PREFIX/run/$NAME.pid
if ! agent "$NAME"; then
    say was idle
else
    say was running
    if [ "$SYSTEMD" = yes ]; then systemctl stop --no-block "hadoptic-$NAME.service"; else kill "$pid"; fi
    waited=0
    while lives "$pid" "$born"; do
        [ "$waited" -lt $((WAIT * 10)) ] ||
            fail "$NAME (process $pid) does not end within $WAIT s; by hand: kill -9 $pid (the record stays readable)"
        sleep 0.1
        waited=$((waited + 1))
    done
fi
rm -f "$run" "$PREFIX/run/$NAME.stamp"
emit "$NAME.json" "$dir/$NAME.json" 8388608
say end stop
