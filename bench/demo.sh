#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The machine's side of bench/demo: everything in one boot. Prints for the
# reader, and lines "@ KEY VALUE..." for bench/demo to make tables of.
#   demo.sh pagefind BINARY MODE...
#                    its version and an index of a site, in each mode
#   demo.sh show     busybox, the cycle by the clock, the reservation
#   demo.sh count    the cycle only, for a boot that counts instructions
set -u
cycle=build/bench/cycle
reserve=build/bench/reserve

# The words of a command as one would type them.
quoted() {
    for word; do
        case $word in
        '' | *[!A-Za-z0-9_./-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
}

# Prints the beginning of elfuse's output, or the size of one kept in a file.
show_output() {
    lines=$(wc -l </tmp/elfuse.out)
    if [ -n "$output" ]; then
        echo "    ($(wc -c </tmp/elfuse.out) bytes)"
        cp /tmp/elfuse.out "$output"
        return
    fi
    head -n 8 /tmp/elfuse.out | cut -c 1-76 | sed 's/^/    /'
    [ "$lines" -le 8 ] || echo "    ... $((lines - 8)) more lines"
}

# show WORD...: runs an applet under elfuse, with $input and into $output if
# given, shows it, and says whether Linux gives the same.
show() {
    printf '\n  $ elfuse busybox%s\n' \
        "$(quoted "$@")${input:+ < $input}${output:+ > $output}"
    elfuse busybox "$@" <"${input:-/dev/null}" >/tmp/elfuse.out 2>&1
    status=$?
    busybox "$@" <"${input:-/dev/null}" >/tmp/native.out 2>&1
    native=$?
    show_output
    if [ $status = $native ] && cmp -s /tmp/elfuse.out /tmp/native.out; then
        echo "@ same yes"
    else
        echo "@ same no"
        echo "    (status $status; the machine's own kernel gives $native and" \
            "$(cmp -s /tmp/elfuse.out /tmp/native.out && echo the same ||
                echo other) output)"
    fi
    input='' output=''
}

programs() {
    mkdir -p /tmp/demo && cp -r README.md LICENSE src docs /tmp/demo &&
        cd /tmp/demo || exit 1
    input='' output=''
    show ls -la src
    show sha256sum LICENSE README.md
    show wc -l src/mm/mmap.c src/mm/munmap.c src/mm/span.c
    show grep -rl munmap src
    # shellcheck disable=SC2016 # awk's own
    show awk '{ n += NF } END { print NR, "lines,", n, "words" }' LICENSE
    input=LICENSE output=words
    show tr -cs 'A-Za-z' '\n'
    show sort -u words
    output=all.tar
    show tar -c src docs
    input=all.tar output=all.tar.gz
    show gzip -c
    input=all.tar.gz output=again.tar
    show gzip -dc
    show tar -tf again.tar
    cd "$OLDPWD" || exit 1
}

# The exits of the VM in --stats' output, by what makes them.
exits() {
    awk '/exits: / { n += $1 } END { print n + 0 }' "$1"
}

cycles() {
    for what in "5000 bytes recycled" "5000 pages recycled" \
        "2000 bytes fresh" "500 pages fresh" "sweep2m 3"; do
        # shellcheck disable=SC2086 # several arguments
        set -- $what
        echo "@ cycle native $what: $($cycle "$@")"
        echo "@ cycle elfuse $what: $(elfuse --stats $cycle "$@" 2>/tmp/stats)"
        echo "@ exits $what: $(exits /tmp/stats)"
    done
}

# kilobytes FIELD PID
kilobytes() {
    awk -v field="$1:" '$1 == field { print $2 }' "/proc/$2/status"
}

# In memory and in page tables, of the process as the host sees it.
memory() {
    echo "@ memory $1 $2 $(kilobytes VmSize "$3") $(kilobytes VmRSS "$3")" \
        "$(kilobytes VmPTE "$3")"
}

reservation() {
    mkfifo /tmp/lines
    for mode in native elfuse; do
        : >/tmp/said
        launcher=
        [ $mode = native ] || launcher=elfuse
        $launcher $reserve 1024 10 </tmp/lines >/tmp/said 2>&1 &
        pid=$!
        exec 3>/tmp/lines
        for step in started reserved; do
            until grep -q $step /tmp/said; do
                [ -d /proc/$pid ] || break 2
                usleep 20000
            done
            memory $mode $step $pid
            echo go >&3
        done
        exec 3>&-
        wait $pid
        echo "@ reserve $mode $?"
    done
}

# pagefind BINARY native|elfuse...
pagefind() {
    cp "$1" /tmp/pagefind && cp -r build/demo/site /tmp && cd /tmp || exit 1
    shift
    for mode; do
        words=
        [ "$mode" = native ] || words='elfuse '
        for arguments in --version '--site site'; do
            printf '\n  $ %s./pagefind %s\n' "$words" "$arguments"
            # shellcheck disable=SC2086 # several arguments
            $words./pagefind $arguments >out 2>&1
            status=$?
            grep -E '^pagefind|jemalloc|Indexed.*pages|words|Finished' out |
                uniq | sed 's/^ */    /'
            [ $status = 0 ] || echo "    (exit status $status)"
        done
        echo "@ index $mode	$(find site/pagefind -type f 2>/dev/null | sort |
            xargs -r sha256sum | sha256sum | cut -c 1-16)"
        echo "@ files $mode	$(find site/pagefind -type f 2>/dev/null | wc -l)"
        rm -rf site/pagefind
    done
}

case $1 in
pagefind)
    shift
    pagefind "$@"
    ;;
show)
    programs
    cycles
    reservation
    ;;
count) cycles ;;
esac
