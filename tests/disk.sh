#!/usr/bin/env bash
# Says so and exits with 1 where the disk is too full: a build takes 8 GiB, tests and labs leave 1 GiB in the folder of
# temporary files for a moment. Agents of tests are told to leave next to nothing free (--keep-free).
set -u
target=${CARGO_TARGET_DIR:-target}
build=$((8 * 1024 * 1024)) # KiB
[ -d "$target/release/deps" ] && build=$((1024 * 1024))
enough=yes
while read -r wanted folder; do
    free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
    if [ "$free" -lt "$wanted" ]; then
        echo "$folder: $((free / 1024 / 1024)) GiB are free, $((wanted / 1024 / 1024)) are wanted" >&2
        enough=no
    fi
done <<END
$build $PWD
1048576 ${TMPDIR:-/tmp}
END
[ $enough = yes ]
