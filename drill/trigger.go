package drill

import (
	"context"
	"sync"
	"time"
)

// fire sends the requests of the trigger in order and returns their statuses,
// 0 for each that was given up. Connections of those stay open.
func (l *lab) fire(ctx context.Context) []int {
	if l.night != nil {
		l.sc.night.fault(l.night)
	}
	var statuses []int
	for i := range l.c.Trigger {
		statuses = append(statuses, l.fireStep(ctx, &l.c.Trigger[i])...)
	}
	return statuses
}

func (l *lab) fireStep(ctx context.Context, s *Step) []int {
	data := wire(&s.Request, s.BodyRepeat)
	var (
		mu       sync.Mutex
		statuses []int
		wg       sync.WaitGroup
	)
	todo := make(chan struct{}, s.Count)
	for range s.Count {
		todo <- struct{}{}
	}
	close(todo)
	for range min(s.Parallel, s.Count) {
		l.spawn(&wg, func() {
			for range todo {
				c := &call{}
				got := c.send(ctx, l.vars.Port, data, time.Duration(s.TimeoutMS)*time.Millisecond)
				l.hold(c)
				mu.Lock()
				statuses = append(statuses, got)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return statuses
}

// fault is the running trigger: its requests and its command.
type fault struct {
	sent     chan struct{} // closed once all was sent and started
	statuses []int
	command  *job  // nil without a command
	err      error // of the start of the command
}

// inject starts the fault. Requests come first and then the command, but
// together in calm cases, where the command is what should look bad.
func (l *lab) inject(ctx context.Context) *fault {
	f := &fault{sent: make(chan struct{})}
	run := func() {
		if l.c.TriggerCommand != "" {
			f.command, f.err = l.shell("trigger", l.c.TriggerCommand)
		}
	}
	l.trigger = time.Now()
	if l.c.calm() {
		run()
	}
	go l.guard(func() {
		defer close(f.sent)
		f.statuses = l.fire(ctx)
		if !l.c.calm() {
			run()
		}
	})
	return f
}

// fired says whether every request was sent and the command was started; only
// then may the fields of the fault be read.
func (f *fault) fired() bool {
	select {
	case <-f.sent:
		return true
	default:
		return false
	}
}

// wait waits until all was sent, at most for the limit.
func (f *fault) wait(ctx context.Context, limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-f.sent:
	case <-ctx.Done():
	case <-t.C:
	}
}

// over says whether the fault has been injected completely.
func (f *fault) over() bool {
	return f.fired() && (f.command == nil || f.command.ended())
}
