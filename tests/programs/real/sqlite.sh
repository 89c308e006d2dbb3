# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# sqlite.sh ROWS: a database of about half a kilobyte a row, in WAL mode, with
# two writers and a reader at once.
rows=$1
target sqlite3 db <<EOF
PRAGMA journal_mode=WAL;
PRAGMA page_size;
CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, text TEXT);
INSERT INTO t SELECT value, (value * 7919) % 100003, printf('%0480d', value)
    FROM generate_series(1, $rows);
CREATE INDEX by_k ON t(k);
CREATE TABLE log(who TEXT, n INT);
SELECT count(*), sum(k), sum(length(text)) FROM t;
EOF
[ "$(stat -c %s db)" -gt $((rows * 480)) ] && echo "large enough"

writer() {
    echo ".timeout 60000"
    n=0
    while [ $n -lt 100 ]; do
        echo "BEGIN IMMEDIATE; INSERT INTO log VALUES('$1', $n);"
        echo "UPDATE t SET k = k + 1 WHERE id = $((n * 37 % rows + 1)); COMMIT;"
        n=$((n + 1))
    done
}
writer one >one.sql
writer two >two.sql
target sqlite3 db <one.sql & one=$!
target sqlite3 db <two.sql & two=$!
# The reader sees both counts of a snapshot, whatever is being written.
for n in 1 2 3 4 5; do
    target sqlite3 db ".timeout 60000" "BEGIN; SELECT (SELECT count(*) FROM log)
        = (SELECT count(*) FROM log); COMMIT;"
done
wait $one; echo "one $?"
wait $two; echo "two $?"
target sqlite3 db "SELECT who, count(*), sum(n) FROM log GROUP BY who" \
    "SELECT sum(k) FROM t" \
    "SELECT k, text FROM t WHERE k BETWEEN 500 AND 502 ORDER BY id LIMIT 3" \
    "PRAGMA integrity_check" "DELETE FROM t WHERE id % 3 = 0" \
    "PRAGMA wal_checkpoint(TRUNCATE)" "VACUUM" "PRAGMA integrity_check"
target sqlite3 db '.dump t' | sha256sum
target sqlite3 db "SELECT * FROM nowhere"
echo "status $?"
# A writer that is killed in a transaction leaves nothing of it.
mkfifo open
become sqlite3 db <open & s=$!
exec 3>open
echo "BEGIN; DELETE FROM t; SELECT 'deleted';" >&3
sleep 1
end $s
exec 3>&-
target sqlite3 db "SELECT count(*) FROM t" "PRAGMA integrity_check"
rm -f db* one.sql two.sql open
