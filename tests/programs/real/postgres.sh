# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# A cluster made, served, loaded by pgbench, stopped in its middle, recovered.
bin=/usr/lib/postgresql/15/bin
chown -R postgres .
chmod 755 . ..
pg() {
    program=$1
    shift
    target setpriv --reuid=101 --regid=101 --clear-groups "$bin/$program" "$@"
}
serve() {
    become setpriv --reuid=101 --regid=101 --clear-groups "$bin/postgres" \
        -D "$PWD/data" -k "$PWD" -h '' -c max_connections=20 \
        -c shared_buffers=16MB -c log_min_messages=panic & s=$!
    n=0
    until pg pg_isready -q -h "$PWD"; do
        sleep 0.5
        n=$((n + 1))
        [ $n -lt 200 ] || exit 1
    done
}
psql() { pg psql -h "$PWD" -U postgres -X -q -A -t "$@" postgres; }
pg initdb -D "$PWD/data" -U postgres --no-locale -E UTF8 -N >initdb.log
echo "initdb $?"
tail -n 4 initdb.log | grep -c Success
serve
psql -c 'SELECT 1 + 1'
psql <<'EOF'
CREATE TABLE t(id serial PRIMARY KEY, name text, at timestamptz DEFAULT now());
INSERT INTO t(name) SELECT md5(n::text) FROM generate_series(1, 20000) n;
CREATE INDEX ON t(name);
ANALYZE t;
SELECT count(*), min(name), max(name) FROM t;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT sum(length(name) * (id % 7)) FROM t;
EXPLAIN (COSTS OFF) SELECT sum(length(name)) FROM t;
BEGIN; DELETE FROM t WHERE id < 100; ROLLBACK;
SELECT count(*) FROM t WHERE id < 100;
DO $$ BEGIN RAISE EXCEPTION 'on purpose'; END $$;
SELECT pg_sleep(0.1) IS NULL;
EOF
pg pgbench -h "$PWD" -U postgres -i -q -s 1 postgres 2>/dev/null
echo "pgbench -i $?"
pg pgbench -h "$PWD" -U postgres -c 4 -j 2 -t 40 postgres 2>/dev/null |
    grep -E 'actually processed|failed'
same='SELECT sum(abalance) = (SELECT sum(delta) FROM pgbench_history)
      FROM pgbench_accounts'
psql -c "$same" -c 'SELECT count(*) FROM pgbench_history'
# A second backend waits for a lock, then goes on.
psql -c 'BEGIN; LOCK t; SELECT pg_sleep(1) IS NULL; COMMIT;' & first=$!
sleep 0.3
psql -c "SET lock_timeout = '60s'; SELECT count(*) FROM t"
wait $first
psql -c 'VACUUM FULL t' -c CHECKPOINT -c 'SELECT count(*) FROM t'
# A backend is killed: the others restart. Then the whole server is.
psql -c "INSERT INTO t(name) VALUES ('kept')"
kill -KILL $s
wait $s 2>/dev/null
sleep 1
pkill -KILL -u postgres
rm -f data/postmaster.pid .s.PGSQL*
serve
psql -c "SELECT name FROM t WHERE name = 'kept'" -c "$same"
kill -INT $s
wait $s
echo "server $?"
rm -rf data initdb.log
