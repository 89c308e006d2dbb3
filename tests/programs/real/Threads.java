// SPDX-License-Identifier: Apache-2.0
// Threads that allocate, wait for each other and run child processes.
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;

public class Threads {
    static long churn(int seed) {
        List<byte[]> kept = new ArrayList<>();
        long sum = 0;
        for (int i = 0; i < 4000; i++) {
            byte[] piece = new byte[1024 + (i * seed) % 4096];
            piece[i % piece.length] = (byte) i;
            sum += piece.length;
            if (i % 10 == 0)
                kept.add(piece);
            if (kept.size() > 100)
                kept.clear();
        }
        return sum;
    }

    static int recurse(int n) {
        return n == 0 ? 0 : 1 + recurse(n - 1);
    }

    static int deep() {
        return 1 + deep();
    }

    public static void main(String[] words) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> sums = new ArrayList<>();
        for (int n = 1; n <= 8; n++) {
            int seed = n;
            sums.add(pool.submit(() -> churn(seed)));
        }
        long all = 0;
        for (var sum : sums)
            all += sum.get();
        System.out.println("allocated " + all);

        var map = new ConcurrentHashMap<Integer, AtomicLong>();
        var latch = new CountDownLatch(4);
        for (int n = 0; n < 4; n++)
            pool.submit(() -> {
                for (int i = 0; i < 20000; i++)
                    map.computeIfAbsent(i % 100, k -> new AtomicLong())
                        .incrementAndGet();
                latch.countDown();
            });
        latch.await();
        System.out.println("counted " + map.values().stream()
            .mapToLong(AtomicLong::get).sum());
        pool.shutdown();

        System.out.println("parallel " + LongStream.range(0, 1000000)
            .parallel().map(x -> x * x % 7).sum());
        // Null pointers and stack ends are found by their faults.
        String nothing = words.length > 9 ? "" : null;
        int caught = 0;
        for (int i = 0; i < 20000; i++)
            try {
                caught += nothing.length();
            } catch (NullPointerException e) {
                caught++;
            }
        System.out.println("null " + caught + " " + recurse(5000));
        try {
            deep();
        } catch (StackOverflowError e) {
            System.out.println("stack overflow");
        }
        try {
            long[][] big = new long[1000][];
            for (int i = 0; i < 1000; i++)
                big[i] = new long[1 << 20];
            System.out.println(big.length);
        } catch (OutOfMemoryError e) {
            System.out.println("out of memory");
        }

        var child = new ProcessBuilder("sh", "-c", "cat; exit 3").start();
        child.getOutputStream().write("to a child".getBytes());
        child.getOutputStream().close();
        System.out.println(new String(child.getInputStream().readAllBytes()) +
            " " + child.waitFor());

        try (var server = new ServerSocket(0)) {
            var thread = new Thread(() -> {
                try (Socket peer = server.accept()) {
                    peer.getOutputStream().write(
                        peer.getInputStream().readNBytes(5));
                } catch (Exception e) {
                    System.out.println(e);
                }
            });
            thread.start();
            try (Socket client = new Socket("127.0.0.1",
                                            server.getLocalPort())) {
                client.getOutputStream().write("hello".getBytes());
                System.out.println(new String(client.getInputStream()
                    .readAllBytes()));
            }
            thread.join();
        }

        Path path = Path.of("mapped");
        try (var channel = FileChannel.open(path, StandardOpenOption.CREATE,
                StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            var buffer = channel.map(FileChannel.MapMode.READ_WRITE, 0, 1 << 20);
            for (int i = 0; i < 1 << 20; i += 4096)
                buffer.put(i, (byte) (i >> 12));
            buffer.force();
        }
        byte[] bytes = Files.readAllBytes(path);
        System.out.println("mapped " + bytes.length + " " + bytes[5 << 12]);
        Files.delete(path);
        Runtime.getRuntime().addShutdownHook(new Thread(() ->
            System.out.println("the end")));
        System.exit(4);
    }
}
