# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# stress.sh STRESSOR...: each of stress-ng's for five seconds, verified.
for one; do
    target stress-ng --verify --temp-path . -t 5 "--$one" 2 >log 2>&1
    echo "$one: $?"
    grep -iE 'fail|error|info: .*(skip|not implem)|signal' log |
        sed 's/\[[0-9]*\]//'
done
rm -f log
