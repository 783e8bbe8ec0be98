package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spinguard/spinguard/watchdog/config"
)

// ErrUsage is returned for what the caller got wrong: unknown mode, unreadable
// case folder.
var ErrUsage = errors.New("usage")

// Run runs one scenario on a private proxy and ends every process that it
// started, also when ctx is done early. The error is for a drill that could not
// be run; whatever could be run is judged in the Result. One run at a time.
func Run(ctx context.Context, sc *Scenario, opt Options) (res Result, err error) {
	begun := time.Now()
	if opt, err = opt.complete(sc.Case.Name); err != nil {
		return res, err
	}
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	r := &runner{sc: sc, opt: opt, rec: &record{}, moment: momentOf(sc.kill)}
	r.lab, err = newLab(ctx, abort, sc, opt.Out)
	if err != nil {
		return res, err
	}
	r.lab.lasting = opt.lasting
	defer func() {
		if e := r.lab.cleanUp(); e != nil && err == nil {
			res.Passed = false
			res.Failures = append(res.Failures, "clean-up: "+e.Error())
		}
	}()
	if err := r.drill(ctx); err != nil {
		if context.Cause(ctx) != nil {
			return res, context.Cause(ctx)
		}
		r.rec.problems = append(r.rec.problems, err.Error())
	}
	res = judge(sc, r.lab.c, opt.Mode, r.rec)
	res.Out, res.Seconds, res.log = opt.Out, time.Since(begun).Seconds(), r.log.file
	r.say("end", "%s", sentence(&res))
	return res, nil
}

// checked fills in the mode and refuses an unknown one.
func (opt Options) checked() (Options, error) {
	switch opt.Mode {
	case "":
		opt.Mode = ModeEnforce
	case ModeEnforce, ModeObserve, ModeNone:
	default:
		return opt, fmt.Errorf("%w: mode %q is neither enforce nor observe", ErrUsage, opt.Mode)
	}
	return opt, nil
}

// complete fills in what the caller left empty.
func (opt Options) complete(name string) (Options, error) {
	opt, err := opt.checked()
	if err != nil {
		return opt, err
	}
	if opt.Binary == "" && opt.Mode != ModeNone {
		if opt.Binary, err = os.Executable(); err != nil {
			return opt, err
		}
	}
	if opt.Out == "" {
		opt.Out, err = os.MkdirTemp("", "spinguard-"+name+"-")
	} else {
		opt.Out, err = filepath.Abs(opt.Out)
	}
	return opt, err
}

// runner drives one lab through its phases.
type runner struct {
	sc  *Scenario
	opt Options
	lab *lab
	rec *record
	inc *incidentWatch // nil in mode none
	log stallLog
	old map[string]bool // progress that was told

	lifted bool          // the quarantine, by hand
	moment time.Duration // after the trigger, when the agent is killed
	killed bool
}

func (r *runner) say(kind, format string, args ...any) {
	if r.opt.Say == nil {
		return
	}
	ms := int64(-1)
	if !r.lab.trigger.IsZero() {
		ms = time.Since(r.lab.trigger).Milliseconds()
	}
	r.opt.Say(Line{Kind: kind, MS: ms, Text: fmt.Sprintf(format, args...)})
}

// drill runs the phases in order: proxy, agent, traffic, fault, response, end.
func (r *runner) drill(ctx context.Context) error {
	l := r.lab
	r.say("prepare", "starting %s with %d workers on 127.0.0.1:%d", l.c.Proxy, l.c.Workers, l.vars.Port)
	if l.sc.backends {
		if err := l.startBackends(); err != nil {
			return err
		}
	}
	if l.sc.night != nil {
		if err := l.startNight(ctx); err != nil {
			return err
		}
	}
	if err := l.startProxy(ctx); err != nil {
		return err
	}
	if r.opt.Mode != ModeNone {
		r.say("prepare", "starting the agent in mode %s", r.opt.Mode)
		if err := l.startAgent(ctx, r.opt.Binary, config.Mode(r.opt.Mode)); err != nil {
			return err
		}
		r.inc = newIncidentWatch(l.daemon.files.state)
		r.log = stallLog{file: l.daemon.files.log}
	}
	l.watchWorkers(ctx)
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	r.say("prepare", "all well; now the fault")
	f := l.inject(ctx)
	r.rec.trigger = l.trigger
	r.say("trigger", "%s", faultText(r.sc, l.c))
	if r.sc.storm > 0 {
		l.storm = l.startStorm(ctx, r.sc.storm)
	}
	if err := r.follow(ctx, f); err != nil {
		return err
	}
	return r.finish(ctx, f)
}

// warmUp starts load and probes, and gives the agent a second of good times.
func (r *runner) warmUp(ctx context.Context) error {
	l := r.lab
	l.startLoad(ctx)
	if l.c.Prove.QuietMS == 0 {
		l.startProbes(ctx, r.sc.rate, r.sc.patient)
	}
	return pause(ctx, time.Second)
}

// finish probes on for a while, asks the last questions, and collects.
func (r *runner) finish(ctx context.Context, f *fault) error {
	l, rec := r.lab, r.rec
	f.wait(ctx, 30*time.Second)
	after := r.sc.after
	if r.opt.Mode != ModeEnforce {
		after = min(after, 2*time.Second) // nothing was healed
	}
	if err := r.watchFor(ctx, after); err != nil {
		return err
	}
	if l.probing != nil {
		l.probing.finish()
	}
	l.release()
	r.lastQuestions(ctx)
	if l.night != nil {
		rec.night = l.night.seen(l.probing.seen())
	}
	r.collect(ctx)
	if !f.fired() {
		rec.problems = append(rec.problems, "the trigger was still being sent at the end of the drill")
		return nil
	}
	if f.err != nil {
		rec.problems = append(rec.problems, "trigger_command: "+f.err.Error())
	}
	if l.c.calm() && f.command != nil && f.command.ended() && f.command.err != nil {
		rec.problems = append(rec.problems, "trigger_command: "+f.command.err.Error()+", see trigger.log")
	}
	return nil
}

// lastQuestions looks at the proxy once more without asking the agent.
func (r *runner) lastQuestions(ctx context.Context) {
	l, rec := r.lab, r.rec
	rec.healed = true
	if r.opt.Mode != ModeEnforce && !l.c.calm() || r.sc.rail != nil {
		return // nothing was healed
	}
	// A worker that was only held up by a busy machine gets going again.
	for end := time.Now().Add(15 * time.Second); ; {
		rec.stuck = l.stuckWorkers(600 * time.Millisecond)
		if len(rec.stuck) == 0 || ctx.Err() != nil || time.Now().After(end) {
			break
		}
	}
	rec.healthy = true
	for range 6 {
		rec.healthy = rec.healthy && l.healthy(ctx, max(2*time.Second, r.sc.patient))
	}
	if l.c.Healed != nil {
		rec.healed = ask(ctx, l.vars.Port, l.c.Healed, 2*time.Second) == 200
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
