package incident

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
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
	Limit   int // 0: no limit
}

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
	for _, id := range ids {
		if f.Limit > 0 && len(list) == f.Limit {
			break
		}
		sum, err := s.summary(id)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotFound) {
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

// Count returns how many incidents there are.
func (s *Store) Count() (int, error) {
	ids, err := s.ids()
	return len(ids), err
}

// ids returns the ids of all folders, newest first.
func (s *Store) ids() ([]string, error) {
	entries, err := s.entries()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return compare(b, a) })
	return ids, nil
}

func (s *Store) summary(id string) (Summary, error) {
	fi, err := s.root.Lstat(path.Join(id, JSONFile))
	if err != nil {
		return Summary{}, err
	}
	s.mu.Lock()
	c, ok := s.cache[id]
	s.mu.Unlock()
	if ok && c.changed.Equal(fi.ModTime()) && c.size == fi.Size() {
		return c.summary, nil
	}
	inc, err := s.Load(id)
	if err != nil {
		return Summary{}, err
	}
	c = cached{summarize(inc), fi.ModTime(), fi.Size()}
	s.mu.Lock()
	s.cache[id] = c
	s.mu.Unlock()
	return c.summary, nil
}

// remember puts a freshly written incident into the cache.
func (s *Store) remember(inc *Incident) {
	fi, err := s.root.Lstat(path.Join(inc.ID, JSONFile))
	if err != nil {
		return // List reads it again, and tells
	}
	s.mu.Lock()
	s.cache[inc.ID] = cached{summarize(prepared(inc)), fi.ModTime(), fi.Size()}
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
