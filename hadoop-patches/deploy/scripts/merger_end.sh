# Puts the program that makes digests in its place, if it runs here. PREFIX, SUM.
cd "$PREFIX/new" || exit 1
refuse() { cd / && rm -rf -- "$PREFIX/new"; fail "$@"; }
[ "$(checksum merger)" = "$SUM" ] || refuse "merger did not arrive as it was sent (is the disk full?): run this again"
chown 0:0 merger && chmod 755 merger || refuse "merger cannot be made root's"
version=$(./merger --version 2>&1) ||
    refuse "merger does not run on this $(uname -m): $(printf '%s' "$version" | tr '\n' ' '). Name one that was built for such hosts with --merger, or collect without --digest and run merger digest where the capture is"
case $version in "merger "*) ;; *) refuse "--merger names no merger: it calls itself $(printf '%s' "$version" | head -n 1)" ;; esac
mv -f merger "$PREFIX/bin/merger" && cd / && rmdir "$PREFIX/new" || exit 1
say end merger_end
