package drill

import (
	"context"
	"fmt"
	"os"
	"time"
)

// look brings the record up to date; live also asks the agent's API.
func (r *runner) look(ctx context.Context, live bool) {
	l, rec := r.lab, r.rec
	rec.shots = l.shots()
	rec.changes = l.watch.since(l.trigger)
	if r.inc == nil {
		return
	}
	rec.incidents, rec.broken = r.inc.poll(), r.inc.bad
	r.tell()
	if !live {
		return
	}
	if list, err := l.daemon.workers(ctx); err == nil {
		rec.live.add(time.Now(), list)
	}
	if st, err := l.daemon.status(ctx); err == nil {
		rec.usage.take(st)
		if l.lasting != nil {
			l.lasting.share(&rec.usage)
		}
	}
	if q := l.c.Quarantine; q != nil {
		data, _ := readBounded(q.File, 1<<20)
		rec.hook = string(data)
	}
}

// collect takes the last state of everything once the agent has ended.
func (r *runner) collect(ctx context.Context) {
	r.look(ctx, true)
	if r.lab.daemon == nil {
		return
	}
	if err := r.lab.daemon.crashed(); err != nil {
		r.rec.problems = append(r.rec.problems, err.Error())
	}
	r.lab.daemon.stop()
	r.rec.usage.total(r.lab.daemon)
	r.rec.incidents = r.inc.poll()
	r.readProfiles()
	var err error
	if r.rec.stalls, err = r.log.read(r.rec.trigger); err != nil && !os.IsNotExist(err) {
		r.rec.problems = append(r.rec.problems, "stall log: "+err.Error())
	}
}

func (r *runner) readProfiles() {
	r.rec.shares = map[string]map[string]float64{}
	for _, s := range r.rec.incidents {
		shares, err := frameShares(s.dir)
		if err != nil && !os.IsNotExist(err) {
			r.rec.problems = append(r.rec.problems, "incident "+s.ID+": "+err.Error())
		}
		r.rec.shares[s.dir] = shares
	}
}

func (r *runner) main() *seen {
	return mainIncident(r.rec.incidents, r.rec.trigger, r.lab.c.Expect.Verdict)
}

func (l *lab) shots() []shot {
	if l.probing == nil {
		return nil
	}
	return l.probing.seen()
}

// tell says what is new in the incidents.
func (r *runner) tell() {
	if r.opt.Say == nil {
		return
	}
	if r.old == nil {
		r.old = map[string]bool{}
	}
	for _, s := range r.rec.incidents {
		for _, step := range s.Timeline.Steps() {
			key := s.dir + " " + step.Name
			if r.old[key] {
				continue
			}
			r.old[key] = true
			r.opt.Say(Line{Kind: step.Name, MS: *s.after(r.rec.trigger, &step.MS), Text: stepText(s, step.Name)})
		}
	}
}

func stepText(s *seen, step string) string {
	e := s.Evidence
	switch step {
	case "suspected":
		return fmt.Sprintf("worker %d makes no progress", s.Worker.PID)
	case "confirmed":
		return fmt.Sprintf("%s: %s", s.Verdict, s.Reason)
	case "captured":
		text := e.Request
		if len(e.Frames) > 0 {
			text += "  in  " + e.Frames[min(max(e.Hot, 0), len(e.Frames)-1)]
		}
		return text
	case "quarantined":
		return fmt.Sprintf("%s version %s", e.Upstream, e.Version)
	case "evicted":
		return fmt.Sprintf("%d of %d stuck workers", s.WorkersEvicted, s.WorkersStuck)
	}
	return ""
}
