# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# A master and two workers; concurrent requests; reload and orderly end.
mkdir -p www logs temp
chmod 755 . www
seq 1 20000 >www/numbers.txt
echo '<p>index</p>' >www/index.html
cat >nginx.conf <<EOF
worker_processes 2;
user user;
daemon off;
pid $PWD/pid;
error_log $PWD/logs/error.log;
events { worker_connections 128; }
http {
    access_log $PWD/logs/access.log;
    client_body_temp_path $PWD/temp/body;
    proxy_temp_path $PWD/temp/proxy;
    fastcgi_temp_path $PWD/temp/fastcgi;
    uwsgi_temp_path $PWD/temp/uwsgi;
    scgi_temp_path $PWD/temp/scgi;
    gzip on;
    gzip_http_version 1.0;
    gzip_types text/plain;
    sendfile on;
    server {
        listen 127.0.0.1:8090;
        root $PWD/www;
        location /stub { stub_status; }
        location /moved { return 302 /index.html; }
    }
    server {
        listen 127.0.0.1:8091;
        location / { proxy_pass http://127.0.0.1:8090; }
    }
}
EOF
target nginx -p "$PWD" -c "$PWD/nginx.conf" -t 2>&1 | sed "s|$PWD||g"
become nginx -p "$PWD" -c "$PWD/nginx.conf" & s=$!
listening 8090
get() { busybox wget -q -O - "http://127.0.0.1:$1"; }
get 8090/
get 8090/numbers.txt | cmp - www/numbers.txt && echo "the same file"
get 8091/numbers.txt | cmp - www/numbers.txt && echo "the same by a proxy"
printf 'GET /numbers.txt HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n' |
    busybox nc 127.0.0.1 8090 | sed '1,/^\r$/d' | gzip -dc |
    cmp - www/numbers.txt && echo "the same compressed"
get 8090/nothing
echo "status $?"
get 8090/moved
for client in 1 2 3 4; do
    (for _ in 1 2 3 4 5 6 7 8 9 10; do
        get "809$((client % 2))/numbers.txt" | sha256sum
    done >sums.$client) &
    clients="$clients $!"
done
# shellcheck disable=SC2086 # several processes
wait $clients
cat sums.* | sort | uniq -c | awk '{ print $1 }'
workers() { pgrep -P $s | wc -l; }
echo "workers: $(workers)"
kill -HUP $s
sleep 1
get 8090/
kill -KILL "$(pgrep -P $s | head -n 1)"
sleep 1
echo "workers: $(workers)"
get 8090/
kill -QUIT $s
wait $s
echo "master $?"
awk '{ print $9 }' logs/access.log | sort | uniq -c
grep -c alert logs/error.log
rm -rf logs temp sums.* nginx.conf
