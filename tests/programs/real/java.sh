# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# java.sh COLLECTOR: javac, then the program under that collector.
cp "$real/Threads.java" .
target javac -J-XX:+UseSerialGC -d . Threads.java
echo "javac $?"
target java "-XX:+Use$1GC" -Xmx96m -Xss512k Threads
echo "java $?"
target java "-XX:+Use$1GC" -Xint -version 2>&1 | head -n 1
target java Nowhere 2>&1 | head -n 1
rm -f ./*.class
