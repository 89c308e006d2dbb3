#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests of tools/elfuse-vm with ten boots.
# shellcheck disable=SC2016 # scripts for the machine: it expands them
# Prints TAP. A shell script stands in for elfuse.
set -u
tool=$(cd "$(dirname "$0")/../.." && pwd)/tools/elfuse-vm
work=$(mktemp -d /var/tmp/test-elfuse-vm.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/cwd dir" "$work/share" "$work/image"
cd "$work/cwd dir" || exit 1
limit=${TEST_TIMEOUT:-120}
count=0
failed=0

cat >"$work/elfuse" <<'END'
#!/bin/sh
# Stands in for elfuse: shows its own options, runs the program.
while [ "$1" != -- ]; do echo "option $1" >&2; shift; done
shift
STAND_IN=1 exec "$@"
END
chmod +x "$work/elfuse"
export ELFUSE=$work/elfuse

vm() {
    "$tool" --timeout "$limit" "$@"
}

# is NAME EXPECTED FOUND
is() {
    count=$((count + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $count - $1"
    else
        failed=1
        echo "not ok $count - $1"
        printf '%s\n' "expected: $2" "found:    $3" | sed 's/^/# /'
    fi
}

# like NAME PATTERN TEXT: the text has a match of the shell pattern
like() {
    # shellcheck disable=SC2254 # it is a pattern
    case $3 in
    $2) is "$1" "" "" ;;
    *) is "$1" "$2" "$3" ;;
    esac
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# Without a machine

usage_errors() {
    out=$(vm 2>&1)
    is "no program: status" 125 $?
    like "no program: message" "elfuse-vm: no PROGRAM*" "$out"
    for words in --bogus "--kernel 5" "--cpus x" "--cpus 0" \
        "--native --both" "--env =x" "--share /nosuch" "--share /etc" \
        "--root /nosuch" "--elfuse /nosuch" --elfuse-args; do
        # shellcheck disable=SC2086 # several words
        out=$(vm $words -- true 2>&1)
        is "$words: status" 125 $?
        is "$words: one line" 1 "$(echo "$out" | wc -l)"
        like "$words: from the tool" "elfuse-vm: *" "$out"
    done
    out=$(cd / && vm --native true 2>&1)
    is "in /: status" 125 $?
    out=$(vm --help)
    like "--help warns" "*Only for programs you trust*" "$out"
    is "--help fits a screen" "" \
        "$(sed -n '25,$p; 1,24{/.\{81\}/p}' <<<"$out")"
    for option in $(sed -n 's/^ *add("\(--[a-z][a-z-]*\)".*/\1/p' "$tool") --native \
        --both --icount --verbose --direct --emulate --prepare; do
        like "--help names $option" "*${option}[ ,]*" "$out"
    done
    out=$(vm --direct --native -- sh -c 'cat; exit 9' <<<given)
    is "--direct: status" 9 $?
    is "--direct: output" given "$out"
}

# With one

write_probe() {
    cat >probe <<'END'
#!/bin/sh
for word; do echo "<$word>"; done
echo "[$X] $PWD $(pwd)"
cat
echo from the machine >new file
cat "$SHARE/given" >"$SHARE/copied"
cat /sys/kernel/mm/transparent_hugepage/enabled
nproc
grep -c ' /dev/shm tmpfs\| /dev/pts devpts\| /tmp tmpfs\| /proc proc\| /sys sysfs' /proc/mounts
ping -c 1 -W 5 localhost >/dev/null && echo loopback
ulimit -Sn; ulimit -Hn
which elfuse busybox env
[ -c /dev/kvm ] && echo kvm
echo to stderr >&2
exit 7
END
    sed -i 's/>new file/>"new file"/' probe
    chmod +x probe
    echo given >"$work/share/given"
}

test_native() {
    write_probe
    out=$(printf 'standard\0input' | vm --native --share "$work/share" \
        --env X='a  b' --env "SHARE=$work/share" --thp never --cpus 1 -- \
        ./probe 'a b' '' '*' -- 2>err | tr '\0' '|'; exit "${PIPESTATUS[1]}")
    is "native: status" 7 $?
    is "native: output" "<a b>
<>
<*>
<-->
[a  b] $PWD $PWD
standard|inputalways madvise [never]
1
5
loopback
1024
1048576
/usr/local/bin/elfuse
/usr/bin/busybox
/usr/bin/env
kvm" "$out"
    is "native: errors" "to stderr" "$(cat err)"
    is "native: writes here" "from the machine" "$(cat "new file")"
    is "native: writes to a share" given "$(cat "$work/share/copied")"
}

test_large() {
    head -c 20000000 /dev/urandom >large
    # shellcheck disable=SC2094 # only read
    vm --native -- tee copy <large 2>/dev/null | cmp - large
    is "large input and output" "0 0" "${PIPESTATUS[*]}"
    cmp copy large
    is "large file in a share" 0 $?
}

test_elfuse() {
    out=$(vm --elfuse-args '--one --two' -- sh -c 'echo $STAND_IN;
        kill -TERM $$' 2>err <&-)
    is "elfuse: death by signal" 143 $?
    is "elfuse: output" 1 "$out"
    is "elfuse: its options" "option --one option --two" "$(xargs <err)"
}

test_both() {
    echo given | vm --both --save saved -- sh -c \
        'cat; echo "${STAND_IN:-0}"; exit 3' 2>both.err
    is "both: status" 3 $?
    is "both: native" "given 0" "$(xargs <saved/native.out)"
    is "both: elfuse" "given 1" "$(xargs <saved/elfuse.out)"
    is "both: statuses" "3 3" "$(cat saved/*.status | xargs)"
    like "both: verdict" "*different standard output*" "$(cat both.err)"
}

test_missing() {
    out=$(vm --native -- "$work/elfuse" 2>&1 </dev/null)
    is "program not shared: status" 127 $?
    like "program not shared: message" "elfuse-vm: *--share*" "$out"
    out=$(vm "$work/elfuse" 2>&1 </dev/null)
    is "not shared, under elfuse: status" 127 $?
    like "not shared, under elfuse: message" "*try --share $work" "$out"
}

test_timeout() {
    vm --native --timeout 3 -- sleep 1000 2>err </dev/null
    is "timeout: status" 124 $?
    is "timeout: message" "elfuse-vm: timed out after 3 s" "$(cat err)"
    # The folder's name is in the command line of our QEMU, and no other's.
    is "timeout: no QEMU is left" "" "$(pgrep -f "qemu.*path=$PWD")"
}

test_broken_pipe() {
    vm --native -- yes 2>err </dev/null | head -1 >/dev/null
    is "broken pipe" "141 0" "${PIPESTATUS[*]}"
}

test_root() {
    if ! command -v mke2fs >/dev/null; then
        skip "root image" "mke2fs (package e2fsprogs) is not installed"
        return
    fi
    busybox=$(ls "${ELFUSE_VM_CACHE:-${tool%/tools/*}/build/vm}"/busybox-*/busybox)
    mkdir "$work/image/bin" "$work/image/etc"
    install -m 755 "$busybox" "$work/image/bin/busybox"
    ln -s busybox "$work/image/bin/sh"
    echo image >"$work/image/etc/marker"
    mke2fs -q -t ext4 -d "$work/image" "$work/image.ext4" 16M >/dev/null 2>&1
    sum=$(cksum <"$work/image.ext4")
    out=$(vm --native --icount --root "$work/image.ext4" -- sh -c '
        busybox cat /etc/marker; echo x >/etc/marker; busybox cat /etc/marker
        busybox which elfuse; busybox ls' </dev/null)
    like "root image: read, overlaid, with elfuse" \
        "image*x*/usr/local/bin/elfuse*probe*" "$out"
    is "root image: not written" "$sum" "$(cksum <"$work/image.ext4")"
}

test_terminal() {
    out=$(/usr/bin/python3 - "$tool" <<'END'
import os, pty, select, sys, time
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "--native", "--timeout", "100", "--",
                           "sh", "-c", "tty; sleep 1000"])
seen = b""
while True:
    try:
        data = os.read(master, 4096)
    except OSError:
        break
    if not data:
        break
    if b"/dev/pts" not in seen and b"/dev/pts" in seen + data:
        time.sleep(1)
        os.write(master, b"\x03")
    seen += data
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(b"/dev/pts/0" in seen, status)
END
    )
    is "terminal, interrupted by Ctrl-C" "True 130" "$out"
}

usage_errors
"$tool" --prepare || exit 1
test_native
test_large
test_elfuse
test_both
test_missing
test_timeout
test_broken_pipe
test_root
test_terminal
echo "1..$count"
exit $failed
