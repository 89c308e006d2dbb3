#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli.sh ELFUSE: the command line of elfuse, errors and statuses, as TAP. Runs
# on an arm64 Linux with /dev/kvm, as root, in busybox's or any POSIX shell.
# Needs busybox for a program to run.
elfuse=${1:?usage: cli.sh ELFUSE}
case $elfuse in
/*) ;;
*) elfuse=$PWD/$elfuse ;;
esac
# Not command -v: busybox's shell answers with the bare name.
busybox=$(which busybox) || {
    echo "Bail out! no busybox here"
    exit 1
}
dir=$(mktemp -d) || exit 1
trap 'test ! -e /dev/kvm.away || mv -f /dev/kvm.away /dev/kvm; cd /; rm -rf "$dir"' EXIT
cd "$dir" || exit 1

tests=0
failures=0

# ok NAME STATUS-OF-CONDITION
ok() {
    tests=$((tests + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $tests - $1"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $1"
        echo "# status $status, standard error:"
        sed 's/^/# /' "$dir/err"
    fi
}

skip() {
    tests=$((tests + 1))
    echo "ok $tests - $1 # SKIP $2"
}

# Run elfuse with these arguments: sets $status, leaves out and err.
run() {
    "$elfuse" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}

# One line on standard error that begins "elfuse: " and holds the words.
says() {
    [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q "^elfuse: .*$1" "$dir/err" &&
        [ ! -s "$dir/out" ]
}

# refuses NAME STATUS WORDS ARGUMENTS...: this status, this one line.
refuses() {
    name=$1 want=$2 words=$3
    shift 3
    run "$@"
    [ "$status" -eq "$want" ] && says "$words"
    ok "$name" $?
}

# gives NAME STATUS OUTPUT ARGUMENTS...
gives() {
    name=$1 want=$2 output=$3
    shift 3
    run "$@"
    [ "$status" -eq "$want" ] && [ "$(cat "$dir/out")" = "$output" ] &&
        [ ! -s "$dir/err" ]
    ok "$name" $?
}

# --- files to refuse

# le BYTES NUMBER...: little-endian numbers
# shellcheck disable=SC2059 # the format is an octal escape made here
le() {
    n=$1
    shift
    for v; do
        i=0
        while [ $i -lt "$n" ]; do
            printf "\\$((v >> 6 & 3))$((v >> 3 & 7))$((v & 7))"
            v=$((v >> 8)) i=$((i + 1))
        done
    done
}

# ehdr CLASS DATA TYPE MACHINE PHNUM [PHOFF]
ehdr() {
    printf '\177ELF'
    le 1 "$1" "$2" 1 0
    le 8 0
    le 2 "$3" "$4"
    le 4 1
    le 8 4194560 "${6:-64}" 0
    le 4 0
    le 2 64 56 "$5" 64 0 0
}

# phdr TYPE FLAGS OFFSET ADDRESS FILESZ MEMSZ
phdr() {
    le 4 "$1" "$2"
    le 8 "$3" "$4" "$4" "$5" "$6" 4096
}

load() {
    phdr 1 5 0 $((0x400000)) 256 256
}

# file NAME: standard input becomes an executable file of at least 256 bytes
file() {
    cat >"$1"
    head -c 256 /dev/zero >>"$1"
    chmod 755 "$1"
}

{ ehdr 2 1 2 62 1; load; } | file x86
{ ehdr 1 1 2 40 1; load; } | file arm32
{ ehdr 1 1 2 183 1; load; } | file ilp32
{ ehdr 2 2 2 $((183 << 8)) 1; load; } | file big-endian
{ ehdr 2 1 1 183 1; load; } | file object
{ ehdr 2 1 2 183 1 $((1 << 40)); load; } | file far-phdrs
{ ehdr 2 1 2 183 0; } | file no-phdrs
{ ehdr 2 1 2 183 1; phdr 4 4 0 0 0 0; } | file no-load
{ ehdr 2 1 2 183 1; phdr 1 5 0 $((0x400000)) 65536 65536; } | file cut
{ ehdr 2 1 2 183 1; phdr 1 5 0 $((0x400000)) 0 -1; } | file huge
{ ehdr 2 1 2 183 1; phdr 1 5 0 $((0x400000)) 64 32; } | file shrinking
{ ehdr 2 1 2 183 1; phdr 1 5 1 $((0x400000)) 64 64; } | file askew
{ ehdr 2 1 3 183 2; load; phdr 3 4 176 0 28 28
  printf '/lib/ld-none.so.1\0\0\0\0\0\0\0\0\0\0\0'; } | file dynamic
# dyn NAME INTERPRETER
dyn() {
    { ehdr 2 1 3 183 2; load; phdr 3 4 176 0 $((${#2} + 1)) 28
      printf '%s' "$2"; } | file "$1"
}
dyn dyn-folder folder
dyn dyn-text text
dyn dyn-x86 x86
# script NAME FIRST-LINE [REST]
script() {
    printf '%s\n%s' "$2" "${3-exit 0}" >"$1" && chmod 755 "$1"
}
script script-none '#!/none/sh'
script script-crlf "$(printf '#!/bin/sh\r')"
script script-self '#!./script-self'
script script-nothing '#! '
script script-args "#!$busybox echo" 'never run'
# shellcheck disable=SC2016 # the script's own
script script-status '#!/bin/sh' 'echo "$0 $1"; exit 5'
script script-twice '#!./script-args'
printf '\177ELF' >short && chmod 755 short
: >empty && chmod 755 empty
printf '#!/bin/sh\nexit 0\n' >script && chmod 755 script
echo 'plain text' >text && chmod 755 text
echo 'plain text' >data
mkdir folder

# --- the command line itself

run --help
[ $status -eq 0 ] && [ ! -s err ] && grep -q '^Usage: elfuse ' out
ok "--help" $?
[ "$(wc -l <out)" -le 24 ] && ! grep -q '.\{81\}' out
ok "--help fits a screen" $?
missing=0
for option in strace stats verbose sysroot help version ipa-bits no-sve \
    no-pauth; do
    grep -q -- "--$option" out || missing=1
done
ok "--help names every option" $missing
run --version
[ $status -eq 0 ] && [ ! -s err ] && grep -q '^elfuse [0-9.]*$' out
ok "--version" $?
"$elfuse" --help >/dev/full 2>err
[ $? -eq 125 ] && grep -q '^elfuse: ' err
ok "--help on a full disk" $?

refuses "no program" 125 "no program given"
refuses "no program after --" 125 "no program given" --
refuses "unknown option" 125 "--frobnicate" --frobnicate "$busybox"
refuses "unknown short option" 125 "-x" -x "$busybox"
refuses "option that takes no value" 125 "--strace" --strace=1 "$busybox"
refuses "option without its value" 125 "needs an argument" --sysroot
refuses "--ipa-bits with words" 125 "is not a number" --ipa-bits many x
refuses "--ipa-bits too small" 125 "is not a number" --ipa-bits 35 x
refuses "--ipa-bits too large" 125 "is not a number" --ipa-bits 49 x

# --- programs that are not there or cannot be run

refuses "no such name" 127 "no-such-program: not found in PATH" no-such-program
refuses "no such path" 127 "./none: No such file" ./none
refuses "path through a file" 127 "Not a directory" ./text/x
refuses "empty name" 127 "" ""
refuses "a name in this folder only" 127 "not found in PATH.* ./ " script
refuses "a directory" 126 "Permission denied: it is a folder" ./folder
refuses "not executable" 126 "Permission denied: .*chmod +x" ./data
refuses "empty file" 126 "empty" ./empty
refuses "plain text" 126 "not an ELF file" ./text
refuses "four bytes" 126 "truncated" ./short
refuses "x86-64" 126 "wrong architecture.*x86-64" ./x86
refuses "32-bit Arm" 126 "wrong architecture.*32-bit Arm" ./arm32
refuses "ILP32" 126 "32-bit" ./ilp32
refuses "big-endian" 126 "big-endian" ./big-endian
refuses "an object file" 126 "ELF type 1" ./object
refuses "program headers beyond the end" 126 "truncated" ./far-phdrs
refuses "no program headers" 126 "no program headers" ./no-phdrs
refuses "nothing to load" 126 "no loadable segment" ./no-load
refuses "segment beyond the end" 126 "truncated" ./cut
refuses "segment of 2^64 - 1 bytes" 126 "outside user space" ./huge
refuses "segment larger in the file" 126 "more bytes in the file" ./shrinking
refuses "segment askew" 126 "differ within the page" ./askew
refuses "its interpreter is not there" 127 "/lib/ld-none.so.1: No such.*--sysroot" \
    ./dynamic
refuses "its interpreter is a folder" 126 "its interpreter folder: Perm" ./dyn-folder
refuses "its interpreter is text" 126 "its interpreter text: too short" ./dyn-text
refuses "its interpreter is for x86-64" 126 "its interpreter x86.*x86-64" ./dyn-x86
refuses "a script without its interpreter" 127 "the script, /none/sh: No such" \
    ./script-none
refuses "a script with CR LF" 127 "/bin/sh: No such.*CR LF" ./script-crlf
refuses "a script that runs itself" 126 "symbolic links" ./script-self
refuses "a script that names nothing" 126 "first line" ./script-nothing

# --- PATH

mkdir p1 p2 p3
cp text p1/prog && chmod 644 p1/prog
mkdir p2/prog
cp x86 p3/prog
saved=$PATH
PATH=$dir/none:$dir/p1:$dir/p2:$saved
export PATH
refuses "PATH: only what cannot be executed" 126 "Permission denied" prog
PATH=$dir/p1:$dir/p2:$dir/p3:$saved
refuses "PATH: passes over what cannot be executed" 126 "p3/prog.*x86-64" prog
cd p3 || exit 1
PATH=$dir/p1::$saved
refuses "PATH: an empty element is the current directory" 126 "x86-64" prog
cd .. || exit 1
PATH=$saved
export PATH

# --- a program runs

gives "a program by its path" 0 "hello" "$busybox" echo hello
gives "a program by its name" 0 "hello" busybox echo hello
gives "-- ends the options" 0 "hello" -- busybox echo hello
gives "the program's options are its own" 0 "--help -x" busybox echo --help -x
gives "status 1" 1 "" busybox false
gives "status 42" 42 "" busybox sh -c 'exit 42'
gives "status 255" 255 "" busybox sh -c 'exit 255'
gives "status 125 is the program's" 125 "" busybox sh -c 'exit 125'
gives "--ipa-bits 36" 0 "hello" --ipa-bits 36 busybox echo hello
gives "--no-sve --no-pauth" 0 "hello" --no-sve --no-pauth busybox echo hello
for signal in 1 6 9 11 13 15; do
    # A shell of its own: it prints nothing of the death then.
    "$busybox" sh -c '"$@" 2>/dev/null; exit $?' - "$elfuse" busybox sh -c \
        "kill -$signal \$\$" >out 2>err
    status=$?
    [ $status -eq $((128 + signal)) ]
    ok "death by signal $signal" $?
done
ln -s "$busybox" echo
gives "argv[0] is what was typed" 0 "linked" ./echo linked
FOO=bar
export FOO
gives "a script" 5 "./script-status one" ./script-status one
PATH=.:$PATH
gives "a script in PATH" 5 "./script-status two" script-status two
PATH=$saved
gives "the arguments of a script" 0 "./script-args a b" ./script-args a b
gives "a script of a script" 0 "./script-args ./script-twice" ./script-twice
gives "the environment is passed on" 0 "bar" busybox sh -c "echo \$FOO"
run --stats busybox true
[ $status -eq 0 ] && grep -q 'system calls' err
ok "--stats prints counters" $?
run --strace busybox true
[ $status -eq 0 ] && grep -q 'exit_group(0)' err
ok "--strace prints calls" $?
"$elfuse" busybox echo closed >&- 2>err
status=$?
[ $status -eq 1 ]
ok "standard output is closed" $?
"$elfuse" busybox readlink /proc/self/fd/0 <&- >out 2>err
status=$?
[ $status -eq 1 ] && [ ! -s out ]
ok "standard input is closed, and nothing of elfuse's is there instead" $?

# limited ULIMIT-OPTIONS: memory limits that are enough for the program are enough
limited() {
    # shellcheck disable=SC3045 # the options are in every shell that is used here
    (ulimit "$@" && exec "$elfuse" busybox echo ok) >out 2>err </dev/null
    status=$?
    [ $status -eq 0 ] && [ "$(cat out)" = ok ]
    ok "ulimit $*" $?
}
limited -s 16
limited -s 64
limited -v 100000
limited -d 1000
limited -l 0
limited -n 8

# --- another root

mkdir -p root/bin root/etc root/var root/home/other
cp "$busybox" root/bin/busybox
cp "$busybox" busybox-here
ln -s busybox root/bin/cat
echo inner >root/etc/name
chmod 755 "$dir"
refuses "--sysroot: not there" 125 "--sysroot none: No such" --sysroot none cat
refuses "--sysroot: a file" 125 "Not a directory" --sysroot data cat
refuses "--sysroot: PATH is the root's" 127 "not found in PATH" \
    --sysroot root cli.sh
gives "--sysroot: absolute paths" 0 inner --sysroot root cat /etc/name
gives "--sysroot with a slash at its end" 0 inner --sysroot root/ cat /etc/name
gives "--sysroot: relative paths" 0 "plain text" --sysroot root cat data
gives "--sysroot: a path to here" 0 "plain text" --sysroot root cat "$dir/data"
gives "--sysroot: a program that is here" 0 "here" \
    --sysroot root ./busybox-here echo here
gives "--sysroot: the current directory" 0 "$dir" --sysroot root busybox pwd
gives "--sysroot: /proc/self/exe" 0 /bin/busybox \
    --sysroot root busybox readlink /proc/self/exe
gives "--sysroot: /proc/self/root" 0 / \
    --sysroot root busybox readlink /proc/self/root
gives "--sysroot: what the host has instead" 0 "sys tmp var" --sysroot root \
    busybox sh -c "cd /; echo [stv]*"
gives "--sysroot / changes nothing" 0 "$dir" --sysroot / busybox pwd
run --sysroot root busybox sh -c 'echo >/etc/made; echo >/made'
[ $status -ne 0 ] && grep -q Read-only err && [ -e root/etc/made ] &&
    [ ! -e root/made ]
ok "--sysroot: its folders can be changed, its top level cannot" $?
run --sysroot root busybox cat /proc/self/maps
[ $status -eq 0 ] && grep -q ' /bin/busybox$' out
ok "--sysroot: names in maps" $?
cd root || exit 1
gives "--sysroot ." 0 inner --sysroot . cat /etc/name
cd / || exit 1
gives "--sysroot from /" 0 "/" --sysroot "$dir/root" busybox pwd
# A current directory whose parents the root has, but not all of them.
far=/var/tmp/elfuse-cli.$$
mkdir "$far" && cd "$far" || exit 1
echo far >file
gives "--sysroot: from a folder that it has not" 0 far \
    --sysroot "$dir/root" cat "$far/file"
gives "--sysroot: that folder's relative paths" 0 far \
    --sysroot "$dir/root" cat file
cd "$dir" && rm -rf "$far"

if [ "$(id -u)" -eq 0 ]; then
    mkdir read-only
    mount -o bind root read-only && mount -o remount,bind,ro read-only
    gives "--sysroot: read-only" 0 inner --sysroot read-only cat /etc/name
    umount read-only
    # as_nobody SHELL-LINE: in $dir; sets $status, leaves out and err
    as_nobody() {
        su -s /bin/sh nobody -c "cd '$dir'; $1" >out 2>err </dev/null
        status=$?
    }
    if [ -e /proc/self/ns/user ]; then
        as_nobody "'$elfuse' --sysroot root cat /etc/name"
        [ "$(cat out)" = inner ] && [ $status -eq 0 ]
        ok "--sysroot as nobody" $?
        as_nobody "'$elfuse' --sysroot root busybox grep CapEff /proc/self/status"
        [ "$(cat out)" = "CapEff:	0000000000000000" ]
        ok "--sysroot as nobody: no capabilities are gained" $?
        spaces=$(cat /proc/sys/user/max_user_namespaces)
        echo 0 >/proc/sys/user/max_user_namespaces
        as_nobody "'$elfuse' --sysroot root cat /etc/name"
        echo "$spaces" >/proc/sys/user/max_user_namespaces
        [ $status -eq 125 ] && says "user namespaces"
        ok "--sysroot as nobody without user namespaces" $?
    else
        skip "--sysroot as nobody" "this kernel has no user namespaces"
    fi
    mkdir -m 700 closed
    as_nobody "'$elfuse' --sysroot closed cat /etc/name"
    [ $status -eq 125 ] && says "--sysroot closed: Permission denied"
    ok "--sysroot that may not be read" $?
    ! grep -q '^sysroot ' /proc/mounts
    ok "--sysroot leaves no mounts" $?
else
    skip "--sysroot: read-only, or as nobody" "must be root to try"
fi

# --- machines that will not do

if [ -w /dev/kvm ] && [ "$(id -u)" -eq 0 ]; then
    mv /dev/kvm /dev/kvm.away
    refuses "no /dev/kvm" 125 "/dev/kvm" busybox true
    : >/dev/kvm
    refuses "/dev/kvm is something else" 125 "/dev/kvm" busybox true
    rm -f /dev/kvm
    ln -s /dev/null /dev/kvm
    refuses "/dev/kvm is another device" 125 "/dev/kvm" busybox true
    rm -f /dev/kvm
    mv /dev/kvm.away /dev/kvm
    gives "/dev/kvm is back" 0 "hello" busybox echo hello
else
    skip "no /dev/kvm" "must be root to take /dev/kvm away"
fi
refuses "the program's faults come first" 126 "x86-64" ./x86

echo "1..$tests"
[ $failures -eq 0 ]
