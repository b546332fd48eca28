#!/usr/bin/env bash
# Packages all programs, the Java agent, manual pages, completions, units and documents: a tarball, a .deb and their checksums.
#   tests/dist.sh                     builds, packages into target/package
#   tests/dist.sh --programs DIR      packages the programs of DIR (target/release) and builds nothing
#   tests/dist.sh --out DIR           packages into DIR
# Files have the time SOURCE_DATE_EPOCH (seconds since 1970), or that of the last commit. The package's maintainer is DEBFULLNAME
# and DEBEMAIL, or the last commit's author. Exit code: 0 = done, 1 = could not.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

PROGRAMS=(sniffer dumpingd hadoptic merger replay)
jar=hadoop-patches/target/hadoptic-agent.jar
out=target/package
given=

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --programs) given=${2:?--programs DIR} && shift 2 ;;
    --jar) jar=${2:?--jar FILE} && shift 2 ;;
    --out) out=${2:?--out DIR} && shift 2 ;;
    *) fail "$1: there are --programs DIR, --jar FILE and --out DIR" ;;
    esac
done

for tool in dpkg-deb dpkg-shlibdeps objdump gzip; do
    command -v $tool >/dev/null 2>&1 || fail "no $tool: apt-get install dpkg-dev binutils gzip"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
revision=$version-1
architecture=$(dpkg --print-architecture)
of_commit() { git log -1 --format="$1" 2>/dev/null; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(of_commit %ct || echo 0)}
export SOURCE_DATE_EPOCH
maintainer="${DEBFULLNAME:-$(of_commit %an || echo Hadoptic)} <${DEBEMAIL:-$(of_commit %ae || echo root@localhost)}>"

# sniffer and dumpingd of musl, which need nothing but a kernel. The others of glibc and the release profile, in which they are built
# already: another one would build the table library, which takes minutes, once more.
build() {
    tests/static.sh
    make --no-print-directory agents tables
    given=$work/programs
    mkdir "$given"
    cp target/static/{sniffer,dumpingd} target/release/{hadoptic,merger,replay} "$given"
}
[ -n "$given" ] || build
for name in "${PROGRAMS[@]}"; do
    [ -x "$given/$name" ] || fail "$given/$name is not there: \`make agents tables\` builds target/release"
done
[ -f "$jar" ] || fail "$jar is not there: \`make agents\` builds it, --jar FILE names another"

# Everything below a prefix, as both packages have it.
stage() {
    local root=$1 name
    mkdir -p "$root"/{bin,lib/systemd/system,share/{hadoptic,man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}}
    for name in "${PROGRAMS[@]}"; do
        install -m 755 "$given/$name" "$root/bin/$name"
        strip --strip-unneeded "$root/bin/$name"
        "$root/bin/$name" man --out "$root/share/man/man1"
        "$root/bin/$name" completions bash >"$root/share/bash-completion/completions/$name"
        "$root/bin/$name" completions zsh >"$root/share/zsh/vendor-completions/_$name"
        "$root/bin/$name" completions fish >"$root/share/fish/vendor_completions.d/$name.fish"
    done
    gzip -9n "$root"/share/man/man1/*.1
    install -m 644 "$jar" "$root/share/hadoptic/"
    install -m 755 hadoop-patches/deploy/yarn/digest-on-yarn.sh "$root/share/hadoptic/"
    "$root/bin/hadoptic" units --packaged --out "$root/lib/systemd/system"
    documents "$root/share/doc/hadoptic"
}

documents() {
    mkdir -p "$1/docs"
    cp README.md ARCHITECTURE.md SECURITY.md "$1"
    cp docs/*.md docs/*.png docs/*.json "$1/docs"
    gzip -9nc CHANGELOG.md >"$1/changelog.gz"
    {
        echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
        echo "Upstream-Name: hadoptic"
        echo
        echo "Files: *"
        echo "Copyright: the authors of Hadoptic"
        echo "License: Apache-2.0"
        echo " On Debian systems, the full text of the licence is in /usr/share/common-licenses/Apache-2.0."
    } >"$1/copyright"
}

# Whether a program needs libraries. All of the answer is read: a pipe that grep -q closed would end objdump, and count as no.
is_dynamic() { case $(objdump -p "$1") in *NEEDED*) ;; *) return 1 ;; esac; }
same_times() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }

# Below /usr/local, or wherever it is unpacked.
tarball() {
    local name=hadoptic-$version-$(uname -m)
    cp -r "$work/usr" "$work/$name"
    mkdir -p "$work/$name/share/doc/hadoptic"
    cp LICENSE "$work/$name/share/doc/hadoptic/"
    mv "$work/$name/share/zsh/vendor-completions" "$work/$name/share/zsh/site-functions"
    sed -i 's|^ExecStart=/usr/bin/|ExecStart=/usr/local/bin/|' "$work/$name"/lib/systemd/system/*.service
    same_times "$work/$name"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" |
        gzip -6n >"$out/$name.tar.gz"
}

# What the programs need of other packages, by their symbols.
depends() {
    local there=$work/shlibdeps
    mkdir -p "$there/debian"
    printf 'Source: hadoptic\n\nPackage: hadoptic\nArchitecture: any\n' >"$there/debian/control"
    local names=()
    for name in "${PROGRAMS[@]}"; do
        # Of a program without libraries there is nothing to say.
        ! is_dynamic "$work/usr/bin/$name" || names+=("$work/usr/bin/$name")
    done
    (cd "$there" && dpkg-shlibdeps -O --warnings=0 "${names[@]}" 2>&1) | sed -n 's/^shlibs:Depends=//p' |
        sed 's/, /\n/g' | sort | paste -sd, | sed 's/,/, /g'
}

control() {
    cat <<END
Package: hadoptic
Version: $revision
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(find "$1/usr" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
Depends: $(depends)
Recommends: openssh-client
Section: net
Priority: optional
Description: records Hadoop jobs on the network and replays them over others
 Hadoptic records a MapReduce job on a real cluster, joins the captures of all
 hosts into a causal trace, and replays that over networks that are not there:
 how long would the job have taken on them, and why?
 .
 This package has the agents (sniffer, dumpingd, a Java agent), the program
 that brings them to a cluster's hosts (hadoptic), and those that merge and
 replay (merger, replay). Installing it starts nothing.
END
}

deb() {
    local root=$work/deb documents
    mkdir -p "$root/DEBIAN"
    cp -r "$work/usr" "$root/usr"
    documents=$root/usr/share/doc/hadoptic
    # Programs that need nothing of the host but its kernel are meant to.
    mkdir -p "$root/usr/share/lintian/overrides"
    for name in "${PROGRAMS[@]}"; do
        is_dynamic "$root/usr/bin/$name" || echo "hadoptic: statically-linked-binary [usr/bin/$name]"
    done >"$root/usr/share/lintian/overrides/hadoptic"
    [ -s "$root/usr/share/lintian/overrides/hadoptic" ] || rm -r "$root/usr/share/lintian"
    {
        printf 'hadoptic (%s) unstable; urgency=medium\n\n  * As changelog.gz says.\n\n -- %s  %s\n' \
            "$revision" "$maintainer" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$documents/changelog.Debian.gz"
    # Whoever enabled the units by hand has them stopped and taken away with the programs.
    cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl --quiet disable --now hadoptic-sniffer.service hadoptic-dumpingd.service || true
fi
END
    cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl --quiet daemon-reload || true
fi
END
    chmod 755 "$root/DEBIAN"/{prerm,postrm}
    control "$root" >"$root/DEBIAN/control"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    same_times "$root"
    # With several threads, how many the memory allows changes the bytes.
    dpkg-deb --build --root-owner-group --threads-max=1 "$root" "$out/hadoptic_${revision}_$architecture.deb" >&2
}

# The newest version of glibc's symbols that a program asks for; nothing of a static one, in which grep finds none.
libc_of() { objdump -T "$1" 2>/dev/null | { grep -o 'GLIBC_[0-9.]*' || true; } | sort -uV | tail -n 1; }

stage "$work/usr"
# What an earlier run left.
rm -f "$out"/hadoptic-*.tar.gz "$out"/hadoptic_*.deb "$out/SHA256SUMS"
mkdir -p "$out"
tarball
deb
(cd "$out" && sha256sum -- *.tar.gz *.deb >SHA256SUMS)
for name in "${PROGRAMS[@]}"; do
    newest=
    ! is_dynamic "$work/usr/bin/$name" || newest=$(libc_of "$work/usr/bin/$name")
    say "$name: $(stat -c %s "$work/usr/bin/$name") bytes, ${newest:+needs }${newest:-static}"
done
cat "$out/SHA256SUMS"
