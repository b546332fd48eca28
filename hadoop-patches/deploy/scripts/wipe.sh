# Takes everything away. PREFIX, CAPTURE, KEEP_CAPTURES, KEEP_JAR, SYSTEMD (yes/no).
host=$(uname -n)
if [ "$SYSTEMD" = yes ]; then
    # Whoever wanted them at boot made links to them.
    systemctl -q disable hadoptic-sniffer.service hadoptic-dumpingd.service 2>/dev/null
    rm -f /etc/systemd/system/hadoptic-sniffer.service /etc/systemd/system/hadoptic-dumpingd.service
    systemctl daemon-reload
    systemctl reset-failed hadoptic-sniffer.service hadoptic-dumpingd.service 2>/dev/null
fi
made=$(sort -u -r "$PREFIX/run/made" 2>/dev/null)
mode=$(cat "$PREFIX/run/capture_mode" 2>/dev/null)
user=$(cat "$PREFIX/run/made_user" 2>/dev/null)
# First what daemons call when they miss an agent.
rm -f -- "$PREFIX/bin/start-sniffer" "$PREFIX/bin/start-dumpingd" "$PREFIX/bin/sniffer" "$PREFIX/bin/dumpingd" "$PREFIX/bin/merger"
rm -rf -- "$PREFIX/backup" "$PREFIX/log" "$PREFIX/new"
if [ "$KEEP_CAPTURES" != yes ]; then
    rm -rf -- "${CAPTURE:?}/${host:?}" "${CAPTURE:?}/jvm"
else
    # The user goes, and its number may become another's: what is kept is root's.
    for folder in "$CAPTURE/$host" "$CAPTURE/jvm"; do
        [ ! -d "$folder" ] || [ -L "$folder" ] || { chmod 700 "$folder" && chown 0:0 "$folder"; }
    done
fi
if [ "$KEEP_JAR" != yes ]; then
    rm -f -- "$PREFIX/bin/agent-option" "$PREFIX/lib/hadoptic-agent.jar" "$PREFIX/lib/hadoptic-agent.jar.patches" "$PREFIX/installed.json"
    rm -rf -- "$PREFIX/run"
    if [ "$user" = hadoptic ]; then
        # Other hosts that share this one's processes, as containers do, may have one of his number.
        said=$( { userdel hadoptic || unshare --mount --pid --fork --mount-proc userdel hadoptic || deluser hadoptic; } 2>&1)
        ! id -u hadoptic >/dev/null 2>&1 || say left "the user hadoptic ($said)"
        ! grep -q '^hadoptic:' /etc/group || groupdel hadoptic 2>/dev/null || delgroup hadoptic 2>/dev/null
    fi
fi
[ -z "$mode" ] || [ ! -d "$CAPTURE" ] || chmod "$mode" "$CAPTURE"
# Innermost first; what holds things of others stays. These paths hold no blanks.
for folder in $made; do
    rmdir -- "$folder" 2>/dev/null
done
for folder in "$PREFIX" "$CAPTURE/$host" "$CAPTURE/jvm"; do
    [ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || say left "$folder: $(ls -A "$folder" | head -n 5 | tr '\n' ' ')"
done
rm -f /run/hadoptic.lock /var/run/hadoptic.lock
say end wipe
