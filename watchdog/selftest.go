package watchdog

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/spinguard/spinguard/bpf"
	"github.com/spinguard/spinguard/profiler"
	"github.com/spinguard/spinguard/profiler/symbol"
)

// The self-test has a sampler of its own, so that it takes nothing from the
// workers' samples.
const (
	selfTestRate = 499
	selfTestFor  = 10 * time.Second
	// It waits a moment, so that the first samples of the workers do not.
	selfTestDelay = 500 * time.Millisecond
)

// selfTest unwinds a known child of this program on this very kernel, and says
// what works. It runs beside the loop: a slow host must not delay the watch.
func (a *Agent) selfTest(ctx context.Context) {
	wait(ctx, selfTestDelay)
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, selfTestFor)
	defer cancel()
	report, err := SelfTest(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		a.log.Error("self-test could not be run", zap.Error(err))
		report.Problems = append(report.Problems, err.Error())
	case !report.OK():
		a.log.Warn("self-test found problems", zap.String("report", report.String()))
	default:
		a.log.Info("self-test passed", zap.String("report", report.String()))
	}
	a.tested.Store(&report)
}

// wait waits, but not beyond the end of the context.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// SelfTest runs the profiler's self-test with a sampler of its own.
func SelfTest(ctx context.Context) (profiler.SelfTestReport, error) {
	sampler, err := bpf.OpenSmall(selfTestRate)
	if err != nil {
		return profiler.SelfTestReport{}, err
	}
	defer func() { _ = sampler.Close() }()
	return profiler.SelfTest(ctx, sampler, symbol.NewCache(16))
}

// SelfTestChild must be the first call of main; see profiler.SelfTestChild. The
// child gives way to everything else on the host.
func SelfTestChild() {
	if profiler.IsSelfTestChild() {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) // no more than a courtesy
	}
	profiler.SelfTestChild()
}
