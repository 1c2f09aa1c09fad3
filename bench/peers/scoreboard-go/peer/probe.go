package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const stamp = "bench/ts"

// sight is what is read of an object: the same by every peer.
type sight struct {
	kind        string
	namespace   string
	name        string
	labels      map[string]string
	annotations map[string]string
	owners      []metav1.OwnerReference
	phase       string
	words       int // the length of conditions and of repositories' addresses
	timeout     int64
}

func lengths(words map[string]string) int {
	total := 0
	for key, value := range words {
		if key != stamp {
			total += len(key) + len(value)
		}
	}
	return total
}

func (s sight) size() int64 {
	total := len(s.namespace) + len(s.name) + len(s.phase) + s.words
	total += lengths(s.labels) + lengths(s.annotations)
	for _, owner := range s.owners {
		total += len(owner.Name)
	}
	return int64(total) + s.timeout
}

// probe counts first sights, adds up what was read, and tells of stamped events.
type probe struct {
	began  int64
	wanted int
	mutex  sync.Mutex
	synced bool
	seen   map[string]struct{}
	sum    int64
}

func newProbe() *probe {
	wanted, err := strconv.Atoi(os.Getenv("BENCH_WANT"))
	must(err)
	return &probe{began: time.Now().UnixNano(), wanted: wanted, seen: map[string]struct{}{}}
}

func (p *probe) note(s sight) {
	size := s.size()
	now := time.Now().UnixNano()
	p.first(s, size, now)
	sent, err := strconv.ParseInt(s.annotations[stamp], 10, 64)
	if err == nil && sent > p.began {
		os.Stdout.WriteString(fmt.Sprintf("H %s/%s %d %d\n", s.namespace, s.name, sent, now))
	}
}

func (p *probe) first(s sight, size, now int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.synced {
		return
	}
	before := len(p.seen)
	p.seen[s.kind+"/"+s.namespace+"/"+s.name] = struct{}{}
	if len(p.seen) == before {
		return
	}
	p.sum += size
	if len(p.seen) == p.wanted {
		p.synced, p.seen = true, nil
		os.Stdout.WriteString(fmt.Sprintf("SYNCED %d %d\n", now, p.sum))
	}
}
