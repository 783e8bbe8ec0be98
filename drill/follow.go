package drill

import (
	"context"
	"fmt"
	"time"
)

const (
	pollEvery  = 20 * time.Millisecond  // incidents
	liveEvery  = 100 * time.Millisecond // the agent's API
	actSlack   = 15 * time.Second       // from the verdict's bound to recovery
	lingerMost = 6 * time.Second        // in observe: watch that nothing is done
)

// follow watches until all that is expected has happened, or its time is over.
func (r *runner) follow(ctx context.Context, f *fault) error {
	limit, done := r.plan(f)
	end := r.lab.trigger.Add(limit)
	var live time.Time
	for {
		now := time.Now()
		r.look(ctx, now.Sub(live) >= liveEvery)
		if now.Sub(live) >= liveEvery {
			live = now
		}
		if done(now) || now.After(end) {
			return nil
		}
		if err := r.killAgent(ctx, now); err != nil {
			return err
		}
		r.liftQuarantine(ctx)
		if r.lab.daemon != nil {
			if err := r.lab.daemon.crashed(); err != nil {
				return err
			}
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// plan says how long to follow at most, and what ends it earlier.
func (r *runner) plan(f *fault) (limit time.Duration, done func(now time.Time) bool) {
	c, trigger := r.lab.c, r.lab.trigger
	within := time.Duration(c.Expect.WithinMS) * time.Millisecond
	act := r.lab.actAfter()
	switch {
	case r.opt.Mode == ModeNone && !c.calm():
		return within, r.looksStuck
	case c.calm():
		watch := max(c.Prove.watch(), loadTime(c)-time.Second)
		return watch + 60*time.Second, func(now time.Time) bool {
			r.unquiet(now)
			return f.over() && now.Sub(trigger) >= watch
		}
	case r.opt.Mode == ModeObserve:
		return within + act + lingerMost, r.observed(min(act+time.Second, lingerMost))
	}
	limit = within + act + actSlack
	if c.Expect.Heal == healNone {
		limit = max(limit, within+c.Prove.ends())
	}
	return max(limit, r.sc.storm+actSlack), func(now time.Time) bool {
		if now.Sub(trigger) < r.sc.storm || !f.fired() || r.sc.kill > 0 && !r.killed {
			return false
		}
		if r.sc.rail != nil {
			return r.sc.rail.refused(r.rec.after())
		}
		_, ok := recovery(c, r.opt.Mode, r.rec, r.main())
		return ok
	}
}

// observed ends a drill in mode observe some time after the evidence is there.
func (r *runner) observed(linger time.Duration) func(time.Time) bool {
	var since time.Time
	return func(now time.Time) bool {
		m := r.main()
		if m == nil || m.Timeline.Captured == nil || m.Verdict != r.lab.c.Expect.Verdict {
			return false
		}
		if since.IsZero() {
			since = now
		}
		return now.Sub(since) >= linger
	}
}

// looksStuck ends a drill without an agent once the drill's own look finds as
// many stuck workers as the case promises.
func (r *runner) looksStuck(time.Time) bool {
	r.rec.stuck = r.lab.stuckWorkers(600 * time.Millisecond)
	return len(r.rec.stuck) == r.lab.c.Expect.WorkersStuck
}

// unquiet starts the probes of a case that must not be asked at first.
func (r *runner) unquiet(now time.Time) {
	l := r.lab
	if l.probing == nil && now.Sub(l.trigger) >= l.c.Prove.quiet() {
		l.startProbes(l.ctx, r.sc.rate, r.sc.patient)
	}
}

func (l *lab) actAfter() time.Duration {
	if l.c.Agent.ActAfter > 0 {
		return l.c.Agent.ActAfter
	}
	return 5 * time.Second
}

func loadTime(c *Case) time.Duration {
	if c.Load == nil {
		return 0
	}
	return time.Duration(c.Load.Seconds) * time.Second
}

// watchFor goes on looking for a while.
func (r *runner) watchFor(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		r.look(ctx, true)
		if err := pause(ctx, liveEvery); err != nil {
			return err
		}
	}
	return nil
}

func faultText(sc *Scenario, c *Case) string {
	switch {
	case sc.night != nil:
		return "the night begins"
	case len(c.Trigger) > 0 && c.TriggerCommand != "":
		return fmt.Sprintf("%d kinds of requests and a command", len(c.Trigger))
	case len(c.Trigger) > 0:
		t := c.Trigger[0]
		if t.Method == "" {
			t.Method = "GET"
		}
		return t.Method + " " + t.Path
	case c.TriggerCommand != "":
		return c.TriggerCommand
	}
	return "the load alone"
}
