// SPDX-License-Identifier: Apache-2.0

// Goroutines, channels, a garbage collector at work, net/http, child
// processes and signals.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func sieve(n int) int {
	source := make(chan int)
	go func(out chan int) {
		for i := 2; ; i++ {
			out <- i
		}
	}(source)
	prime := 0
	for ; n > 0; n-- {
		prime = <-source
		next := make(chan int)
		go func(in, out chan int, p int) {
			for {
				if i := <-in; i%p != 0 {
					out <- i
				}
			}
		}(source, next, prime)
		source = next
	}
	return prime
}

func goroutines() {
	fmt.Println("prime", sieve(60))
	var wait sync.WaitGroup
	var sum int64
	var lock sync.Mutex
	seen := map[int]bool{}
	for i := 0; i < 2000; i++ {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			atomic.AddInt64(&sum, int64(i))
			lock.Lock()
			seen[i%97] = true
			lock.Unlock()
			runtime.Gosched()
		}(i)
	}
	wait.Wait()
	fmt.Println("sum", sum, len(seen))
	// A goroutine that never yields is preempted by a signal.
	var stop int32
	go func() {
		for atomic.LoadInt32(&stop) == 0 {
		}
	}()
	for i := 0; i < 20; i++ {
		time.Sleep(time.Millisecond)
		runtime.GC()
	}
	atomic.StoreInt32(&stop, 1)
	fmt.Println("collected beside a busy goroutine")
}

func garbage() {
	var wait sync.WaitGroup
	lengths := make([]int, 4)
	for w := range lengths {
		wait.Add(1)
		go func(w int) {
			defer wait.Done()
			kept := map[int][]byte{}
			for i := 0; i < 20000; i++ {
				kept[i%500] = make([]byte, 100+i%1000)
			}
			lengths[w] = len(kept)
		}(w)
	}
	wait.Wait()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println("garbage", lengths, stats.NumGC > 0)
	big := make([]byte, 64<<20)
	big[len(big)/2] = 1
	fmt.Println(len(big), big[len(big)/2])
}

func faults() {
	defer func() { fmt.Println("recovered:", recover()) }()
	var p *struct{ far [10]int }
	fmt.Println(p.far[3])
}

func web() {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", strings.ToUpper(string(body)),
			strings.TrimPrefix(r.URL.Path, "/echo/"))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	base := "http://" + listener.Addr().String()
	answers := make(chan string)
	for i := 0; i < 30; i++ {
		go func(i int) {
			answer, err := http.Post(fmt.Sprintf("%s/echo/%d", base, i),
				"text/plain", strings.NewReader("body"))
			if err != nil {
				answers <- err.Error()
				return
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			answers <- string(body)
		}(i)
	}
	var all []string
	for i := 0; i < 30; i++ {
		all = append(all, <-answers)
	}
	sort.Strings(all)
	fmt.Printf("web %x %s\n", sha256.Sum256([]byte(strings.Join(all, ","))),
		all[0])
	answer, err := http.Get(base + "/nothing")
	check(err)
	fmt.Println(answer.Status)
	check(server.Close())
}

func children() {
	out, err := exec.Command("sh", "-c", "echo from a child; exit 3").Output()
	fmt.Printf("%q %v\n", out, err)
	sleep := exec.Command("sleep", "100")
	check(sleep.Start())
	check(sleep.Process.Signal(syscall.SIGTERM))
	fmt.Println(sleep.Wait())
	_, err = exec.Command("/nowhere").Output()
	fmt.Println(err)
}

func signals() {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	check(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	fmt.Println(<-got)
	select {
	case <-time.After(20 * time.Millisecond):
		fmt.Println("timer")
	case <-got:
		fmt.Println("a signal too many")
	}
}

func files() {
	check(os.WriteFile("file", []byte(strings.Repeat("x", 1<<20)), 0600))
	data, err := os.ReadFile("file")
	check(err)
	fmt.Printf("%d %x\n", len(data), sha256.Sum256(data))
	check(os.Remove("file"))
	_, err = os.Stat("file")
	fmt.Println(err)
}

func main() {
	goroutines()
	garbage()
	faults()
	web()
	children()
	signals()
	files()
	os.Exit(5)
}
