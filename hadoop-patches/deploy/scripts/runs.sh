# Which agents run, whose the agents' folder is, and what was installed. PREFIX, CAPTURE.
say name "$(uname -n)"
host_folder
[ -d "$dir" ] && [ ! -L "$dir" ] && say folder "$dir"
# In a folder of theirs files are looked at with their rights.
say reader "$service $(getent passwd "$service" | cut -d: -f4)"
for name in sniffer dumpingd; do
    if agent "$name"; then say "$name" "$pid"; fi
done
[ ! -d "$CAPTURE" ] || say disk "$(df -Pk "$CAPTURE" | awk 'NR == 2 { print $4, $2 }')"
emit installed.json "$PREFIX/installed.json" 4194304
say end runs
