# Which agents run. PREFIX, CAPTURE.
for name in sniffer dumpingd; do
    if agent "$name"; then say "$name" "$pid"; fi
done
say end runs
