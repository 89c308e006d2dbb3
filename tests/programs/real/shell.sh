# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=all # odd forms are what it is about
# What every POSIX shell does: run as `SHELL shell.sh`, in an empty folder.
# Prints no process numbers and no times.
set -u
section() { printf -- '--- %s\n' "$1"; }

section pipes
i=0
while [ $i -lt 2000 ]; do
    echo "line $i $((i * 7919 % 1000))"
    i=$((i + 1))
done | sort -k3n -k2n | tail -n 3
yes pipe | head -n 50000 | wc -l
echo through | cat | cat | cat | cat | cat | cat | cat | tr a-z A-Z
false | true && echo "last one counts"
! true || echo "negated"

section redirections
echo one >a
echo two >>a
cat <a
ls nowhere 2>err || echo "status $?"
[ -s err ] && echo "an error was written"
{ echo out; echo err >&2; } >both 2>&1
cat both
exec 3>third
echo three >&3
exec 3>&-
(echo closed >&3) 2>/dev/null || echo "descriptor 3 is closed"
exec 4<a
read -r first <&4
read -r second <&4
exec 4<&-
echo "$first-$second"
set -C
(echo again >a) 2>/dev/null || echo "noclobber"
echo forced >|a
set +C
cat a
{ echo swapped; } 3>&1 1>&2 2>&3 3>&- 2>swap
cat swap

section here-documents
name=world
cat <<EOF
hello $name $((6 * 7)) $(echo substituted)
EOF
cat <<'EOF'
not $expanded $(here)
EOF
cat <<-EOF
	tabs go
	EOF
# More than a pipe holds.
big=$(i=0; while [ $i -lt 3000 ]; do echo "0123456789012345678901234567890 $i"
    i=$((i + 1)); done)
cat <<EOF | wc
$big
EOF

section substitution
x=$(printf 'a b\n\nc\n\n')
echo "[$x]" "$(echo nested "$(echo deeper "$(echo deepest)")")"
path=/usr/lib/thing.tar.gz
echo "${path##*/} ${path%.*} ${path%%.*} ${path#*/} ${unset:-default} ${#path}"
set -- a 'b c' d
for word in "$@"; do printf '<%s>' "$word"; done
echo " $#"
IFS=:
set -- $(echo x:y::z)
echo "$# $3."
unset IFS

section globs
mkdir -p dir/sub
touch dir/a.c dir/b.c dir/.hidden dir/sub/d.c
echo dir/*.c dir/*/*.c dir/.h* dir/no*match

section control
for n in 1 2 3 4 5 6; do
    case $n in
    2) continue ;;
    [45]) echo "four or five: $n" ;;
    6) break ;;
    *) echo "other: $n" ;;
    esac
done
until [ "${n:-0}" -le 3 ]; do n=$((n - 1)); done
echo "until $n"
fib() {
    if [ "$1" -lt 2 ]; then echo "$1"; else
        echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2)))))
    fi
}
fib 9
while getopts ab:c option -a -b value -c rest; do
    echo "$option ${OPTARG:-}"
done

section subshells
v=outer
(v=inner; cd dir; exit 7)
echo "$? $v"
(set -e; false; echo never)
echo "set -e: $?"
sh -c 'exit 130'
echo $?
sh -c 'kill -TERM $$'
echo $?
nowhere 2>/dev/null
echo $?
./a 2>/dev/null
echo $?
printf '#!/bin/sh\necho "a script: $1 $2"\nexit 3\n' >script
chmod +x script
./script x 'y z'
echo $?
(exec ./script replaced it; echo never)

section background
sleep 0 &
wait $!
echo "wait $?"
(exit 5) &
wait $!
echo "wait $?"
for n in 1 2 3 4 5 6 7 8; do (echo "job $n" >out.$n) & done
wait
cat out.*
mkfifo fifo
(while read -r line; do echo "got $line"; done <fifo) &
{ echo first; echo second; } >fifo
wait
sleep 60 &
kill -TERM $!
wait $! 2>/dev/null
echo "terminated $?"
sleep 60 &
kill -KILL $!
wait $! 2>/dev/null
echo "killed $?"

section traps
trap 'echo "USR1 came"' USR1
kill -USR1 $$
(trap - USR1; kill -USR1 "$(sh -c 'echo $PPID')"; echo never) 2>/dev/null
echo "default $?"
trap '' USR2
kill -USR2 $$
sh -c 'kill -USR2 $$; echo "ignored in the child too"'
(trap 'echo "leaving with $?"' EXIT; exit 4)
echo $?
# A trap while a wait is on.
trap 'echo "in wait"' HUP
(kill -HUP $$) &
wait
wait
(trap 'echo "child: TERM"; exit 9' TERM; : >ready
    while :; do sleep 0.05; done) &
until [ -e ready ]; do sleep 0.05; done
kill -TERM $!
wait $!
echo "after $?"
yes | head -n 1
trap - USR1 HUP USR2

section "a sieve"
primes=
n=2
while [ $n -lt 200 ]; do
    prime=1
    for p in $primes; do
        [ $((p * p)) -le $n ] || break
        [ $((n % p)) -ne 0 ] || { prime=0; break; }
    done
    [ $prime = 0 ] || primes="$primes $n"
    n=$((n + 1))
done
echo $primes

section "an order of dependencies"
cat >depends <<EOF
app lib config
lib base
config base parse
parse base
tests app
EOF
visit() {
    case " $done " in *" $1 "*) return ;; esac
    done="$done $1"
    while read -r target needs; do
        [ "$target" = "$1" ] || continue
        for need in $needs; do visit "$need"; done
    done <depends
    order="$order $1"
}
done= order=
visit tests
echo $order

section "words of a text"
for n in 1 2 3 4 5 6 7 8 9; do
    echo "the quick brown fox $n jumps over the lazy dog and the fox"
done | tr ' ' '\n' | sort | uniq -c | sort -k1,1nr -k2 | head -n 5 |
    while read -r count word; do echo "$word=$count"; done

section "long arguments"
list=$(i=0; while [ $i -lt 8000 ]; do echo "argument$i"; i=$((i + 1)); done)
sh -c 'echo $#' sh $list
ENVIRONMENT_TEST=1 env | grep -c ENVIRONMENT_TEST
umask 027
: >masked
ls -l masked | cut -c 1-10
section end
