#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# In the emulated machine: run each line of `commands` with the machine's own
# busybox natively and under elfuse, on equal files, and compare output and
# status. usage: run.sh COMMANDS RESULTS ELFUSE [ELFUSE-OPTIONS]
commands=$1 results=$2 elfuse=$3
shift 3
busybox=/bin/busybox
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TZ=UTC LC_ALL=C

data() {
    rm -rf /tmp/applets/w && mkdir -p /tmp/applets/w/tree/sub && cd /tmp/applets/w || exit 125
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        echo "line $i of the text, word$((i % 4)) alpha"
    done > text
    sed 's/line 1/Line one/;/line 7/d' text > text2
    printf 'delta\nalpha\ncharlie\nbravo\nalpha\n' > words
    sort text words > sorted
    printf 'a\tb\tc\n\td        e\n' > tabs
    printf '1 a\n2 b\n3 c\n' > j1
    printf '1 x\n3 z\n' > j2
    printf 'a b\nb c\nd b\n' > ts.in
    printf '2^64\nscale=10\n22/7\nsqrt(2)\n' > bc.in
    printf 'g/line/s//ed/\nw\nq\n' > edscript
    cp text vifile; cp text edfile
    seq 1 40000 | awk '{ print ($1 * 7919) % 40009 }' > num
    seq 1 60000 > big
    printf 'static int a;\nint main(void);\n' > tree/a.c
    printf '#define B 1\n' > tree/b.h
    seq 1 2000 > tree/sub/c.h
    ln -s ../a.c tree/sub/link
    mkdir -p tree/empty
    : > tree/none
    cp "$samples"/sample.* .
    find . -exec touch -h -d '2024-01-01 00:00:00' {} +
}

samples=$(dirname "$commands")
for mode in native elfuse; do
    mkdir -p "$results/$mode"
    data
    if [ $mode = native ]; then
        B=$busybox
    else
        B="$elfuse $* $busybox"
    fi
    export B
    n=0
    while IFS= read -r line; do
        n=$((n + 1))
        case $line in '#'* | '') continue ;; esac
        echo "$mode $n $(cut -d' ' -f1 /proc/uptime) $line" >> "$results/log"
        timeout -s KILL 90 $busybox sh -c "$line" > "$results/$mode/$n.out" 2> "$results/$mode/$n.err" < /dev/null
        echo $? > "$results/$mode/$n.status"
    done < "$commands"
done

n=0 bad=0 good=0
while IFS= read -r line; do
    n=$((n + 1))
    case $line in '#'* | '') continue ;; esac
    same=yes
    for part in out err status; do
        cmp -s "$results/native/$n.$part" "$results/elfuse/$n.$part" || same=no
    done
    if [ $same = yes ]; then
        good=$((good + 1))
    else
        bad=$((bad + 1))
        echo "DIFFERS $n: $line"
        for part in out err status; do
            cmp -s "$results/native/$n.$part" "$results/elfuse/$n.$part" ||
                { diff "$results/native/$n.$part" "$results/elfuse/$n.$part" | head -6 | cut -c1-200; }
        done
    fi
done < "$commands"
echo "$good equal, $bad different"
[ $bad = 0 ]
