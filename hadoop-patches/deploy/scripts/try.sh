# Runs the programs that were copied to FOLDER, loads the jar with JAVA, and takes the folder away. $@: checksums.
trap 'rm -rf -- "$FOLDER"' EXIT
cd "$FOLDER" || exit 1
for name in sniffer dumpingd hadoptic-agent.jar; do
    [ -f "$name" ] || continue
    sum=$(checksum "$name")
    case " $* " in *" $sum "*) ;; *) say wrong "$name" ;; esac
done
for name in sniffer dumpingd; do
    chmod 700 "$name"
    if version=$("./$name" --version 2>&1); then say "$name" "$version"; else say bad "$name: $(printf '%s' "$version" | tr '\n' ' ')"; fi
done
if [ -n "$JAVA" ]; then
    if told=$(loads "$JAVA" "$FOLDER/hadoptic-agent.jar"); then
        say loads yes
    else
        say bad "$JAVA does not load the agent: $(printf '%s' "$told" | tr '\n' ' ')"
    fi
fi
cd / && rm -rf -- "$FOLDER" || say left "$FOLDER"
say end try
