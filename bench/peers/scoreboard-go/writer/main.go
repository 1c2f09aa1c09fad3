// The writer of the scoreboard: stamps sessions, and tells when each write was answered.
//
//	writer rate N PER_SECOND
//	writer burst N PARALLEL
//
// The sessions are read from standard input, "namespace name" in each line. Standard
// library only. It prints one object of JSON: when it began and ended (ns), and for each
// name when the answer was in hand.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	prefix   = "/apis/vteam.ambient-code/v1alpha1/namespaces/"
	parallel = 16 // connections at a given rate: more than are ever in use
)

type session struct{ namespace, name string }

type report struct {
	Began int64            `json:"began"`
	Ended int64            `json:"ended"`
	Acks  map[string]int64 `json:"acks"`
}

type writer struct {
	client *http.Client
	server string
	token  string
	mutex  sync.Mutex
	acks   map[string]int64
}

func newWriter() *writer {
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM([]byte(os.Getenv("BENCH_CA"))) {
		fail("BENCH_CA holds no certificate")
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority},
		// HTTP/1.1, so that each worker has a connection of its own.
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxIdleConnsPerHost: 128,
	}
	return &writer{
		client: &http.Client{Transport: transport},
		server: os.Getenv("BENCH_SERVER"),
		token:  os.Getenv("BENCH_TOKEN"),
		acks:   map[string]int64{},
	}
}

func fail(words ...any) {
	fmt.Fprintln(os.Stderr, words...)
	os.Exit(1)
}

func (w *writer) call(method, path string, body []byte) {
	request, err := http.NewRequest(method, w.server+path, bytes.NewReader(body))
	if err != nil {
		fail(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := w.client.Do(request)
	if err != nil {
		fail(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		fail(method, path, response.Status, string(text))
	}
}

func (w *writer) stamp(each session) {
	path := prefix + each.namespace + "/agenticsessions/" + each.name + "?fieldManager=bench"
	body := fmt.Sprintf(`{"metadata":{"annotations":{"bench/ts":"%d"}}}`, time.Now().UnixNano())
	w.call(http.MethodPatch, path, []byte(body))
	now := time.Now().UnixNano()
	w.mutex.Lock()
	w.acks[each.name] = now
	w.mutex.Unlock()
}

func (w *writer) work(work <-chan session, done *sync.WaitGroup) {
	defer done.Done()
	w.call(http.MethodGet, "/version", nil) // opens the connection before the clock starts
	for each := range work {
		w.stamp(each)
	}
}

// run writes to all sessions, at a rate if there is one.
func (w *writer) run(sessions []session, workers, perSecond int) report {
	work := make(chan session)
	var done sync.WaitGroup
	for range workers {
		done.Add(1)
		go w.work(work, &done)
	}
	time.Sleep(500 * time.Millisecond)
	began := time.Now()
	for i, each := range sessions {
		if perSecond > 0 {
			due := began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
			time.Sleep(time.Until(due))
		}
		work <- each
	}
	close(work)
	done.Wait()
	return report{Began: began.UnixNano(), Ended: time.Now().UnixNano(), Acks: w.acks}
}

func read(count int) []session {
	var all []session
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && len(all) < count {
		namespace, name, _ := strings.Cut(lines.Text(), " ")
		all = append(all, session{namespace, name})
	}
	return all
}

func main() {
	if len(os.Args) != 4 {
		fail("usage: writer rate N PER_SECOND | writer burst N PARALLEL")
	}
	count, _ := strconv.Atoi(os.Args[2])
	number, _ := strconv.Atoi(os.Args[3])
	workers, perSecond := number, 0
	if os.Args[1] == "rate" {
		workers, perSecond = parallel, number
	}
	made := newWriter().run(read(count), workers, perSecond)
	if err := json.NewEncoder(os.Stdout).Encode(made); err != nil {
		fail(err)
	}
}
