# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# For the rows of `short` and `long`; read by the root's /bin/sh.

# python_test SECONDS MODULE: a module of Python's own tests. A test that hangs
# ends the run after that time, with the threads' stacks.
python_test() {
    target python3 -m test -v --timeout "$1" "$2" 2>&1
}

# scenario NAME ARGUMENT...: a script of this folder. (`.` itself hands no
# arguments over in every shell.)
scenario() {
    name=$1
    shift
    # shellcheck disable=SC1090 # one of many
    . "$real/$name.sh"
}
