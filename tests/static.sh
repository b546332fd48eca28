#!/usr/bin/env bash
# Builds sniffer and dumpingd as programs that need nothing of a host but its kernel, into target/static: with musl, and a libpcap
# made for it from its source. (Debian's libpcap.a asks for D-Bus, and that for libsystemd, of which there is no archive.) Then
# tries them where there is nothing else (root).
#   tests/static.sh              builds and tries
#   tests/static.sh --try        only tries what is built
#   LIBC=gnu tests/static.sh     with glibc, for which Rust needs no other target; `sniffer --user NAME` then asks the host's name
#                                services, whose libraries have to be of the same glibc
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

# The version of Debian 12, with which everything was measured.
VERSION=1.10.3
SHA256=2a8885c403516cf7b0933ed4b14d6caa30e02052489ebd414dc75ac52e7559e6
libc=${LIBC:-musl}
target=$(uname -m)-unknown-linux-$libc
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hadoptic
out=target/static

say() { printf '%s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

need() {
    local missing=()
    if [ "$libc" = musl ]; then
        have musl-gcc || missing+=(musl-tools)
    elif ! [ -f "$(cc -print-file-name=libc.a)" ]; then
        missing+=(libc6-dev)
    fi
    have flex || missing+=(flex)
    have bison || missing+=(bison)
    have make || missing+=(make)
    if [ ${#missing[@]} -gt 0 ]; then
        if [ "$(id -u)" != 0 ] || ! have apt-get; then
            say "missing: ${missing[*]} (names of Debian's packages): install them"
            exit 1
        fi
        say "installing: ${missing[*]}"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
    fi
    if [ "$libc" = gnu ]; then
        return
    elif have rustup; then
        rustup target list --installed | grep -x "$target" >/dev/null || rustup target add "$target" >&2
    elif ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
        say "this Rust has no $target: install it by rustup, or the distribution's package of it"
        exit 1
    fi
}

right() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$SHA256" ]; }

# From its authors, else from Debian, which hands on the same bytes.
fetch() {
    local file=$cache/libpcap-$VERSION.tar.gz there
    mkdir -p "$cache"
    right "$file" && return
    say "fetching libpcap $VERSION"
    if have curl; then
        curl -fsSL --max-time 120 -o "$file.part" "https://www.tcpdump.org/release/libpcap-$VERSION.tar.gz" || true
    fi
    if ! right "$file.part" && have apt-get; then
        there=$(mktemp -d)
        mkdir -p "$there/lists/partial" "$there/cache/archives/partial"
        echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" \
            >"$there/sources.list"
        # Nothing of the machine's apt is changed.
        local apt=(apt-get -qq -o "Dir::Etc::sourcelist=$there/sources.list" -o Dir::Etc::sourceparts=-
            -o "Dir::State::lists=$there/lists" -o "Dir::Cache=$there/cache" -o APT::Sandbox::User=)
        (cd "$there" && "${apt[@]}" update && "${apt[@]}" source --download-only libpcap) >&2 || true
        cp "$there/libpcap_$VERSION.orig.tar.gz" "$file.part" 2>/dev/null || true
        rm -rf "$there"
    fi
    if ! right "$file.part"; then
        say "libpcap $VERSION could not be fetched whole: put https://www.tcpdump.org/release/libpcap-$VERSION.tar.gz at $file"
        exit 1
    fi
    mv "$file.part" "$file"
}

libpcap() {
    local lib=$PWD/target/libpcap-$VERSION-$target work cc=cc
    if [ ! -f "$lib/libpcap.a" ]; then
        say "building libpcap $VERSION for $target"
        work=$(mktemp -d)
        tar -xzf "$cache/libpcap-$VERSION.tar.gz" -C "$work" --strip-components=1
        # The kernel's headers are not musl's: they are looked for behind all others.
        [ "$libc" != musl ] || cc="musl-gcc -idirafter /usr/include -idirafter /usr/include/$(cc -print-multiarch)"
        if ! (cd "$work" && CC=$cc CFLAGS="-O2" ./configure --disable-shared --disable-usb --disable-netmap \
            --disable-bluetooth --disable-dbus --disable-rdma --without-libnl --without-dag --without-septel --without-snf \
            --without-turbocap --without-dpdk && make libpcap.a) >"$work/log" 2>&1; then
            tail -n 20 "$work/log" >&2
            say "libpcap cannot be built: $work/log"
            exit 1
        fi
        mkdir -p "$lib"
        mv "$work/libpcap.a" "$lib/"
        rm -rf "$work"
    fi
    export LIBPCAP_LIBDIR=$lib LIBPCAP_VER=$VERSION
}

build() {
    need
    fetch
    libpcap
    # Of musl, this is what Rust does anyway. With a target that is named, it is not for what runs while programs are built.
    [ "$libc" = musl ] || export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
    cargo build --profile dist --target "$target" -p sniffer -p dumpingd
    mkdir -p "$out"
    for name in sniffer dumpingd; do
        cp "target/$target/dist/$name" "$out/$name.new"
        mv -f "$out/$name.new" "$out/$name"
    done
}

# A root with the two programs, the kernel's /proc and /sys, and an empty folder in it: 100 connections that nobody accepts are 200 segments.
try() {
    local root
    for name in sniffer dumpingd; do
        if ! ldd "$out/$name" 2>&1 | grep -E "statically linked|not a dynamic executable" >/dev/null; then
            say "$out/$name is not static: $(ldd "$out/$name" | tr '\n' ' ')"
            exit 1
        fi
    done
    say "static: $(ls -l "$out/sniffer" "$out/dumpingd" | awk '{ printf "%s (%d bytes) ", $NF, $5 }')"
    if [ "$(id -u)" != 0 ]; then
        say "not tried in an empty root: that needs root"
        return
    fi
    root=$(mktemp -d)
    mkdir "$root/proc" "$root/sys" "$root/out"
    cp "$out/sniffer" "$out/dumpingd" "$root"
    if ! unshare --net --mount bash -euc '
        root=$1
        mount --make-rprivate /
        # A place for mounts is what dumpingd makes its own to see the tracepoint.
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs sysfs "$root/sys"
        ip link set lo up
        chroot "$root" /dumpingd run --out /out >"$root/dumpingd.said" 2>&1 &
        dumpingd=$!
        chroot "$root" /sniffer run --out /out --interface lo >"$root/sniffer.said" 2>&1 &
        sniffer=$!
        for name in sniffer dumpingd; do
            tries=0
            until grep -q "\"ready\": true" "$root/out/$name.json" 2>/dev/null; do
                tries=$((tries + 1))
                [ $tries -lt 100 ] || { cat "$root/$name.said" >&2; exit 1; }
                sleep 0.1
            done
        done
        for n in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null || true; done
        sleep 0.5
        kill $sniffer $dumpingd
        wait $sniffer
        wait $dumpingd
        packets=$(chroot "$root" /sniffer show /out/packets-lo.hpk 2>/dev/null | grep -c "127.0.0.1.*127.0.0.1")
        [ "$packets" = 200 ] || { echo "sniffer show tells of $packets segments, 200 were sent" >&2; exit 1; }
        for name in sniffer dumpingd; do
            grep -q "\"ended\": true" "$root/out/$name.json" || { cat "$root/$name.said" >&2; exit 1; }
        done
        grep -q "\"problems\": \[\]" "$root/out/sniffer.json" || { grep -A9 problems "$root/out/sniffer.json" >&2; exit 1; }
    ' bash "$root"; then
        say "they do not do in an empty root what they should: see $root"
        exit 1
    fi
    say "in an empty root: 200 of 200 segments recorded, both ended in order"
    tail -n 2 "$root/sniffer.said" "$root/dumpingd.said" >&2
    rm -rf "$root"
}

[ "${1:-}" = --try ] || build
try
