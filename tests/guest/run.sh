#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [-e ELFUSE] [-o "ELFUSE OPTIONS"] [-d DIR] [-t SECONDS] [NAME...]
#
# Runs the guest tests of DIR (build/guest) on this kernel, which must be an
# arm64 one, and with -e also under ELFUSE. Each must end with the status that
# EXPECT names, print no "not ok", and print the same under both. NAME limits
# the run to these programs. Prints TAP; status 0 if all is well. Needs only
# what busybox has.

elfuse= options= dir=build/guest limit=300
while getopts e:o:d:t: opt; do
    case $opt in
    e) elfuse=$OPTARG ;;
    o) options=$OPTARG ;;
    d) dir=$OPTARG ;;
    t) limit=$OPTARG ;;
    *) sed -n 's/^# run.sh/usage: run.sh/p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
names=" $* "
here=$(dirname "$0")
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
count=0 failed=0

# One line for each run: status, program, arguments.
list() {
    grep '^[0-9]' "$here/EXPECT"
    for path in "$dir"/*; do
        name=${path##*/}
        [ -f "$path" ] && [ -x "$path" ] || continue
        grep -q "^[0-9]* $name\( \|\$\)" "$here/EXPECT" || echo "0 $name"
    done
}

wanted() {
    [ "$names" = "  " ] && return 0
    case $names in *" $1 "*) return 0 ;; esac
    return 1
}

# run OUT COMMAND...: standard output to OUT, the rest to OUT.err.
run() {
    out=$1
    shift
    # No shell of ours between timeout and the program: it would print its
    # own line about a death by signal.
    timeout "$limit" "$@" >"$out" 2>"$out.err" </dev/null 3<&-
}

# judge LABEL WANT GOT OUT: what is wrong with one run, on standard output.
judge() {
    [ "$3" = "$2" ] || echo "# $1: status $3, expected $2"
    grep -A3 '^not ok\|^Bail out' "$4" | sed "s/^/# $1: /"
    [ "$3" = "$2" ] || tail -n 3 "$4.err" | sed "s/^/# $1: /"
}

check() {
    want=$1
    shift
    native=$dir/$1
    label=$*
    shift
    ELFUSE_UNDER_TEST=native run "$work/native" "$native" "$@"
    problems=$(judge native "$want" $? "$work/native")
    if [ -n "$elfuse" ]; then
        # shellcheck disable=SC2086 # options are several words
        ELFUSE_UNDER_TEST=elfuse run "$work/elfuse" "$elfuse" $options \
            "$native" "$@"
        problems=$problems$(judge elfuse "$want" $? "$work/elfuse")
        if ! cmp -s "$work/native" "$work/elfuse"; then
            problems="$problems
# outputs differ:
$(diff "$work/native" "$work/elfuse" | head -n 20 | sed 's/^/# /')"
        fi
    fi
    count=$((count + 1))
    if [ -z "$problems" ]; then
        echo "ok $count - $label"
    else
        failed=$((failed + 1))
        echo "not ok $count - $label"
        echo "$problems"
    fi
}

list >"$work/list"
while read -r want name args <&3; do
    # shellcheck disable=SC2086 # arguments are several words
    wanted "$name" && check "$want" "$name" $args
done 3<"$work/list"
echo "1..$count"
echo "# $((count - failed)) of $count as expected"
[ "$failed" = 0 ] && [ "$count" -gt 0 ]
