package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/watchdog/config"
	"github.com/spinguard/spinguard/web/api"
)

// lasting is one agent for all scenarios of a series. What its memory does over
// hours an agent that begins anew with each proxy can't tell.
type lasting struct {
	dir   string // keeps its files
	brood *brood
	began time.Time

	cpuFrom     float64 // what it had used when the scenario began
	samplesFrom int64
	lostFrom    int64

	mu     sync.Mutex // for what goroutines share
	agent  *agent     // nil: not started yet
	points []memoryPoint
}

// memoryPoint is what the agent used at some time after its start.
type memoryPoint struct {
	at  time.Duration
	rss int64 // bytes
	cpu float64
}

// adopt has the agent watch the proxy of a lab, and no other.
func (s *lasting) adopt(ctx context.Context, l *lab, binary string, mode config.Mode) error {
	if s.agent == nil {
		return s.start(ctx, l, binary, mode)
	}
	l.daemon = s.agent
	if err := s.agent.crashed(); err != nil {
		return err
	}
	if err := writeAgentConfig(s.agent.files.config, l.agentConfig(mode, s.agent.files)); err != nil {
		return err
	}
	s.brood.signal(s.agent.job.cmd.Process.Pid, unix.SIGHUP)
	if err := s.sees(ctx, l); err != nil {
		return err
	}
	st, err := s.agent.status(ctx)
	if err != nil {
		return err
	}
	u := Usage{}
	u.take(st)
	s.cpuFrom, s.samplesFrom, s.lostFrom = u.CPUSeconds, u.Samples, u.LostSamples
	return nil
}

func (s *lasting) start(ctx context.Context, l *lab, binary string, mode config.Mode) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	s.brood, s.began = newBrood(), time.Now()
	files, err := placeAgent(s.dir, filepath.Join(s.dir, "run"))
	if err != nil {
		return err
	}
	a, err := launchAgent(s.brood, binary, files, l.agentConfig(mode, files))
	if err != nil {
		return err
	}
	a.kept, l.daemon = true, a
	s.mu.Lock()
	s.agent = a
	s.mu.Unlock()
	return a.ready(ctx, l.c.Workers, l.nginx())
}

// sees waits until the agent knows the workers of the lab.
func (s *lasting) sees(ctx context.Context, l *lab) error {
	for end := time.Now().Add(agentStart); ; {
		list, err := s.agent.workers(ctx)
		missing := slices.DeleteFunc(l.workers(), func(pid int) bool {
			return slices.ContainsFunc(list, func(w api.WorkerStatus) bool { return w.PID == pid })
		})
		switch {
		case err == nil && len(missing) == 0:
			return nil
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case s.agent.job.ended():
			return s.agent.crashed()
		case time.Now().After(end):
			return fmt.Errorf("the lasting agent does not know the workers %v after %v: %v", missing, agentStart, err)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// share takes off what the agent had used before this scenario.
func (s *lasting) share(u *Usage) {
	u.CPUSeconds, u.Samples, u.LostSamples = u.CPUSeconds-s.cpuFrom, u.Samples-s.samplesFrom, u.LostSamples-s.lostFrom
}

// note takes down what the agent uses now. Goroutines may share it.
func (s *lasting) note() (memoryPoint, bool) {
	s.mu.Lock()
	a := s.agent
	s.mu.Unlock()
	if a == nil || a.job.ended() {
		return memoryPoint{}, false
	}
	st, err := a.status(context.Background())
	if err != nil {
		return memoryPoint{}, false
	}
	p := memoryPoint{at: time.Since(s.began), rss: st.ResidentBytes, cpu: st.CPUSeconds}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points = append(s.points, p)
	return p, true
}

func (s *lasting) stop() {
	if s.agent == nil {
		return
	}
	s.agent.kept = false
	s.agent.stop()
	s.brood.kill()
}

// summary tells how the agent's memory went.
func (s *lasting) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return memoryText(s.points)
}

func memoryText(points []memoryPoint) string {
	if len(points) < 2 {
		return "the agent's memory was seen too seldom to say how it went"
	}
	first, last := points[0], points[len(points)-1]
	most := slices.MaxFunc(points, func(a, b memoryPoint) int { return int(a.rss - b.rss) })
	var b strings.Builder
	fmt.Fprintf(&b, "one agent for %s: %.1f MiB at first, %.1f at last, %.1f at most; %.2f %% of a core", last.at.Round(time.Second),
		mib(first.rss), mib(last.rss), mib(most.rss), 100*last.cpu/last.at.Seconds())
	if steady := settled(points); len(steady) >= 3 {
		fmt.Fprintf(&b, "; after the first fifth %+.2f MiB an hour", slope(steady)/(1<<20))
	}
	return b.String()
}

// settled leaves out the first fifth of the time, in which caches fill.
func settled(points []memoryPoint) []memoryPoint {
	from := points[len(points)-1].at / 5
	return slices.DeleteFunc(slices.Clone(points), func(p memoryPoint) bool { return p.at < from })
}

// slope is how much the memory grows in an hour, by least squares, in bytes.
func slope(points []memoryPoint) float64 {
	var t, m float64
	for _, p := range points {
		t += p.at.Hours() / float64(len(points))
		m += float64(p.rss) / float64(len(points))
	}
	var up, down float64
	for _, p := range points {
		up += (p.at.Hours() - t) * (float64(p.rss) - m)
		down += (p.at.Hours() - t) * (p.at.Hours() - t)
	}
	if down == 0 {
		return 0
	}
	return up / down
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
