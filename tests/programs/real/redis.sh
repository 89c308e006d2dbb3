# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# A server under redis-benchmark, saved in the background by a fork, restarted.
serve() {
    become redis-server --port 7001 --dir "$PWD" --save '' --logfile log \
        --enable-debug-command yes --io-threads 2 & s=$!
    listening 7001
}
cli() { target redis-cli -p 7001 "$@"; }
serve
cli ping
target redis-benchmark -p 7001 -n 3000 -c 20 -q --csv \
    -t set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100,mset |
    cut -d, -f1
target redis-benchmark -p 7001 -n 3000 -c 8 -P 16 -r 500 --threads 2 -q --csv \
    -t set,get | cut -d, -f1
cli flushall
cli set key value
cli append key ' and more'
cli get key
cli eval 'local n = 0 for i = 1, 1000 do n = n + i end return n' 0
seq 1 2000 | sed 's/.*/set name& value&/' | cli >/dev/null
cli dbsize
cli bgsave
until cli info persistence | grep -q rdb_bgsave_in_progress:0; do sleep 0.1; done
cli info persistence | grep rdb_last_bgsave_status
cli config set appendonly yes
until cli info persistence | grep -q aof_rewrite_in_progress:0; do
    sleep 0.1
done
cli info persistence | grep aof_last_bgrewrite_status
before=$(cli debug digest)
cli shutdown nosave
wait $s
echo "server $?"
rm -rf appendonlydir
serve
[ "$(cli debug digest)" = "$before" ] && echo "the same after a restart"
cli get key
kill -TERM $s
wait $s
echo "server $?"
rm -f dump.rdb log
