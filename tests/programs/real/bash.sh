# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=all # odd forms are what it is about
# What only bash does. Prints no process numbers and no times.
set -u
shopt -s extglob
section() { printf -- '--- %s\n' "$1"; }

section arrays
a=(one two "three four")
a+=(five)
echo "${#a[@]} ${a[2]} ${a[@]: -2}" "${!a[@]}"
declare -A h=([x]=1 [y]=2)
h[z]=3
for k in $(printf '%s\n' "${!h[@]}" | sort); do echo "$k=${h[$k]}"; done
mapfile -t lines < <(seq 1 1000)
echo "${#lines[@]} ${lines[999]}"

section strings
s="Hello, World"
echo "${s//o/0} ${s^^} ${s,,} ${s:7:3} ${s/#Hello/Bye}"
[[ abc123 =~ ^([a-z]+)([0-9]+)$ ]] && echo "${BASH_REMATCH[@]:1}"
[[ file.tar.gz == *.@(tar|zip)?(.gz) ]] && echo "extended glob"
printf -v padded '%05d|%-6s|%x' 42 ab 255
echo "$padded" $'tab\there' {1..5} {a,b}{1,2}
cat <<<"here $((2 ** 40)) string"

section "process substitution"
diff <(seq 1 5) <(seq 2 6)
paste <(seq 3) <(seq 4 6) <(seq 7 9)
tee >(wc -l >count) < <(seq 100) >/dev/null
while [ ! -s count ]; do sleep 0.05; done
cat count

section pipelines
set -o pipefail
false | true
echo $?
set +o pipefail
true | false | (exit 3)
echo "${PIPESTATUS[@]}"
shopt -s lastpipe
seq 10 | while read -r n; do last=$n; done
echo "last ${last:-none}"
shopt -u lastpipe

section coproc
coproc calc { while read -r e; do echo $((e)); done; }
for e in '3 * 4' '2 ** 10' '100 / 7'; do
    echo "$e" >&"${calc[1]}"
    read -r answer <&"${calc[0]}"
    echo "$e = $answer"
done
calc_job=$calc_PID
eval "exec ${calc[1]}>&-"
wait "$calc_job"
echo "ended"

section "job control"
set -m
sleep 100 &
job=$!
kill -STOP %1
until [[ $(jobs %1) == *Stopped* ]]; do sleep 0.05; done
jobs %1
bg %1
until [[ $(jobs %1) == *Running* ]]; do sleep 0.05; done
jobs %1
kill -TERM %1
wait $job 2>/dev/null
echo "status $?"
jobs >/dev/null
# A group of its own for each job: the whole pipeline gets the signal.
(sleep 100 | sleep 100 | sleep 100) &
job=$!
[ "$(ps -o pgid= -p $job | tr -d ' ')" = $job ] && echo "leads its group"
kill -KILL -- -$job
wait $job 2>/dev/null
echo "group $?"
(sleep 0.1; exit 6) &
fg %+ >/dev/null
echo "foreground $?"
set +m

section wait
for n in 3 1 2; do (exit $n) & pids[n]=$!; done
for n in 1 2 3; do wait "${pids[n]}"; echo "$n: $?"; done
(exit 11) &
wait -n
echo "wait -n $?"
sleep 100 &
sleeper=$!
trap 'came=yes' ALRM
# Until one comes while wait waits.
(while sleep 0.2; do kill -ALRM $$; done) &
killer=$!
wait $sleeper
echo "interrupted $(($? > 128)) $came"
kill $killer $sleeper
wait $sleeper $killer 2>/dev/null

section traps
trap 'echo "ERR $? in ${FUNCNAME[0]:-main}"' ERR
false
trap - ERR
f() { trap 'echo "return from f"' RETURN; echo "in f"; }
f
trap - RETURN
(trap 'echo "debug: $BASH_COMMAND"' DEBUG; : a; : b)
(trap 'echo "exit trap"' EXIT; kill -TERM $BASHPID)
echo $?
(trap 'echo INT; exit 1' INT; kill -INT $BASHPID; echo never)
echo $?

section "read"
if read -r -t 0.2 x < <(sleep 2); then echo got; else echo "timed out"; fi
read -r -d ';' x <<<'up to;this'
echo "$x"
read -r -n 3 x <<<abcdef
echo "$x"
IFS=, read -ra fields <<<'p,q,,r'
echo "${#fields[@]} ${fields[3]}"
exec {fd}<>/dev/null
echo "a descriptor of its own: $((fd >= 10))"
exec {fd}>&-

section "network"
(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null || echo "refused"

section "many children"
for ((i = 0; i < 200; i++)); do x=$(echo $i); done
echo "$x"
for ((i = 0; i < 50; i++)); do /bin/true; done
export -f section
bash -c 'section "an exported function"'
section end
