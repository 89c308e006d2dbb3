// SPDX-License-Identifier: Apache-2.0
// Worker threads with shared memory, child processes, HTTP, files, timers.
'use strict';
const { Worker, isMainThread, parentPort, workerData, MessageChannel } =
    require('worker_threads');
const { spawn, execFileSync, fork } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const zlib = require('zlib');

if (process.argv[2] === 'child') {
    process.on('message', (m) => process.send({ answer: m.n * 2 }));
    process.on('disconnect', () => process.exit(5));
    return;
}
if (!isMainThread) {
    const view = new Int32Array(workerData.shared);
    for (let i = 0; i < 10000; i++) Atomics.add(view, 0, 1);
    Atomics.add(view, 1, 1);
    Atomics.notify(view, 1);
    let n = 0, x = workerData.n;
    while (n < 200000) x = (x * 1103515245 + 12345) % 2147483648, n++;
    parentPort.postMessage({ n: workerData.n, x });
    return;
}

async function workers() {
    const shared = new SharedArrayBuffer(8);
    const answers = await Promise.all([1, 2, 3, 4].map((n) =>
        new Promise((resolve, reject) => {
            const w = new Worker(__filename, { workerData: { shared, n } });
            let got;
            w.on('message', (m) => { got = m; });
            w.on('error', reject);
            w.on('exit', (code) => resolve([code, got]));
        })));
    console.log(JSON.stringify(answers), new Int32Array(shared).join());
    const stuck = new Worker('for (;;);', { eval: true });
    await new Promise((r) => stuck.on('online', r));
    console.log('terminated', await stuck.terminate());
    const failing = new Worker('throw new Error("on purpose")', { eval: true });
    console.log(await new Promise((r) => failing.on('error', (e) =>
        r(e.message))));
}

async function children() {
    console.log(execFileSync('sh', ['-c', 'echo out; exit 0']).toString());
    try {
        execFileSync('sh', ['-c', 'exit 7']);
    } catch (e) {
        console.log('status', e.status);
    }
    const cat = spawn('tr', ['a-z', 'A-Z']);
    let text = '';
    cat.stdout.on('data', (d) => { text += d; });
    cat.stdin.end('through a pipe');
    const [code] = await new Promise((r) => cat.on('close', (...a) => r(a)));
    console.log(code, text);
    const slow = spawn('sleep', ['100']);
    slow.kill('SIGTERM');
    console.log(await new Promise((r) => slow.on('exit', (c, s) => r(s))));
    const other = fork(__filename, ['child']);
    other.send({ n: 21 });
    const answer = await new Promise((r) => other.on('message', r));
    other.disconnect();
    console.log(answer, await new Promise((r) => other.on('exit', r)));
    console.log(await new Promise((r) => spawn('/nowhere').on('error', (e) =>
        r(e.code))));
}

async function web() {
    const server = http.createServer((q, a) => {
        let body = '';
        q.on('data', (d) => { body += d; });
        q.on('end', () => a.end(zlib.gzipSync(q.url + body)));
    });
    await new Promise((r) => server.listen(0, '127.0.0.1', r));
    const ask = (n) => new Promise((resolve) => {
        const q = http.request({ port: server.address().port,
            host: '127.0.0.1', method: 'POST', path: '/' + n }, (a) => {
            const parts = [];
            a.on('data', (d) => parts.push(d));
            a.on('end', () => resolve(zlib.gunzipSync(Buffer.concat(parts))
                .toString()));
        });
        q.end('body' + n);
    });
    console.log((await Promise.all([...Array(20).keys()].map(ask))).join());
    server.close();
}

async function files() {
    await fs.promises.writeFile('a', Buffer.alloc(1 << 20, 'x'));
    await Promise.all([...Array(16).keys()].map((n) =>
        fs.promises.copyFile('a', 'b' + n)));
    const hash = crypto.createHash('sha256');
    for await (const d of fs.createReadStream('b7')) hash.update(d);
    console.log(hash.digest('hex').slice(0, 16), fs.readdirSync('.').length);
    const key = await new Promise((r) => crypto.pbkdf2('p', 's', 2000, 16,
        'sha512', (e, k) => r(k.toString('hex'))));
    console.log(key);
}

async function main() {
    await workers();
    await children();
    await web();
    await files();
    let churn = [];
    for (let i = 0; i < 100000; i++) churn[i % 1000] = { i, s: 'x' + i };
    console.log(churn.length, [3, 1, 2].sort().join());
    process.on('SIGUSR2', () => { console.log('USR2'); process.exit(3); });
    process.kill(process.pid, 'SIGUSR2');
    setTimeout(() => {}, 60000);
}
main();
