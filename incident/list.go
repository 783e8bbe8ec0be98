package incident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Summary is one line of a list of incidents.
type Summary struct {
	ID             string     `json:"id"`
	Origin         string     `json:"origin"`
	Proxy          string     `json:"proxy"`
	Worker         Worker     `json:"worker"`
	Mode           string     `json:"mode"`
	Verdict        string     `json:"verdict"`
	Outcome        Outcome    `json:"outcome"`
	Story          string     `json:"story"`
	Began          time.Time  `json:"began"`
	Ended          *time.Time `json:"ended"`
	Request        string     `json:"request"`
	Upstream       string     `json:"upstream"`
	Version        string     `json:"version"`
	WorkersStuck   int        `json:"workers_stuck"`
	WorkersEvicted int        `json:"workers_evicted"`
	Error          string     `json:"error,omitempty"` // the folder cannot be read: why
}

// Filter chooses incidents. The zero value chooses all.
type Filter struct {
	Verdict string
	Proxy   string
	Before  string // only those whose ids sort before this one: the older ones
	Limit   int    // 0: no limit
}

// Until returns what Filter.Before must be to choose the incidents that began
// at t, to the millisecond, or earlier.
func Until(t time.Time) string { return NewID(t.Add(time.Millisecond), nil) }

// cached is what is remembered of a folder whose incident.json has not changed.
type cached struct {
	summary Summary
	changed time.Time
	size    int64
}

// List returns the incidents, newest first. It reads only incident.json, each
// once, and no more of them than the limit needs. A folder that cannot be read
// is listed with its error: evidence does not vanish silently.
func (s *Store) List(f Filter) ([]Summary, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	list := []Summary{}
	for _, id := range older(ids, f.Before) {
		if f.Limit > 0 && len(list) == f.Limit {
			break
		}
		sum, err := s.summary(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			sum = broken(id, err)
		}
		if (f.Verdict == "" || f.Verdict == sum.Verdict) && (f.Proxy == "" || f.Proxy == sum.Proxy) {
			list = append(list, sum)
		}
	}
	return list, nil
}

// older returns the part of the ids, newest first, that sorts before one.
func older(ids []string, before string) []string {
	if before == "" {
		return ids
	}
	n, found := slices.BinarySearchFunc(ids, before, func(a, b string) int { return compare(b, a) })
	if found {
		n++
	}
	return ids[n:]
}

// Count returns how many incidents there are.
func (s *Store) Count() (int, error) {
	ids, err := s.ids()
	return len(ids), err
}

// known are the ids of all folders as they were when the directory was last
// changed.
type known struct {
	ids     []string
	changed time.Time
}

// settled is how long ago a directory must have been changed for its time to
// tell of every change: file systems count in steps.
const settled = time.Second

// ids returns the ids of all folders, newest first, for reading only. With many
// incidents it is the directory that costs, so it is read only after a change.
func (s *Store) ids() ([]string, error) {
	fi, err := s.root.Stat(".")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	k := s.known
	s.mu.Unlock()
	if k.ids != nil && k.changed.Equal(fi.ModTime()) {
		return k.ids, nil
	}
	ids, err := s.readIDs()
	if err == nil && time.Since(fi.ModTime()) > settled {
		s.mu.Lock()
		s.known = known{ids, fi.ModTime()}
		s.mu.Unlock()
	}
	return ids, err
}

func (s *Store) readIDs() ([]string, error) {
	entries, err := s.entries()
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return compare(b, a) })
	return ids, nil
}

// summary returns the line of one incident. The writer trusts what it wrote; a
// reader looks whether the file is still the one that it knows.
func (s *Store) summary(id string) (Summary, error) {
	s.mu.Lock()
	c, ok := s.cache[id]
	s.mu.Unlock()
	if ok && s.lock != nil {
		return c.summary, nil
	}
	f, err := s.root.OpenFile(path.Join(id, JSONFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Summary{}, err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return Summary{}, err
	}
	if ok && c.changed.Equal(fi.ModTime()) && c.size == fi.Size() {
		return c.summary, nil
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxJSON {
		return Summary{}, fmt.Errorf("%s: not a regular file of at most %d bytes", JSONFile, maxJSON)
	}
	sum, err := decodeSummary(f, fi.Size())
	if err != nil {
		return Summary{}, err
	}
	if sum.ID != id {
		return Summary{}, fmt.Errorf("%s: it speaks of %.40q", JSONFile, sum.ID)
	}
	s.mu.Lock()
	s.cache[id] = cached{sum, fi.ModTime(), fi.Size()}
	s.mu.Unlock()
	return sum, nil
}

// decodeSummary reads only what a list shows: the rest of the file is skipped.
func decodeSummary(r io.Reader, size int64) (Summary, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return Summary{}, fmt.Errorf("%s: %s", JSONFile, err)
	}
	var v struct {
		Summary
		Evidence struct{ Request, Upstream, Version string }
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return Summary{}, fmt.Errorf("%s: %s", JSONFile, err)
	}
	v.Request, v.Upstream, v.Version = v.Evidence.Request, v.Evidence.Upstream, v.Evidence.Version
	v.bound()
	return v.Summary, nil
}

// bound does for a summary what Incident.bound does for the whole.
func (s *Summary) bound() {
	names(&s.Origin, &s.Proxy, &s.Mode, &s.Verdict, &s.Upstream, &s.Version)
	texts(&s.Story, &s.Request)
	s.Outcome = Outcome(cut(string(s.Outcome), maxName))
	s.Error = ""
}

// remember puts a freshly written incident into the cache.
func (s *Store) remember(inc *Incident) {
	fi, err := s.root.Lstat(path.Join(inc.ID, JSONFile))
	if err != nil {
		return // List reads it again, and tells
	}
	s.mu.Lock()
	s.cache[inc.ID] = cached{summarize(prepared(inc)), fi.ModTime(), fi.Size()}
	delete(s.sizes, inc.ID)
	s.mu.Unlock()
}

func summarize(inc *Incident) Summary {
	return Summary{
		ID: inc.ID, Origin: inc.Origin, Proxy: inc.Proxy, Worker: inc.Worker, Mode: inc.Mode,
		Verdict: inc.Verdict, Outcome: inc.Outcome, Story: inc.Story, Began: inc.Began, Ended: inc.Ended,
		Request: inc.Evidence.Request, Upstream: inc.Evidence.Upstream, Version: inc.Evidence.Version,
		WorkersStuck: inc.WorkersStuck, WorkersEvicted: inc.WorkersEvicted,
	}
}

// broken is the line of a folder that cannot be read. Its id tells when.
func broken(id string, err error) Summary {
	sum := Summary{ID: id, Error: err.Error(), Story: "This incident cannot be read: " + err.Error() + "."}
	if t, perr := time.Parse(idTime, id[:len(idTime)]); perr == nil {
		sum.Began = t
	}
	return sum
}

func compare(a, b string) int { return strings.Compare(a, b) }
