#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs in the emulated machine, under busybox sh: a list of jobs, each in its
# own copy of a template folder, natively or under elfuse.
#
#   batch.sh native|elfuse JOBS RESULTS TEMPLATE [LAUNCHER...]
#
# JOBS has a line a job: name, seconds allowed, shell line, separated by tabs.
# In the shell line $mode is the first argument, `target PROGRAM ARGS...` runs a program natively or by
# LAUNCHER, and `bb APPLET ARGS...` does so with busybox. RESULTS gets
# NAME.{out,err,status,tree}; the tree is what the job left in its folder.
# TEMPLATE is a folder, or "-" for an empty one. Names and paths hold no blanks.
set -u
mode=$1 jobs=$2 results=$3 template=$4
shift 4
launcher=$*
[ "$mode" = elfuse ] || launcher=
work=/tmp/batch
mkdir -p "$results" "$work"
bb=/bin/busybox

# The same words before every job's line, so that line numbers agree. A target
# is told which it is: some calls work natively and must be refused by elfuse.
cat >"$work/prelude" <<END
mode=$mode
target() { ELFUSE_UNDER_TEST=$mode $launcher "\$@"; }
target_words() { echo $launcher "\$@"; }
become() { exec $launcher "\$@"; }
bb() { $launcher $bb "\$@"; }
end() { kill -KILL "\$1" 2>/dev/null; wait "\$1" 2>/dev/null; }
listening() {
    n=0
    until busybox netstat -lnt 2>/dev/null | grep -q ":\$1 "; do
        n=\$((n + 1))
        [ \$n -lt 600 ] || return 1
        busybox usleep 50000
    done
}
END

# Names, kinds, modes and targets of links, then what files hold.
tree() {
    find . ! -name . | sort | xargs -r stat -c '%N %F %a'
    find . -type f | sort | xargs -r sha256sum
}

# What is started in the background ignores SIGINT; coreutils can undo that.
defaults="/usr/bin/env --default-signal=INT,QUIT"
$defaults true 2>/dev/null || defaults=

# In a session of its own, so that all it started ends with it.
job() {
    name=$1 seconds=$2
    begin=$(date +%s)
    # shellcheck disable=SC2086 # several words
    setsid $defaults /bin/sh "$work/job.sh" </dev/null >"$results/$name.out" \
        2>"$results/$name.err" &
    pid=$!
    setsid sh -c "sleep $seconds; : >$results/$name.timeout
                  kill -KILL -$pid" >/dev/null 2>&1 &
    watcher=$!
    wait $pid 2>/dev/null
    echo $? >"$results/$name.status"
    echo $(($(date +%s) - begin)) >"$results/$name.seconds"
    kill -KILL $watcher -$watcher -$pid 2>/dev/null
    wait $watcher 2>/dev/null
}

tab=$(printf '\t')
while IFS=$tab read -r name seconds line; do
    rm -rf "$work/here"
    if [ "$template" = - ]; then
        mkdir "$work/here"
    else
        cp -a "$template" "$work/here"
    fi
    { cat "$work/prelude"; printf '%s\n' "$line"; } >"$work/job.sh"
    cd "$work/here" || exit 1
    touch -d @1000000000 . ..
    job "$name" "$seconds"
    tree >"$results/$name.tree" 2>&1
    cd /
done <"$jobs"
rm -rf "$work"
