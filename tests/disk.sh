#!/usr/bin/env bash
# Says so and exits with 1 where the disk is too full for tests: the agents stop where less than a tenth of a file system is
# free (--keep-free), and a build takes 8 GiB more.
set -u
target=${CARGO_TARGET_DIR:-target}
build=$((8 * 1024 * 1024)) # KiB
[ -d "$target/release/deps" ] && build=$((1024 * 1024))
enough=yes
while read -r extra folder; do
    read -r size free < <(df -Pk "$folder" | awk 'NR == 2 { print $2, $4 }')
    wanted=$((size / 10 + extra))
    if [ "$free" -lt "$wanted" ]; then
        echo "$folder: $((free / 1024 / 1024)) GiB are free, the tests want $((wanted / 1024 / 1024)): a tenth of the file system, and $((extra / 1024 / 1024)) GiB" >&2
        enough=no
    fi
done <<END
$build $PWD
1048576 ${TMPDIR:-/tmp}
END
[ $enough = yes ]
