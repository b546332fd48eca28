#!/bin/sh
# Made by `hadoptic install`, taken away by `hadoptic remove`. Prints the option that loads the agent into a JVM, if the
# jar is there as it was brought: one that is missing or damaged would end the JVM, which so runs without it. That is said
# once a user, here and in the file no-agent of his records' folder, until the next install.
PATH=/usr/bin:/bin:/usr/local/bin:$PATH
jar=@JAR@
read -r sum name <<X
$(sha256sum 2>/dev/null <"$jar")
X
if [ "$sum" = @SUM@ ]; then
    echo "-javaagent:$jar=@OPTIONS@"
    exit 0
fi
user=$(id -u)
folder=@JVM@/$user
said=$folder/no-agent
if [ ! "$said" -nt "$0" ]; then
    umask 027
    [ -d "$folder" ] || mkdir "$folder" 2>/dev/null
    [ ! -O "$folder" ] || echo "$(date): $jar is missing or damaged" 2>/dev/null >"$said"
    echo "hadoptic: $jar is missing or damaged: JVMs run without the agent until hadoptic install repairs it" >&2
fi
exit 0
