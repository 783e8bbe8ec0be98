package drill

import (
	"context"
	"syscall"

	"github.com/spinguard/spinguard/web/api"
)

func (a *agent) status(ctx context.Context) (api.Status, error) {
	var s api.Status
	err := a.get(ctx, "/api/status", &s)
	return s, err
}

func (a *agent) workers(ctx context.Context) ([]api.WorkerStatus, error) {
	var list []api.WorkerStatus
	err := a.get(ctx, "/api/workers", &list)
	return list, err
}

// take takes what the agent says of itself and keeps the highest memory.
func (u *Usage) take(s api.Status) {
	u.CPUSeconds = s.CPUSeconds
	u.MaxRSSBytes = max(u.MaxRSSBytes, s.ResidentBytes)
	u.Samples = int64(min(s.Samples, 1<<62))
	u.LostSamples = 0
	for _, n := range s.Lost {
		u.LostSamples += n
	}
}

// total adds what the kernel says of the agent once it has ended.
func (u *Usage) total(a *agent) {
	if !a.job.ended() || a.job.cmd.ProcessState == nil {
		return
	}
	st := a.job.cmd.ProcessState
	u.CPUSeconds = (st.UserTime() + st.SystemTime()).Seconds()
	if ru, ok := st.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSSBytes = ru.Maxrss * 1024
	}
}
